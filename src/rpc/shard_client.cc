#include "rpc/shard_client.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <utility>
#include <variant>

#include "bigfleet/v1alpha1/shardread.grpc.pb.h"
#include "muster/v1/fleet.grpc.pb.h"
#include "rpc/channel.h"
#include "rpc/open_calls.h"
#include "rpc/shard_conversion.h"

namespace muster::rpc {
namespace {

namespace pb = bigfleet::v1alpha1;
using Answer = contract::ShardPort::Answer;

constexpr Duration kCallTimeout = 10s;
constexpr Duration kListTimeout = 1min;

// What a stream of rows adds up to. Add says what is wrong with a row; after that, no more come.
class NeedsRead {
 public:
  template <class Frame>
  Status Add(Frame& frame) {
    const bool first = !header_;
    header_ = true;
    if (first != frame.has_header() || (!first && !frame.has_need())) {
      return {Code::kInvalidArgument, "frame: there must be one header, then needs"};
    }
    if (first) {
      auto header = FromWire(frame.header());
      if (!header) return header.error();
      reply_ = *std::move(header);
      return {};
    }
    auto view = TakeView(*frame.mutable_need(), fmt::format("needs[{}]", reply_.needs.size()), profiles_);
    if (!view) return view.error();
    reply_.needs.push_back(*std::move(view));
    return {};
  }
  Result<contract::ShardReply> Take() {
    if (!header_) return InvalidArgument("frame: there must be one header, then needs");
    return std::move(reply_);
  }

 private:
  bool header_ = false;
  contract::NeedsInspected reply_;
  ProfileTable profiles_;
};

class MachinesRead {
 public:
  Status Add(v1::MachineView& row) {
    auto view = TakeView(row, fmt::format("machines[{}]", reply_.machines.size()));
    if (!view) return view.error();
    reply_.machines.push_back(*std::move(view));
    return {};
  }
  Result<contract::ShardReply> Take() { return std::move(reply_); }

 private:
  contract::MachinesListed reply_;
};

// A stream of rows under way, alive until its answer was given. Reactions come one after the other.
template <class WireRequest, class Row, class Rows>
class RowsCall final : public grpc::ClientReadReactor<Row> {
 public:
  using Done = std::function<void(Result<contract::ShardReply> reply)>;  // errors are explained

  // `call(context, request, reactor)` starts it.
  template <class Call>
  static void Start(OpenCalls& calls, WireRequest request, const Call& call, Done done) {
    auto* open = new RowsCall(calls, std::move(request), std::move(done));  // until OnDone
    calls.Begin(open->context, kListTimeout);
    call(&open->context, &open->request_, open);
    open->StartRead(&open->row_);
    open->StartCall();
  }

  grpc::ClientContext context;

 private:
  RowsCall(OpenCalls& calls, WireRequest request, Done done)
      : calls_(calls), request_(std::move(request)), done_(std::move(done)) {}

  void OnReadDone(bool ok) override {
    if (!ok) return;
    if (wrong_.ok()) wrong_ = rows_.Add(row_);
    if (!wrong_.ok()) return context.TryCancel();
    this->StartRead(&row_);
  }
  void OnDone(const grpc::Status& status) override {
    done_(Reply(status));
    calls_.End(std::unique_ptr<RowsCall>(this));
  }
  Result<contract::ShardReply> Reply(const grpc::Status& status) {
    if (!wrong_.ok()) return std::unexpected(calls_.BadAnswer(wrong_));
    if (!status.ok()) return std::unexpected(calls_.Explain(status));
    auto reply = rows_.Take();
    if (!reply) return std::unexpected(calls_.BadAnswer(reply.error()));
    return reply;
  }

  OpenCalls& calls_;
  WireRequest request_;
  Row row_;
  Rows rows_;
  Status wrong_;
  const Done done_;
};

class ShardClient final : public contract::ShardPort {
 public:
  ShardClient(const std::string& target, const std::shared_ptr<grpc::Channel>& channel)
      : read_(pb::ShardRead::NewStub(channel)), fleet_(v1::Fleet::NewStub(channel)), calls_("shard " + target, "row") {}

  void Ask(contract::ShardRequest request, Answer done) override {
    std::visit([&](const auto& typed) { Send(typed, std::move(done)); }, request);
  }

 private:
  using Fleet = v1::Fleet::StubInterface::async_interface;

  // From Fleet, which says more, and from a shard of another make what every one says.
  void Send(const contract::InspectNeeds& request, Answer done) {
    pb::InspectNeedsRequest wire;
    ToWire(request, wire);
    RowsCall<pb::InspectNeedsRequest, v1::InspectNeedsResponse, NeedsRead>::Start(
        calls_, wire, [this](auto... args) { fleet_->async()->InspectNeeds(args...); },
        [this, wire, done = std::move(done)](Result<contract::ShardReply> reply) {
          if (reply || reply.error().code() != Code::kUnimplemented) return done(std::move(reply));
          RowsCall<pb::InspectNeedsRequest, pb::InspectNeedsResponse, NeedsRead>::Start(
              calls_, wire, [this](auto... args) { read_->async()->InspectNeeds(args...); }, Explained(done));
        });
  }
  void Send(const contract::ListMachines& request, Answer done) {
    v1::ListMachinesRequest wire;
    ToWire(request, wire);
    RowsCall<v1::ListMachinesRequest, v1::MachineView, MachinesRead>::Start(
        calls_, std::move(wire), [this](auto... args) { fleet_->async()->ListMachines(args...); },
        Explained(std::move(done)));
  }
  void Send(const contract::ListActions& r, Answer d) { Start(r, &Fleet::ListActions, kListTimeout, std::move(d)); }
  void Send(const contract::ListClusters& r, Answer d) { Start(r, &Fleet::ListClusters, kListTimeout, std::move(d)); }
  void Send(const contract::Explain& r, Answer d) { Start(r, &Fleet::Explain, kCallTimeout, std::move(d)); }
  void Send(const contract::SetActuation& r, Answer d) { Start(r, &Fleet::SetActuation, kCallTimeout, std::move(d)); }
  void Send(const contract::RepairMachine& r, Answer d) { Start(r, &Fleet::RepairMachine, kCallTimeout, std::move(d)); }
  void Send(const contract::ForgetMachine& r, Answer d) { Start(r, &Fleet::ForgetMachine, kCallTimeout, std::move(d)); }
  void Send(const contract::ListForgotten& r, Answer d) { Start(r, &Fleet::ListForgotten, kListTimeout, std::move(d)); }
  void Send(const contract::RecallMachine& r, Answer d) { Start(r, &Fleet::RecallMachine, kCallTimeout, std::move(d)); }
  void Send(const contract::AcceptLosses& r, Answer d) { Start(r, &Fleet::AcceptLosses, kCallTimeout, std::move(d)); }
  void Send(const contract::DecommissionCluster& r, Answer d) {
    Start(r, &Fleet::DecommissionCluster, kCallTimeout, std::move(d));
  }

  template <class Request, class WireRequest, class WireReply>
  void Start(const Request& request, UnaryMethod<Fleet, WireRequest, WireReply> method, Duration timeout, Answer done) {
    WireRequest wire;
    ToWire(request, wire);
    calls_.Unary(
        fleet_->async(), method, std::move(wire), timeout, [](WireReply& reply) { return TakeReply(reply); },
        Explained(std::move(done)));
  }

  // The answer, with a word about shards that cannot give it.
  Answer Explained(Answer done) const {
    return [this, done = std::move(done)](Result<contract::ShardReply> reply) {
      if (reply || reply.error().code() != Code::kUnimplemented) return done(std::move(reply));
      done(Error(Code::kUnimplemented,
                 fmt::format("{} does not implement muster.v1.Fleet: it cannot be asked this", calls_.server())));
    };
  }

  const std::unique_ptr<pb::ShardRead::Stub> read_;
  const std::unique_ptr<v1::Fleet::Stub> fleet_;
  OpenCalls calls_;  // last: its end waits for answers, which use the rest
};

}  // namespace

Result<std::unique_ptr<contract::ShardPort>> MakeShardClient(const std::string& target, const TlsFiles& tls) {
  MUSTER_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel,
                          MakeChannel({.target = target,
                                       .tls = tls,
                                       .serves = {.kinds = {Identity::Kind::kShard}},
                                       .max_message_bytes = kLargeMessageBytes}));
  return std::make_unique<ShardClient>(target, channel);
}

}  // namespace muster::rpc
