// A planted race in loop-owned state: reads what only the loop thread may touch while the loop writes it.
// `./dev tsan` runs this program and demands that ThreadSanitizer reports it: if it did not, a clean run would prove
// nothing.
#include <thread>

#include "core/counter/counter.h"
#include "host/temp_dir_for_test.h"
#include "host/thread_host.h"

namespace muster {
namespace {

// Runs the counter and keeps a number that, by the rules, belongs to the loop thread alone.
class CarelessShell final : public host::ThreadHost<counter::Core>::Shell {
 public:
  void StartCall(const counter::Core::Call&) override {}
  void Emit(const counter::Core::Effect&) override { answers = 1; }
  volatile int answers = 0;  // volatile: read again each time, and no less a race
};

class FixedClock final : public Clock {
 public:
  Now Read() const override { return {}; }
};

int Run() {
  const host::TempDir dir;
  auto persist = *host::SqlitePersist::Open(dir.File("state.db"), "counter");
  CarelessShell shell;
  const FixedClock clock;
  host::ThreadHost<counter::Core> host(*counter::Core::Recover({}, {}), shell, {.clock = clock, .persist = *persist});
  if (!host.Start().ok()) return 1;
  host.Post(counter::Add{.client = "a", .sequence = 1, .amount = 1});
  // The race. It takes no lock until the write has come, so that nothing orders the two by accident.
  while (shell.answers == 0) std::this_thread::yield();
  host.Stop();
  return 0;
}

}  // namespace
}  // namespace muster

int main() { return muster::Run(); }
