#include <malloc.h>

#include "cli/verbs.h"

int main(int argc, char** argv) {
  // The tables of a fleet grow by doubling. Blocks of megabytes come straight from the system and go back to it; by
  // default the allocator soon keeps them, and a shard a third larger than what it holds.
  mallopt(M_MMAP_THRESHOLD, 4 << 20);
  mallopt(M_TRIM_THRESHOLD, 8 << 20);
  muster::cli::CommandLine app(muster::cli::ThisBuild());
  muster::cli::AddVerbs(app);
  return app.Main(argc, argv);
}
