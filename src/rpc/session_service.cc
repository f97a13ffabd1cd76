#include <fmt/format.h>
#include <google/protobuf/arena.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "base/log.h"
#include "bigfleet/v1alpha1/shard.grpc.pb.h"
#include "host/system_clock.h"
#include "model/names.h"
#include "rpc/bounded_read.h"
#include "rpc/channel.h"
#include "rpc/rollup_conversion.h"
#include "rpc/send_queue.h"
#include "rpc/server_credentials.h"
#include "rpc/session_conversion.h"
#include "rpc/shard_services.h"
#include "rpc/worker.h"

namespace muster::rpc {
namespace {

namespace pb = bigfleet::v1alpha1;
using grpc::ByteBuffer;

constexpr size_t kReaders = 2;
constexpr size_t kMostUntaken = 16;         // messages of a stream that the shard has not looked at, beside a roll-up
constexpr uint8_t kRollupTag = 2 << 3 | 2;  // how the bytes of OperatorMessage.rollup begin

// What all streams share.
struct Shared {
  contract::SessionPort& shard;
  const SessionEvents events;
  const host::SystemClock clock = {};
  // Last: what they still have to do when the service ends uses the rest. Sending has a thread of its own, so that
  // acknowledgements are not behind roll-ups.
  Worker senders{1};
  Worker readers{kReaders};
};

bool BeginsWith(ByteBuffer bytes, uint8_t first) {
  grpc::ProtoBufferReader reader(&bytes);
  const void* data = nullptr;
  int size = 0;
  while (reader.status().ok() && reader.Next(&data, &size)) {
    if (size > 0) return *static_cast<const uint8_t*>(data) == first;
  }
  return false;
}

Status NoHello() { return {Code::kInvalidArgument, "hello: missing; it must be the first message"}; }

Status Silent() {
  return {Code::kDeadlineExceeded, "hello: the stream was opened and nothing was said; say hello, and connect again"};
}

Status NotAMessage() {
  return {Code::kInvalidArgument, "payload: cannot be parsed; send an OperatorMessage, with texts in UTF-8"};
}

// A refusal of the bounds as it is; of the parser in the words of this protocol.
Status Parse(const Heard& heard, ByteBuffer& bytes, const MessageBounds& bounds, pb::OperatorMessage& message) {
  Status read = heard.Read(bytes, bounds, message);
  return read.code() == Code::kInvalidArgument ? NotAMessage() : read;
}

template <class Message>
ByteBuffer ToBytes(const Message& message) {
  ByteBuffer bytes;
  bool own = false;
  const grpc::Status written = grpc::SerializationTraits<Message>::Serialize(message, &bytes, &own);
  MUSTER_CHECK(written.ok(), "{}", written.error_message());
  return bytes;
}

// One stream, and the shard's way to speak into it; whoever of gRPC, the port and the workers is last to let go of it
// ends its life.
//
// It works on bytes: what comes is parsed where there is time for it, and a roll-up that is overtaken not at all.
// Four rules make it safe to be spoken to by many threads:
//   1. Whoever sets `writing_` may start a write or finish the stream, and nobody else until that is done. So there is
//      one write at a time, and the stream is finished once, with nothing under way.
//   2. Once `end_` is set nothing is queued, posted to a worker or read; and it is set before the stream is finished.
//      So after gRPC is done with the stream (OnDone) nothing touches it or the service any more.
//   3. No more is read while kMostUntaken messages wait for the port to look at them, and no roll-up while it has not
//      looked at the one before it: what a peer sends faster stays in the connection.
//   4. The port is called under `port_mu_`, which Send and Close do not take: calls for one stream come one at a time,
//      Closed is the last, and the port may call the sink from inside.
class Stream final : public grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>,
                     public contract::SessionSink,
                     public std::enable_shared_from_this<Stream> {
 public:
  Stream(Shared& shared, std::optional<Identity> caller) : shared_(shared), caller_(std::move(caller)) {}

  static Stream* Begin(Shared& shared, std::optional<Identity> caller) {
    const auto stream = std::make_shared<Stream>(shared, std::move(caller));
    stream->self_ = stream;
    stream->heard_.Await([weak = std::weak_ptr(stream)] {
      if (const auto silent = weak.lock()) silent->Close(Silent());
    });
    stream->StartRead(&stream->in_);
    return stream.get();
  }

  void Send(contract::ShardMessage message) override {
    const std::lock_guard lock(mu_);
    if (end_) return;
    queue_.Push(std::move(message));
    if (queue_.overlong()) {
      queue_.Clear();
      SetEnd({Code::kResourceExhausted, "too much waits to be read by this cluster; read faster, and connect again"});
    }
    PostWrite();
  }

  // A peer that has not read for long, such as one whose session was replaced, hears of the end and of nothing else.
  void Close(Status status) override {
    const std::lock_guard lock(mu_);
    if (queue_.lengthy()) queue_.Clear();
    SetEnd(std::move(status));
    PostWrite();
  }

 private:
  // --- from the cluster

  void OnReadDone(bool ok) override {
    if (!ok) return HalfClose();
    Receive();
    const std::lock_guard lock(mu_);
    if (end_) return;
    paused_ = untaken_ >= kMostUntaken;
    if (!paused_) StartRead(&in_);
  }

  // Lives until the port has looked at a message.
  std::shared_ptr<void> Untaken() {
    const std::lock_guard lock(mu_);
    ++untaken_;
    return {this, [self = shared_from_this()](void* /*stream*/) { self->Taken(); }};
  }
  void Taken() {
    const std::lock_guard lock(mu_);
    --untaken_;
    if (end_ || !std::exchange(paused_, false)) return;
    shared_.senders.Post([self = shared_from_this()] {
      const std::lock_guard again(self->mu_);  // so the stream is finished after the read has begun
      if (!self->end_) self->StartRead(&self->in_);
    });
  }

  void Receive() {
    if (greeted_ && BeginsWith(in_, kRollupTag)) return QueueRollup(std::exchange(in_, {}));
    pb::OperatorMessage message;
    if (Status read = Parse(heard_, in_, {}, message); !read.ok()) return Close(std::move(read));
    if (!greeted_ && !message.has_hello()) return Close(NoHello());
    switch (message.payload_case()) {
      case pb::OperatorMessage::kHello: return Greet(*message.mutable_hello());
      case pb::OperatorMessage::kRollup: return QueueRollup(ToBytes(message));
      case pb::OperatorMessage::kBootstrapResponse:
        return Pass(TakeBootstrapResponse(*message.mutable_bootstrap_response()));
      case pb::OperatorMessage::kReclaimAck: return Pass(TakeReclaimAck(*message.mutable_reclaim_ack()));
      case pb::OperatorMessage::PAYLOAD_NOT_SET: break;
    }
    if (std::exchange(warned_, true)) return;
    log::Warn("a cluster sends messages of a kind that is not known here", {{"cluster", cluster_}});
  }

  void Greet(pb::Hello& wire) {
    Result<contract::Hello> hello = TakeHello(wire);
    if (greeted_) return GreetAgain(std::move(hello));
    if (!hello) return Close(hello.error());
    if (caller_ && caller_->id != hello->cluster_id) {
      shared_.events.identity_rejected();
      return Close(
          {Code::kPermissionDenied, fmt::format("hello.cluster_id: {} may not speak for cluster {}",
                                                model::Quoted(caller_->ToString()), model::Quoted(hello->cluster_id))});
    }
    greeted_ = true;
    heard_.Said();
    cluster_ = hello->cluster_id;
    const std::lock_guard lock(port_mu_);
    if (closed_) return;
    session_ = shared_.shard.Open(*std::move(hello), shared_from_this());
  }

  // The shard acknowledges it once more. A stream speaks for one cluster from its first Hello to its end, so one that
  // names another cluster changes nothing.
  void GreetAgain(Result<contract::Hello> hello) {
    if (hello && hello->cluster_id == cluster_) return Pass(std::move(hello));
    log::Warn("a cluster says Hello again as another; it is ignored",
              {{"cluster", cluster_}, {"as", hello ? hello->cluster_id : std::string()}});
  }

  template <class Message>
  void Pass(Result<Message> message) {
    if (!message) return Close(message.error());
    Tell([&](contract::SessionPort& shard) { shard.Receive(*session_, *std::move(message), Untaken()); });
  }

  // The cluster says no more, or is gone. A roll-up that it sent still counts.
  void HalfClose() {
    if (!greeted_) return Close(NoHello());
    const std::lock_guard lock(mu_);
    half_closed_ = true;
    if (!reading_rollup_) EndInGoodOrder();
  }

  // Under mu_.
  void EndInGoodOrder() {
    SetEnd({});
    PostWrite();
  }

  // --- roll-ups: one is read and looked at, one waits

  void QueueRollup(const ByteBuffer& bytes) {  // copies share the bytes
    bool replaced = false;
    {
      const std::lock_guard lock(mu_);
      if (end_) return;
      replaced = waiting_.has_value();
      waiting_ = bytes;
      if (!std::exchange(reading_rollup_, true)) PostRead();
    }
    if (replaced) shared_.events.rollup_replaced();
  }

  // Under mu_, by who set `reading_rollup_`.
  void PostRead() {
    shared_.readers.Post([self = shared_from_this()] { self->ReadWaiting(); });
  }

  void ReadWaiting() {
    std::optional<ByteBuffer> bytes;
    {
      const std::lock_guard lock(mu_);
      bytes = std::exchange(waiting_, std::nullopt);
    }
    const std::shared_ptr<void> until_taken(this,
                                            [self = shared_from_this()](void* /*stream*/) { self->RollupTaken(); });
    if (bytes) {
      const MonoTime start = shared_.clock.Read().mono;
      Result<contract::Rollup> rollup = Read(*bytes);
      shared_.events.rollup_decoded(shared_.clock.Read().mono - start);
      Tell([&](contract::SessionPort& shard) {
        if (!rollup) return shard.RefuseRollup(*session_, rollup.error(), until_taken);
        shard.Receive(*session_, *std::move(rollup), until_taken);
      });
    }
  }

  void RollupTaken() {
    const std::lock_guard lock(mu_);
    if (end_) return;
    if (waiting_) return PostRead();
    reading_rollup_ = false;
    if (half_closed_) EndInGoodOrder();
  }

  Result<contract::Rollup> Read(ByteBuffer& bytes) {
    google::protobuf::Arena arena;  // hundreds of rows of small parts, freed at once
    auto& message = *google::protobuf::Arena::CreateMessage<pb::OperatorMessage>(&arena);
    if (Status read = Parse(heard_, bytes, kRollupBounds, message); !read.ok()) return std::unexpected(std::move(read));
    if (!message.has_rollup()) return std::unexpected(NotAMessage());
    return ReadRollup(message.rollup(), profiles_);
  }

  // --- to the port

  template <class Call>
  void Tell(const Call& call) {
    const std::lock_guard lock(port_mu_);
    if (session_ && !closed_) call(shared_.shard);
  }

  void Farewell() {
    const std::lock_guard lock(port_mu_);
    if (std::exchange(closed_, true) || !session_) return;
    shared_.shard.Closed(*session_);
  }

  // --- to the cluster

  // Under mu_. The port hears of it at once: flushing what is queued may take as long as the peer likes.
  void SetEnd(Status status) {
    if (end_) return;
    end_ = std::move(status);
    waiting_.reset();
    shared_.readers.Post([self = shared_from_this()] { self->Farewell(); });
  }

  // Under mu_. Never on the thread of whoever speaks: a write may go as far as the socket.
  void PostWrite() {
    if (std::exchange(writing_, true)) return;
    shared_.senders.Post([self = shared_from_this()] { self->WriteNext(); });
  }

  // Called by who holds `writing_`.
  void WriteNext() {
    std::optional<contract::ShardMessage> next;
    std::optional<Status> end;
    bool more = false;
    {
      const std::lock_guard lock(mu_);
      next = queue_.Pop();
      more = !queue_.empty();
      if (!next) {
        end = end_;
        writing_ = end.has_value();  // never given back once the stream is finished
      }
    }
    if (next) {
      pb::ShardMessage message;
      ToWire(*next, message);
      out_ = ToBytes(message);
      // What another follows goes out with it. Not so the first: gRPC would keep it, and not ask for the next.
      grpc::WriteOptions options;
      if (std::exchange(begun_, true) && more) options.set_buffer_hint();
      StartWrite(&out_, options);
    } else if (end) {
      Finish(ToGrpc(*end));
    }
  }

  void OnWriteDone(bool ok) override {
    if (!ok) Break();
    WriteNext();
  }
  void OnCancel() override {
    Break();
    const std::lock_guard lock(mu_);
    PostWrite();
  }
  void Break() {
    const std::lock_guard lock(mu_);
    queue_.Clear();
    SetEnd({Code::kCancelled, "the cluster is gone"});
  }

  void OnDone() override { const std::shared_ptr<Stream> last = std::move(self_); }

  Shared& shared_;
  const std::optional<Identity> caller_;
  std::shared_ptr<Stream> self_;  // until OnDone

  // Of the thread that receives.
  ByteBuffer in_;
  Heard heard_;
  bool greeted_ = false;
  bool warned_ = false;
  std::string cluster_;

  // Of who holds `writing_`.
  ByteBuffer out_;
  bool begun_ = false;

  ProfileTable profiles_;  // of who reads a roll-up

  std::mutex port_mu_;
  std::optional<contract::SessionId> session_;  // guarded by port_mu_: once the port knows the stream
  bool closed_ = false;                         // guarded by port_mu_: it hears no more of it

  std::mutex mu_;  // taken after port_mu_, if both
  // Guarded by mu_.
  SendQueue queue_;
  std::optional<ByteBuffer> waiting_;
  bool reading_rollup_ = false;  // until the port has looked at it
  bool half_closed_ = false;
  size_t untaken_ = 0;   // messages beside roll-ups that the port has not looked at
  bool paused_ = false;  // nothing is read until one is taken
  bool writing_ = false;
  std::optional<Status> end_;  // what the stream ends with, once that is certain
};

class SessionService final : public pb::Shard::WithRawCallbackMethod_Session<pb::Shard::Service> {
 public:
  SessionService(contract::SessionPort& shard, SessionEvents events)
      : shared_{.shard = shard, .events = std::move(events)} {}

 private:
  using pb::Shard::Service::Session;
  grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>* Session(grpc::CallbackServerContext* context) override {
    return Stream::Begin(shared_, CallerOf(*context));
  }

  Shared shared_;
};

}  // namespace

std::shared_ptr<grpc::Service> MakeSessionService(contract::SessionPort& shard, SessionEvents events) {
  return std::make_shared<SessionService>(shard, std::move(events));
}

}  // namespace muster::rpc
