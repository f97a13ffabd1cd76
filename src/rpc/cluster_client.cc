#include "rpc/cluster_client.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <variant>
#include <vector>

#include "host/parser.h"
#include "muster/v1/cluster.pb.h"
#include "rpc/agent_conversion.h"
#include "rpc/aging_channel.h"
#include "rpc/bounded_rows.h"
#include "rpc/cluster_conversion.h"
#include "rpc/open_calls.h"

namespace muster::rpc {
namespace {

constexpr Duration kCallTimeout = 10s;
constexpr Duration kListTimeout = 60s;

// A server's stream of rows, until it ends or this is destroyed. `Value` is what a row says.
template <class WireRequest, class Row, class Value>
class RowsFrom final : public OpenStream, grpc::ClientReadReactor<grpc::ByteBuffer> {
 public:
  using Take = std::function<void(Value)>;
  using Ended = std::function<void(Status)>;

  // `path` is that of the method; `explain` words how the call ended.
  RowsFrom(const std::shared_ptr<grpc::ChannelInterface>& channel, const char* path, WireRequest request, Take take,
           Ended ended, std::function<Status(Status)> explain)
      : request_(std::move(request)), take_(std::move(take)), ended_(std::move(ended)), explain_(std::move(explain)) {
    StartRows(channel, path, &context_, &request_, static_cast<grpc::ClientReadReactor<grpc::ByteBuffer>*>(this));
    this->StartRead(&bytes_);
    this->StartCall();
  }
  ~RowsFrom() override {
    std::unique_lock lock(mu_);
    closed_ = true;
    lock.unlock();
    context_.TryCancel();
    lock.lock();
    done_.wait(lock, [this] { return over_; });
  }
  RowsFrom(const RowsFrom&) = delete;
  RowsFrom& operator=(const RowsFrom&) = delete;

 private:
  bool closed() {
    const std::lock_guard lock(mu_);
    return closed_;
  }
  void OnReadDone(bool ok) override {
    if (!ok) return;
    auto value = TakeRow();
    if (!value) {
      wrong_ = value.error();
      return context_.TryCancel();
    }
    if (!closed()) take_(*std::move(value));
    this->StartRead(&bytes_);
  }
  Result<Value> TakeRow() {
    Row row;
    if (Status read = ReadBounded(bytes_, kServerReplyBounds, row); !read.ok()) return std::unexpected(std::move(read));
    return TakeReply(row);
  }
  void OnDone(const grpc::Status& status) override {
    const Status end = wrong_.ok() ? FromGrpc(status) : Status(Code::kInternal, "a bad row: " + wrong_.message());
    if (!closed()) ended_(explain_(end));
    const std::lock_guard lock(mu_);
    over_ = true;
    done_.notify_all();  // under the lock: after it, this may be gone
  }

  grpc::ClientContext context_;
  WireRequest request_;
  grpc::ByteBuffer bytes_;  // of a row
  Status wrong_;
  const Take take_;
  const Ended ended_;
  const std::function<Status(Status)> explain_;

  std::mutex mu_;
  std::condition_variable done_;
  bool closed_ = false;  // guarded by mu_
  bool over_ = false;    // guarded by mu_
};

struct Scheduler {
  Scheduler(const std::string& target, std::shared_ptr<grpc::ChannelInterface> to)
      : channel(std::move(to)), calls("scheduler " + target, "row") {}

  const std::shared_ptr<grpc::ChannelInterface> channel;
  OpenCalls calls;
};

class GrpcClusterClient final : public ClusterClient {
 public:
  explicit GrpcClusterClient(std::vector<std::unique_ptr<Scheduler>> schedulers) : schedulers_(std::move(schedulers)) {}

  void Ask(contract::ClusterRequest request, Done done) override {
    std::visit([&](const auto& typed) { Send(typed, std::move(done)); }, request);
  }

  std::unique_ptr<OpenStream> Watch(const contract::WatchCluster& what, Watcher watcher) override {
    v1::WatchRequest wire;
    ToWire(what, wire);
    const size_t index = preferred_;
    return std::make_unique<RowsFrom<v1::WatchRequest, v1::WatchEvent, contract::ClusterChange>>(
        schedulers_[index]->channel, "/muster.v1.Cluster/Watch", std::move(wire), std::move(watcher.changed),
        std::move(watcher.ended), [this, index](Status status) { return Explain(index, std::move(status)); });
  }

  std::unique_ptr<OpenStream> Logs(const contract::ReadLogs& what, LogReader reader) override {
    v1::LogsRequest wire;
    ToWire(what, wire);
    const size_t index = preferred_;
    return std::make_unique<RowsFrom<v1::LogsRequest, v1::LogChunk, contract::LogChunk>>(
        schedulers_[index]->channel, "/muster.v1.Cluster/Logs", std::move(wire), std::move(reader.chunk),
        std::move(reader.ended), [this, index](Status status) { return Explain(index, std::move(status)); });
  }

 private:
  void Send(const contract::RegisterNode& /*r*/, const Done& d) { RefuseNode(d); }
  void Send(const contract::Heartbeat& /*r*/, const Done& d) { RefuseNode(d); }
  void Send(const contract::ApplyWorkload& r, Done d) {
    Start<v1::ApplyWorkloadRequest, v1::Applied>(r, "/muster.v1.Cluster/ApplyWorkload", kCallTimeout, std::move(d));
  }
  void Send(const contract::ApplySpec& r, Done d) {
    Start<v1::ApplySpecRequest, v1::Applied>(r, "/muster.v1.Cluster/ApplySpec", kCallTimeout, std::move(d));
  }
  void Send(const contract::ApplyQuota& r, Done d) {
    Start<v1::ApplyQuotaRequest, v1::Applied>(r, "/muster.v1.Cluster/ApplyQuota", kCallTimeout, std::move(d));
  }
  void Send(const contract::DeleteObject& r, Done d) {
    Start<v1::DeleteObjectRequest, v1::Done>(r, "/muster.v1.Cluster/DeleteObject", kCallTimeout, std::move(d));
  }
  void Send(const contract::RetryWorkload& r, Done d) {
    Start<v1::RetryWorkloadRequest, v1::Done>(r, "/muster.v1.Cluster/RetryWorkload", kCallTimeout, std::move(d));
  }
  void Send(const contract::ScaleSet& r, Done d) {
    Start<v1::ScaleSetRequest, v1::Done>(r, "/muster.v1.Cluster/ScaleSet", kCallTimeout, std::move(d));
  }
  void Send(const contract::RestartSet& r, Done d) {
    Start<v1::RestartSetRequest, v1::Done>(r, "/muster.v1.Cluster/RestartSet", kCallTimeout, std::move(d));
  }
  void Send(const contract::CordonNode& r, Done d) {
    Start<v1::CordonNodeRequest, v1::Done>(r, "/muster.v1.Cluster/CordonNode", kCallTimeout, std::move(d));
  }
  void Send(const contract::DrainNode& r, Done d) {
    Start<v1::DrainNodeRequest, v1::Done>(r, "/muster.v1.Cluster/DrainNode", kCallTimeout, std::move(d));
  }
  void Send(const contract::AcceptNode& r, Done d) {
    Start<v1::AcceptNodeRequest, v1::Done>(r, "/muster.v1.Cluster/AcceptNode", kCallTimeout, std::move(d));
  }
  void Send(const contract::ReportMachines& r, Done d) {
    Start<v1::ReportMachinesRequest, v1::Done>(r, "/muster.v1.Cluster/ReportMachines", kCallTimeout, std::move(d));
  }
  void Send(const contract::ListNodes& r, Done d) {
    Start<v1::ListNodesRequest, v1::NodesListed>(r, "/muster.v1.Cluster/ListNodes", kListTimeout, std::move(d));
  }
  void Send(const contract::ListWorkloads& r, Done d) {
    Start<v1::ListWorkloadsRequest, v1::WorkloadsListed>(r, "/muster.v1.Cluster/ListWorkloads", kListTimeout,
                                                         std::move(d));
  }
  void Send(const contract::GetNode& r, Done d) {
    Start<v1::GetNodeRequest, v1::NodeView>(r, "/muster.v1.Cluster/GetNode", kCallTimeout, std::move(d));
  }
  void Send(const contract::GetWorkload& r, Done d) {
    Start<v1::GetWorkloadRequest, v1::WorkloadView>(r, "/muster.v1.Cluster/GetWorkload", kCallTimeout, std::move(d));
  }
  void Send(const contract::ListSets& r, Done d) {
    Start<v1::ListSetsRequest, v1::SetsListed>(r, "/muster.v1.Cluster/ListSets", kListTimeout, std::move(d));
  }
  void Send(const contract::ListQuotas& r, Done d) {
    Start<v1::ListQuotasRequest, v1::QuotasListed>(r, "/muster.v1.Cluster/ListQuotas", kListTimeout, std::move(d));
  }
  void Send(const contract::ListEvents& r, Done d) {
    Start<v1::ListEventsRequest, v1::EventsListed>(r, "/muster.v1.Cluster/ListEvents", kListTimeout, std::move(d));
  }
  void Send(const contract::GetSummary& r, Done d) {
    Start<v1::GetSummaryRequest, v1::Summary>(r, "/muster.v1.Cluster/GetSummary", kCallTimeout, std::move(d));
  }
  void Send(const contract::ExplainWorkload& r, Done d) {
    Start<v1::ExplainWorkloadRequest, v1::Explanation>(r, "/muster.v1.Cluster/ExplainWorkload", kCallTimeout,
                                                       std::move(d));
  }

  static void RefuseNode(const Done& done) {
    done(Error(Code::kUnimplemented, "nodes join by a stream of their own, not through this client"));
  }

  template <class WireRequest, class WireReply, class Request>
  void Start(const Request& request, const char* path, Duration timeout, Done done) {
    WireRequest wire;
    ToWire(request, wire);
    Try<WireReply>(std::move(wire), path, timeout, std::move(done), preferred_, schedulers_.size());
  }

  // Asks scheduler `index`, and the ones after it while `left` allows it.
  template <class WireReply, class WireRequest>
  void Try(WireRequest wire, const char* path, Duration timeout, Done done, size_t index, size_t left) {
    Scheduler& scheduler = *schedulers_[index];
    auto again = [this, wire, path, timeout, done = std::move(done), index,
                  left](Result<contract::ClusterReply> reply) {
      if (reply) {
        preferred_ = index;
        return done(std::move(reply));
      }
      if (reply.error().code() == Code::kUnavailable && left > 1) {
        return Try<WireReply>(wire, path, timeout, done, Next(index), left - 1);
      }
      done(std::unexpected(Explain(index, reply.error())));
    };
    scheduler.calls.BoundedUnary<WireReply>(
        scheduler.channel, path, std::move(wire), timeout, kServerReplyBounds,
        [](WireReply& reply) { return TakeReply(reply); }, std::move(again));
  }

  size_t Next(size_t index) const { return (index + 1) % schedulers_.size(); }

  // The status, with a word about schedulers that cannot answer; the next one is asked first if this is gone.
  Status Explain(size_t index, Status status) {
    const std::string& server = schedulers_[index]->calls.server();
    if (status.code() == Code::kUnavailable) {
      size_t expected = index;
      preferred_.compare_exchange_strong(expected, Next(index));
      if (!status.message().starts_with(server)) status = {status.code(), server + ": " + status.message()};
    }
    if (status.code() == Code::kUnimplemented) {
      return {status.code(), fmt::format("{} does not implement muster.v1.Cluster: it cannot be asked this", server)};
    }
    return status;
  }

  std::atomic<size_t> preferred_ = 0;
  const std::vector<std::unique_ptr<Scheduler>> schedulers_;  // last: their end waits for answers, which use the rest
};

}  // namespace

Result<std::unique_ptr<ClusterClient>> MakeClusterClient(const std::string& targets, const TlsFiles& tls,
                                                         const std::string& cluster) {
  std::vector<std::unique_ptr<Scheduler>> schedulers;
  for (const std::string_view part : host::SplitAt(targets, ',')) {
    const std::string target(part);
    MUSTER_ASSIGN_OR_RETURN(
        const std::shared_ptr<grpc::ChannelInterface> channel,
        MakeAgingChannel(
            {.target = target,
             .tls = tls,
             .serves = {.kinds = {Identity::Kind::kScheduler, Identity::Kind::kCluster}, .cluster = cluster},
             .max_message_bytes = static_cast<int>(kServerReplyBounds.bytes),
             .longest_reconnect = 1s}));
    schedulers.push_back(std::make_unique<Scheduler>(target, channel));
  }
  return std::make_unique<GrpcClusterClient>(std::move(schedulers));
}

}  // namespace muster::rpc
