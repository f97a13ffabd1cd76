// A planted race in loop-owned state: reads what only the loop thread may touch while the loop writes it.
// `./dev tsan` runs this program and demands that ThreadSanitizer reports it: if it did not, a clean run would prove
// nothing.
#include <memory>

#include "core/counter/counter.h"
#include "host/temp_dir_for_test.h"
#include "host/thread_host.h"

namespace muster {
namespace {

// Runs the counter and keeps a number that, by the rules, belongs to the loop thread alone.
class CarelessShell final : public host::ThreadHost<counter::Core>::Shell {
 public:
  void StartCall(const counter::Core::Call&) override {}
  void Emit(const counter::Core::Effect&) override { ++answers; }
  int answers = 0;
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
  int sum = 0;
  for (uint64_t i = 1; i <= 200; ++i) {
    host.Post(counter::Add{.client = "a", .sequence = i, .amount = 1});
    sum += shell.answers;  // the race
  }
  host.Stop();
  return sum < 0 ? 1 : 0;
}

}  // namespace
}  // namespace muster

int main() { return muster::Run(); }
