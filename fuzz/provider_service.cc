// Any bytes as the messages of CapacityProvider, against the real core: each is refused by name or asked. What is
// refused, by the conversion or by the core, changes no machine, asks nothing of the backend and stores nothing but the
// mark of a token that passed; what is answered comes through the wire unchanged. And any bytes as replies: a client
// keeps sound machines only, each once, and names the rest.
//
// The input is a row of frames (frames.h).
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/codec.h"
#include "bigfleet/v1alpha1/provider.pb.h"
#include "core/provider/provider.h"
#include "frames.h"
#include "refusal.h"
#include "rpc/provider_conversion.h"
#include "rpc/shared_texts.h"

namespace {

namespace pb = bigfleet::v1alpha1;
using namespace muster;

std::vector<contract::Slot> Slots() {
  std::vector<contract::Slot> slots;
  for (const char* id : {"a", "b", "c"}) {
    slots.push_back({.machine = {.id = id, .state = model::MachineState::kSpeculative, .resources = {{"cpu", 4'000}}}});
  }
  slots[2].machine.state = model::MachineState::kIdle;
  slots[2].machine.host = {.provider = "p", .ref = "h"};
  slots[2].deletable = false;
  return slots;
}

class Provider {
 public:
  Provider() : core_(*provider::Core::Recover({.name = "fuzz", .new_lineage = 1}, Slots(), {})) {
    core_.Step(contract::Wake{}, Tick(), effects_);
  }

  template <class Wire, class WireReply>
  void Ask(const std::string& bytes) {
    Wire wire;
    if (!wire.ParseFromString(bytes)) return;
    const auto request = rpc::FromWire(wire);
    if (!request) return CheckRefusal(request.error());
    Wire again;
    rpc::ToWire(*request, again);
    MUSTER_CHECK(rpc::FromWire(again) == request, "a request that was read is not written as it was");

    const std::vector<contract::MachineRecord> before = core_.Machines();
    const size_t first = effects_.size();
    const provider::Answer answer = Step(provider::Asked{.request = 1, .body = *request});
    core_.CheckInvariants();
    if (!answer.status.ok()) {
      MUSTER_CHECK(core_.Machines() == before, "a refused call changed a machine");
      CheckLeftNothing(answer.status, first);
      return;
    }
    std::visit([](const auto& reply) { CheckReply<WireReply>(reply); }, *answer.reply);
  }

  // What the backend was asked for ends well.
  void FinishOperations() {
    std::vector<provider::Core::Effect> effects;
    std::swap(effects, effects_);
    for (const auto& effect : effects) {
      const auto* call = std::get_if<provider::Core::Call>(&effect);
      if (call == nullptr) continue;
      contract::OperationDone done;
      done.host = {.provider = "p", .ref = "made-" + std::to_string(call->id)};
      core_.Step(provider::Core::CallDone{.id = call->id, .status = {}, .reply = done}, Tick(), effects_);
    }
    core_.CheckInvariants();
  }

 private:
  Now Tick() {
    now_.mono += 1s;
    now_.wall += 1s;
    return now_;
  }

  provider::Answer Step(const provider::Core::Event& event) {
    const size_t first = effects_.size();
    core_.Step(event, Tick(), effects_);
    const provider::Answer* answer = nullptr;
    for (size_t i = first; i < effects_.size(); ++i) {
      const auto* found = std::get_if<provider::Answer>(&effects_[i]);
      if (found == nullptr) continue;
      MUSTER_CHECK(answer == nullptr, "two answers");
      answer = found;
    }
    MUSTER_CHECK(answer != nullptr, "no answer");
    return *answer;
  }

  // The effects of a refusal, from this one on.
  void CheckLeftNothing(const Status& refusal, size_t first) const {
    for (size_t i = first; i < effects_.size(); ++i) {
      MUSTER_CHECK(!std::holds_alternative<provider::Core::Call>(effects_[i]), "a refused call reached the backend");
      const auto* persist = std::get_if<contract::Persist>(&effects_[i]);
      if (persist == nullptr) continue;
      MUSTER_CHECK(refusal.code() != Code::kFailedPrecondition, "a fenced call stored something");
      for (const contract::Write& write : persist->writes) {
        MUSTER_CHECK(write.key.starts_with(provider::kMarks.prefix), "a refused call stored {}",
                     codec::Quote(write.key));
      }
    }
  }

  template <class WireReply, class Reply>
  static void CheckReply(const Reply& reply) {
    if constexpr (requires(WireReply& wire) { rpc::ToWire(reply, wire); }) {
      WireReply wire;
      rpc::ToWire(reply, wire);
      WireReply arrived;
      MUSTER_CHECK(arrived.ParseFromString(wire.SerializeAsString()));
      rpc::SharedTexts texts;
      const auto taken = rpc::TakeReply(arrived, texts);
      MUSTER_CHECK(taken.has_value(), "{}", taken.error().ToString());
      MUSTER_CHECK(*taken == reply, "a reply does not come through as it was");
    } else {
      MUSTER_CHECK(false, "the core answered with the reply of another request");
    }
  }

  Now now_ = {.mono = MonoTime(1h), .wall = WallTime(std::chrono::years(55))};
  provider::Core core_;
  std::vector<provider::Core::Effect> effects_;
};

template <class WireReply>
void TakeAny(const std::string& bytes) {
  WireReply wire;
  if (!wire.ParseFromString(bytes)) return;
  rpc::SharedTexts texts;
  const auto reply = rpc::TakeReply(wire, texts);
  if (!reply) return CheckRefusal(reply.error());
  if constexpr (requires { reply->rejected; }) {
    rpc::SharedTexts own;
    const std::string_view piece = bytes;
    MUSTER_CHECK(rpc::ReadMachineList({&piece, 1}, own) == reply);
    std::set<std::string_view> ids;
    for (const contract::MachineRecord& machine : reply->machines) {
      MUSTER_CHECK(model::CheckStructure(*machine).ok() && ids.insert(machine->id).second);
    }
    for (const contract::RejectedMachine& rejected : reply->rejected) {
      MUSTER_CHECK(rejected.reason.starts_with("machines["), "{}", rejected.reason);
      CheckRefusal({Code::kInvalidArgument, rejected.reason});
    }
    MUSTER_CHECK(reply->machines.size() + reply->rejected.size() == static_cast<size_t>(wire.machines_size()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Provider provider;
  EachFrame(data, size, 10, [&](uint8_t method, const std::string& bytes) {
    switch (method) {
      case 0: provider.Ask<pb::CreateRequest, pb::TransitionAck>(bytes); break;
      case 1: provider.Ask<pb::ConfigureRequest, pb::TransitionAck>(bytes); break;
      case 2: provider.Ask<pb::DrainRequest, pb::TransitionAck>(bytes); break;
      case 3: provider.Ask<pb::DeleteRequest, pb::TransitionAck>(bytes); break;
      case 4: provider.Ask<pb::MachineRef, pb::Machine>(bytes); break;
      case 5: provider.Ask<pb::ListFilter, pb::MachineList>(bytes); break;
      case 6: TakeAny<pb::MachineList>(bytes); break;
      case 7: TakeAny<pb::TransitionAck>(bytes); break;
      case 8: TakeAny<pb::Machine>(bytes); break;
      default: provider.FinishOperations(); break;
    }
  });
  return 0;
}
