// SimBackend: a cloud in memory. It makes, configures, drains and deletes machines after the times its catalogue says,
// fails as often as it says, runs out of stock, moves prices, and takes spot machines away with a notice.
//
// Everything is drawn from the seed and a name (an operation id, a host, a market and its turn), never from the order
// of calls: the same operation takes the same time and ends the same way, whenever and however often it is asked for.
//
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "contract/backend.h"
#include "provider/backend.h"
#include "provider/catalogue.h"

namespace muster::provider {

struct SimOptions {
  std::string name = "sim";
  uint64_t machines = 100;
  uint64_t seed = 1;
};

class SimBackend final : public Backend {
 public:
  SimBackend(Catalogue catalogue, SimOptions options);

  std::vector<contract::Slot> Slots() const override;
  void Adopt(std::span<const contract::MachineRecord> machines, Now now) override;
  void Start(contract::CallId call, const contract::Operation& operation, Now now) override;
  std::optional<MonoTime> NextPoll() const override;
  void Poll(Now now, std::vector<Report>& out) override;

  // An operation that ended in an earlier life of this process: asked for again, it ends the same way at once.
  void Remember(const OperationEnded& ended);

 private:
  struct Running {
    contract::CallId call = 0;
    contract::Operation operation;
    MonoTime due;
  };
  struct Host {
    std::string ref;
    MonoTime due;          // of the next thing that happens to it
    bool noticed = false;  // the next thing is the end
  };
  struct Market {
    const MachineType* type = nullptr;
    std::string zone;
    model::Money price;
    uint64_t turn = 0;
    MonoTime due;
  };
  enum class Due : uint8_t { kOperation, kHost, kMarket };

  Rng Draw(std::string_view what, std::string_view name) const;
  const MachineType& TypeOf(const std::string& name) const;
  OperationEnded End(const Running& running, Now now);
  void AddHost(const std::string& machine_id, const std::string& type, const std::string& ref, Now now);
  void HasNotice(const std::string& machine_id, Now now);
  void DropHost(const std::string& machine_id);
  void Forget(const std::string& machine_id);
  void HostIsDue(const std::string& machine_id, Now now, std::vector<Report>& out);
  void MarketIsDue(size_t index, Now now, std::vector<Report>& out);

  const Catalogue catalogue_;
  const SimOptions options_;
  std::map<std::string, Running> running_;       // by machine
  std::map<std::string, OperationEnded> ended_;  // the last one of each machine
  std::map<std::string, Host> hosts_;            // those that will be interrupted, by machine
  std::vector<Market> markets_;
  std::set<std::tuple<MonoTime, Due, std::string, size_t>> due_;
};

}  // namespace muster::provider
