// muster-shim DIRECTORY: runs the process workload of one directory. Started by `muster agent`, not by people.
#include <cstdio>

#include "shim/shim.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    fputs("muster-shim is started by muster agent: muster-shim DIRECTORY\n", stderr);
    return 2;
  }
  return muster::shim::Run(argv[1]);
}
