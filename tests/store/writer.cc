// Writes to the SQLite store in a directory until it is killed: each client raises a pair of keys together and says so
// on standard error once the store has acknowledged it. For tests that kill it.
//
//   store_writer DIR CLIENTS [planted bug]
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "base/probe.h"
#include "host/sqlite_store.h"
#include "store/blocking.h"

namespace muster::store {
namespace {

// One line in one write, so that a line that is there is whole.
void Say(const std::string& line) {
  const std::string text = line + "\n";
  static_cast<void>(!write(STDERR_FILENO, text.data(), text.size()));
}

// On the store's thread: what is acknowledged is said before anything else happens.
void Report(int client, int64_t number, const CommitOutcome& outcome) {
  if (const auto* committed = std::get_if<contract::Committed>(&outcome)) {
    return Say(fmt::format("ack {} {} {}", client, number, committed->revision));
  }
  const auto* unknown = std::get_if<contract::Unknown>(&outcome);
  Say(fmt::format("refused {} {}", client, unknown != nullptr ? unknown->status.ToString() : "conflict"));
}

void Client(Store& store, int client) {
  Blocking blocking(store);
  const std::string a = fmt::format("/w/{}/a", client);
  const std::string b = fmt::format("/w/{}/b", client);
  while (true) {
    const auto row = blocking.Get(a);
    if (!row) return Say(fmt::format("failed {}", row.error().ToString()));
    const int64_t next = *row ? std::stoll((*row)->value) + 1 : 1;
    const Revision seen = *row ? (*row)->modified : 0;
    const std::string text = fmt::format("{:<1000}", next);  // pages of it
    std::promise<void> answered;
    store.Commit({{contract::IfUnchanged(a, seen)}, {contract::Put(a, text), contract::Put(b, text)}}, 10s,
                 [&](const CommitOutcome& outcome) {
                   Report(client, next, outcome);
                   answered.set_value();
                 });
    answered.get_future().wait();
  }
}

int Main(int argc, char** argv) {
  if (argc < 3) return 2;
  log::SetSink([](auto&&...) {});
  if (const char* point = std::getenv("MUSTER_CRASH_POINT"); point != nullptr) {
    if (!faults::EnableCrashPoint(point).ok()) return 2;
  }
  if (argc > 3) faults::SetMutant(argv[3], true);
  const auto store = host::OpenSqliteStore(argv[1]);
  if (!store) {
    Say(store.error().ToString());
    return 1;
  }
  Say("open");
  std::vector<std::thread> clients;
  for (int client = 0; client < std::stoi(argv[2]); ++client)
    clients.emplace_back([&, client] { Client(**store, client); });
  for (std::thread& client : clients) client.join();
  return 0;
}

}  // namespace
}  // namespace muster::store

int main(int argc, char** argv) { return muster::store::Main(argc, argv); }
