#include "cli/verbs.h"

int main(int argc, char** argv) {
  muster::cli::CommandLine app(muster::cli::ThisBuild());
  muster::cli::AddVerbs(app);
  return app.Main(argc, argv);
}
