#include "rpc/shard_client.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <utility>
#include <variant>

#include "bigfleet/v1alpha1/shardread.pb.h"
#include "muster/v1/fleet.pb.h"
#include "rpc/bounded_rows.h"
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
class RowsCall final : public grpc::ClientReadReactor<grpc::ByteBuffer> {
 public:
  using Done = std::function<void(Result<contract::ShardReply> reply)>;  // errors are explained

  static void Start(OpenCalls& calls, const std::shared_ptr<grpc::Channel>& channel, const char* path,
                    WireRequest request, Done done) {
    auto* open = new RowsCall(calls, std::move(request), std::move(done));  // until OnDone
    calls.Begin(open->context, kListTimeout);
    StartRows(channel, path, &open->context, &open->request_, open);
    open->StartRead(&open->bytes_);
    open->StartCall();
  }

  grpc::ClientContext context;

 private:
  RowsCall(OpenCalls& calls, WireRequest request, Done done)
      : calls_(calls), request_(std::move(request)), done_(std::move(done)) {}

  void OnReadDone(bool ok) override {
    if (!ok) return;
    wrong_ = AddRow();
    if (!wrong_.ok()) return context.TryCancel();
    this->StartRead(&bytes_);
  }
  Status AddRow() {
    MUSTER_RETURN_IF_ERROR(tally_.Add(bytes_.Length()));
    Row row;
    MUSTER_RETURN_IF_ERROR(ReadBounded(bytes_, kServerReplyBounds, row));
    return rows_.Add(row);
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
  grpc::ByteBuffer bytes_;  // of a row
  RowTally tally_;
  Rows rows_;
  Status wrong_;
  const Done done_;
};

class ShardClient final : public contract::ShardPort {
 public:
  ShardClient(const std::string& target, const std::shared_ptr<grpc::Channel>& channel)
      : channel_(channel), calls_("shard " + target, "row") {}

  void Ask(contract::ShardRequest request, Answer done) override {
    std::visit([&](const auto& typed) { Send(typed, std::move(done)); }, request);
  }

 private:
  // From Fleet, which says more, and from a shard of another make what every one says.
  void Send(const contract::InspectNeeds& request, Answer done) {
    pb::InspectNeedsRequest wire;
    ToWire(request, wire);
    RowsCall<pb::InspectNeedsRequest, v1::InspectNeedsResponse, NeedsRead>::Start(
        calls_, channel_, "/muster.v1.Fleet/InspectNeeds", wire,
        [this, wire, done = std::move(done)](Result<contract::ShardReply> reply) {
          if (reply || reply.error().code() != Code::kUnimplemented) return done(std::move(reply));
          RowsCall<pb::InspectNeedsRequest, pb::InspectNeedsResponse, NeedsRead>::Start(
              calls_, channel_, "/bigfleet.v1alpha1.ShardRead/InspectNeeds", wire, Explained(done));
        });
  }
  void Send(const contract::ListMachines& request, Answer done) {
    v1::ListMachinesRequest wire;
    ToWire(request, wire);
    RowsCall<v1::ListMachinesRequest, v1::MachineView, MachinesRead>::Start(
        calls_, channel_, "/muster.v1.Fleet/ListMachines", std::move(wire), Explained(std::move(done)));
  }
  void Send(const contract::ListActions& r, Answer d) {
    Start<v1::ListActionsRequest, v1::ListActionsResponse>(r, "/muster.v1.Fleet/ListActions", kListTimeout,
                                                           std::move(d));
  }
  void Send(const contract::ListClusters& r, Answer d) {
    Start<v1::ListClustersRequest, v1::ListClustersResponse>(r, "/muster.v1.Fleet/ListClusters", kListTimeout,
                                                             std::move(d));
  }
  void Send(const contract::Explain& r, Answer d) {
    Start<v1::ExplainRequest, v1::ExplainResponse>(r, "/muster.v1.Fleet/Explain", kCallTimeout, std::move(d));
  }
  void Send(const contract::SetActuation& r, Answer d) {
    Start<v1::SetActuationRequest, v1::SetActuationResponse>(r, "/muster.v1.Fleet/SetActuation", kCallTimeout,
                                                             std::move(d));
  }
  void Send(const contract::RepairMachine& r, Answer d) {
    Start<v1::RepairMachineRequest, v1::RepairMachineResponse>(r, "/muster.v1.Fleet/RepairMachine", kCallTimeout,
                                                               std::move(d));
  }
  void Send(const contract::ForgetMachine& r, Answer d) {
    Start<v1::ForgetMachineRequest, v1::ForgetMachineResponse>(r, "/muster.v1.Fleet/ForgetMachine", kCallTimeout,
                                                               std::move(d));
  }
  void Send(const contract::ListForgotten& r, Answer d) {
    Start<v1::ListForgottenRequest, v1::ListForgottenResponse>(r, "/muster.v1.Fleet/ListForgotten", kListTimeout,
                                                               std::move(d));
  }
  void Send(const contract::RecallMachine& r, Answer d) {
    Start<v1::RecallMachineRequest, v1::RecallMachineResponse>(r, "/muster.v1.Fleet/RecallMachine", kCallTimeout,
                                                               std::move(d));
  }
  void Send(const contract::AcceptLosses& r, Answer d) {
    Start<v1::AcceptLossesRequest, v1::AcceptLossesResponse>(r, "/muster.v1.Fleet/AcceptLosses", kCallTimeout,
                                                             std::move(d));
  }
  void Send(const contract::DecommissionCluster& r, Answer d) {
    Start<v1::DecommissionClusterRequest, v1::DecommissionClusterResponse>(r, "/muster.v1.Fleet/DecommissionCluster",
                                                                           kCallTimeout, std::move(d));
  }

  template <class WireRequest, class WireReply, class Request>
  void Start(const Request& request, const char* path, Duration timeout, Answer done) {
    WireRequest wire;
    ToWire(request, wire);
    calls_.BoundedUnary<WireReply>(
        channel_, path, std::move(wire), timeout, kServerReplyBounds, [](WireReply& reply) { return TakeReply(reply); },
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

  const std::shared_ptr<grpc::Channel> channel_;
  OpenCalls calls_;  // last: its end waits for answers, which use the rest
};

}  // namespace

Result<std::unique_ptr<contract::ShardPort>> MakeShardClient(const std::string& target, const TlsFiles& tls) {
  MUSTER_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel,
                          MakeChannel({.target = target,
                                       .tls = tls,
                                       .serves = {.kinds = {Identity::Kind::kShard}},
                                       .max_message_bytes = static_cast<int>(kServerReplyBounds.bytes)}));
  return std::make_unique<ShardClient>(target, channel);
}

}  // namespace muster::rpc
