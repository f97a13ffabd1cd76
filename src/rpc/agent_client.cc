#include "rpc/agent_client.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <map>
#include <mutex>
#include <utility>
#include <variant>
#include <vector>

#include "host/system_clock.h"
#include "muster/v1/agent.pb.h"
#include "persys/agent/v1/agent.pb.h"
#include "rpc/agent_conversion.h"
#include "rpc/aging_channel.h"
#include "rpc/bounded_rows.h"
#include "rpc/open_calls.h"
#include "rpc/persys_agent_conversion.h"
#include "rpc/worker.h"

namespace muster::rpc {
namespace {

namespace pb = persys::agent::v1;

constexpr Duration kIdle = 10min;
constexpr Duration kLongestReading = 24h;  // of logs

bool Mentions(const std::string& text, std::string_view word) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  };
  return !std::ranges::search(text, word, same).empty();
}

bool SaysNotFound(const std::string& text) { return Mentions(text, "not found"); }
bool SaysNoRoom(const std::string& text) {
  return Mentions(text, "INSUFFICIENT_RESOURCES") || Mentions(text, "insufficient resources") ||
         Mentions(text, "RESOURCE_QUOTA_EXCEEDED") || Mentions(text, "admission");
}
bool IsSilence(Code code) { return code == Code::kUnavailable || code == Code::kDeadlineExceeded; }

// Agents of other makes say with texts what the protocol has codes for.
Result<contract::AgentReply> Corrected(const contract::AgentRequest& request, Result<contract::AgentReply> reply) {
  const Code code = reply ? Code::kOk : reply.error().code();
  if (IsSilence(code)) return reply;
  if (std::holds_alternative<contract::GetStatusOnAgent>(request)) {
    if (!reply && SaysNotFound(reply.error().message())) return Error(Code::kNotFound, reply.error().message());
  } else if (std::holds_alternative<contract::DeleteOnAgent>(request)) {
    const auto* deleted = reply ? std::get_if<contract::DeletedOnAgent>(&*reply) : nullptr;
    const bool gone = deleted != nullptr ? !deleted->success && SaysNotFound(deleted->message)
                                         : !reply && (code == Code::kNotFound || SaysNotFound(reply.error().message()));
    if (gone) return contract::DeletedOnAgent{.success = true, .message = "the node does not have it"};
  } else if (std::holds_alternative<contract::ApplyOnAgent>(request)) {
    const auto* applied = reply ? std::get_if<contract::AppliedOnAgent>(&*reply) : nullptr;
    const std::string& text = applied != nullptr ? applied->message : reply ? std::string() : reply.error().message();
    if ((applied == nullptr || !applied->applied) && SaysNoRoom(text)) return Error(Code::kResourceExhausted, text);
  }
  return reply;
}

bool HasStamp(const contract::AgentRequest& request) {
  if (const auto* apply = std::get_if<contract::ApplyOnAgent>(&request)) return apply->stamp.epoch != 0;
  if (const auto* remove = std::get_if<contract::DeleteOnAgent>(&request)) return remove->stamp.epoch != 0;
  return false;
}

// One reading of logs: chunk after chunk, as fast as the sink takes them. Frees itself.
class LogsCall final : public grpc::ClientReadReactor<grpc::ByteBuffer> {
 public:
  static void Start(OpenCalls& calls, const std::shared_ptr<grpc::ChannelInterface>& channel,
                    const contract::ReadLogs& request, std::shared_ptr<contract::LogsSink> sink) {
    auto* call = new LogsCall(calls, std::move(sink));
    ToWire(request, call->request_);
    calls.Begin(call->context, kLongestReading);
    StartRows(channel, "/muster.v1.Agent/Logs", &call->context, &call->request_, call);
    call->AddHold();
    call->StartRead(&call->bytes_);
    call->sink_->OnGone([cancel = call->cancel_] { cancel->Run(); });
    call->StartCall();  // last: a call that fails at once has deleted itself when this comes back
  }

  grpc::ClientContext context;

 private:
  // Cancels the call while it lives.
  struct Cancel {
    std::mutex mu;
    grpc::ClientContext* context = nullptr;  // guarded by mu; null: the call has ended
    void Run() {
      const std::lock_guard lock(mu);
      if (context != nullptr) context->TryCancel();
    }
  };

  LogsCall(OpenCalls& calls, std::shared_ptr<contract::LogsSink> sink) : calls_(calls), sink_(std::move(sink)) {
    cancel_->context = &context;
  }

  void OnReadDone(bool ok) override {
    if (!ok) return RemoveHold();
    auto chunk = TakeChunk();
    if (!chunk) {
      wrong_ = chunk.error();
      context.TryCancel();
      return RemoveHold();
    }
    sink_->WriteThen(*std::move(chunk), [this](bool more) {
      if (more) return StartRead(&bytes_);
      context.TryCancel();
      RemoveHold();
    });
  }
  Result<contract::LogChunk> TakeChunk() {
    v1::LogChunk chunk;
    if (Status read = ReadBounded(bytes_, kAgentReplyBounds, chunk); !read.ok())
      return std::unexpected(std::move(read));
    return TakeReply(chunk);
  }
  void OnDone(const grpc::Status& status) override {
    {
      const std::lock_guard lock(cancel_->mu);
      cancel_->context = nullptr;
    }
    sink_->End(!wrong_.ok() ? calls_.BadAnswer(wrong_) : status.ok() ? Status() : calls_.Explain(status));
    calls_.End(std::unique_ptr<LogsCall>(this));
  }

  OpenCalls& calls_;
  const std::shared_ptr<contract::LogsSink> sink_;
  const std::shared_ptr<Cancel> cancel_ = std::make_shared<Cancel>();
  v1::LogsRequest request_;
  grpc::ByteBuffer bytes_;  // of a chunk
  Status wrong_;
};

// The agent at one address.
class Connection {
 public:
  Connection(const std::string& address, const std::shared_ptr<grpc::ChannelInterface>& channel)
      : channel_(channel), calls_("agent " + address, "answer") {}

  void Ask(contract::AgentRequest request, Duration timeout, AgentClient::Done done) {
    const auto asked = std::make_shared<const contract::AgentRequest>(std::move(request));
    const bool stamped = HasStamp(*asked);
    if (!stamped && serves_ == Serves::kForeign) return AskForeign(asked, timeout, std::move(done));
    Dispatch<Native>(*asked, timeout,
                     [this, asked, stamped, timeout, done = std::move(done)](Result<contract::AgentReply> reply) {
                       const bool unknown = !reply && reply.error().code() == Code::kUnimplemented;
                       if (unknown && !stamped) {
                         serves_ = Serves::kForeign;
                         return AskForeign(asked, timeout, done);
                       }
                       if (reply) serves_ = Serves::kNative;
                       done(std::move(reply));
                     });
  }
  void ReadLogs(const contract::ReadLogs& request, std::shared_ptr<contract::LogsSink> sink) {
    LogsCall::Start(calls_, channel_, request, std::move(sink));
  }

 private:
  enum class Serves : uint8_t { kUnknown, kNative, kForeign };

  struct Native {};
  struct Foreign {};

  void AskForeign(const std::shared_ptr<const contract::AgentRequest>& asked, Duration timeout,
                  AgentClient::Done done) {
    Dispatch<Foreign>(*asked, timeout, [asked, done = std::move(done)](Result<contract::AgentReply> reply) {
      done(Corrected(*asked, std::move(reply)));
    });
  }

  template <class Service, class Done>
  void Dispatch(const contract::AgentRequest& request, Duration timeout, Done done) {
    std::visit([&](const auto& typed) { Send(Service(), typed, timeout, std::move(done)); }, request);
  }

  using Done = AgentClient::Done;

  void Send(Native /*by*/, const contract::ApplyOnAgent& r, Duration t, Done d) {
    Call<v1::ApplyOnAgent, v1::AppliedOnAgent>("/muster.v1.Agent/Apply", r, t, std::move(d));
  }
  void Send(Native /*by*/, const contract::DeleteOnAgent& r, Duration t, Done d) {
    Call<v1::DeleteOnAgent, v1::DeletedOnAgent>("/muster.v1.Agent/Delete", r, t, std::move(d));
  }
  void Send(Native /*by*/, const contract::GetStatusOnAgent& r, Duration t, Done d) {
    Call<v1::GetStatusOnAgent, v1::WorkloadStatus>("/muster.v1.Agent/GetStatus", r, t, std::move(d));
  }
  void Send(Native /*by*/, const contract::ListOnAgent& r, Duration t, Done d) {
    Call<v1::ListOnAgent, v1::ListedOnAgent>("/muster.v1.Agent/List", r, t, std::move(d));
  }
  void Send(Foreign /*by*/, const contract::ApplyOnAgent& r, Duration t, Done d) {
    Call<pb::ApplyWorkloadRequest, pb::ApplyWorkloadResponse>("/persys.agent.v1.AgentService/ApplyWorkload", r, t,
                                                              std::move(d));
  }
  void Send(Foreign /*by*/, const contract::DeleteOnAgent& r, Duration t, Done d) {
    Call<pb::DeleteWorkloadRequest, pb::DeleteWorkloadResponse>("/persys.agent.v1.AgentService/DeleteWorkload", r, t,
                                                                std::move(d));
  }
  void Send(Foreign /*by*/, const contract::GetStatusOnAgent& r, Duration t, Done d) {
    Call<pb::GetWorkloadStatusRequest, pb::GetWorkloadStatusResponse>("/persys.agent.v1.AgentService/GetWorkloadStatus",
                                                                      r, t, std::move(d));
  }
  void Send(Foreign /*by*/, const contract::ListOnAgent& r, Duration t, Done d) {
    Call<pb::ListWorkloadsRequest, pb::ListWorkloadsResponse>("/persys.agent.v1.AgentService/ListWorkloads", r, t,
                                                              std::move(d));
  }

  template <class WireRequest, class WireReply, class Request>
  void Call(const char* path, const Request& request, Duration timeout, Done done) {
    WireRequest wire;
    ToWire(request, wire);
    calls_.BoundedUnary<WireReply>(
        channel_, path, std::move(wire), timeout, kAgentReplyBounds, [](WireReply& reply) { return TakeReply(reply); },
        std::move(done));
  }

  const std::shared_ptr<grpc::ChannelInterface> channel_;
  std::atomic<Serves> serves_ = Serves::kUnknown;
  OpenCalls calls_;  // last: its end waits for answers, which use the rest
};

class GrpcAgentClient final : public AgentClient {
 public:
  GrpcAgentClient(TlsFiles tls, std::string cluster) : tls_(std::move(tls)), cluster_(std::move(cluster)) {}

  void Ask(const AgentTarget& agent, contract::AgentRequest request, Duration timeout, Done done) override {
    auto connection = ConnectionTo(agent);
    if (!connection) return done(std::unexpected(connection.error()));
    (*connection)->Ask(std::move(request), timeout, std::move(done));
  }
  void ReadLogs(const AgentTarget& agent, const contract::ReadLogs& request,
                std::shared_ptr<contract::LogsSink> sink) override {
    auto connection = ConnectionTo(agent);
    if (!connection) return sink->End(connection.error());
    (*connection)->ReadLogs(request, std::move(sink));
  }

 private:
  struct Entry {
    std::shared_ptr<Connection> connection;
    MonoTime used;
  };

  Result<Connection*> ConnectionTo(const AgentTarget& agent) {
    const MonoTime now = clock_.Read().mono;
    const std::pair key(agent.address, agent.node);
    const std::lock_guard lock(mu_);
    if (const auto found = entries_.find(key); found != entries_.end()) {
      found->second.used = now;
      return found->second.connection.get();
    }
    CloseIdle(now);
    MUSTER_ASSIGN_OR_RETURN(
        const std::shared_ptr<grpc::ChannelInterface> channel,
        MakeAgingChannel({.target = agent.address,
                          .tls = tls_,
                          .serves = {.kinds = {Identity::Kind::kNode}, .cluster = cluster_, .node = agent.node},
                          .max_message_bytes = kAgentReplyBounds.bytes,
                          .transparent_retries = false,
                          .longest_reconnect = 1s}));
    auto made = std::make_shared<Connection>(agent.address, channel);
    Connection* connection = made.get();
    entries_.emplace(key, Entry{.connection = std::move(made), .used = now});
    return connection;
  }

  // Under mu_. A connection ends on a thread that may wait for it: no call has begun for longer than any call lasts,
  // but for a reading of logs, which is cut.
  void CloseIdle(MonoTime now) {
    for (auto entry = entries_.begin(); entry != entries_.end();) {
      if (now - entry->second.used < kIdle) {
        ++entry;
        continue;
      }
      closer_.Post([idle = std::move(entry->second.connection)]() mutable { idle.reset(); });
      entry = entries_.erase(entry);
    }
  }

  const TlsFiles tls_;
  const std::string cluster_;
  const host::SystemClock clock_;
  Worker closer_{1};
  std::mutex mu_;
  // By address and node. Guarded by mu_; last: its end waits for answers.
  std::map<std::pair<std::string, std::string>, Entry> entries_;
};

class AgentAt final : public contract::AgentPort {
 public:
  AgentAt(AgentClient& client, AgentTarget agent, Duration timeout)
      : client_(client), agent_(std::move(agent)), timeout_(timeout) {}
  void Ask(contract::AgentRequest request, Done done) override {
    client_.Ask(agent_, std::move(request), timeout_, std::move(done));
  }

 private:
  AgentClient& client_;
  const AgentTarget agent_;
  const Duration timeout_;
};

}  // namespace

Result<std::unique_ptr<AgentClient>> MakeAgentClient(const TlsFiles& tls, const std::string& cluster) {
  if (tls.given()) {
    MUSTER_ASSIGN_OR_RETURN(const TlsMaterial fit, ReadTlsMaterial(tls));  // for its error only
  }
  return std::make_unique<GrpcAgentClient>(tls, cluster);
}

std::unique_ptr<contract::AgentPort> MakeAgentPort(AgentClient& client, AgentTarget agent, Duration timeout) {
  return std::make_unique<AgentAt>(client, std::move(agent), timeout);
}

}  // namespace muster::rpc
