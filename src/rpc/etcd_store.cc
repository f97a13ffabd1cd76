#include "rpc/etcd_store.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "host/system_clock.h"
#include "rpc/etcd_connection.h"
#include "rpc/etcd_conversion.h"
#include "rpc/etcd_listing.h"
#include "rpc/etcd_watch.h"

namespace muster::rpc {
namespace {

namespace pb = etcdserverpb;
using store::LeaseId;
using store::Revision;

MonoTime Mono() { return host::SystemClock().Read().mono; }
Status LeaseEnded() { return {Code::kNotFound, "the lease has ended"}; }

// Request and reply of one call, over all its attempts.
template <class Request, class Reply>
struct Messages {
  Request request;
  Reply reply;
};

// One renewal: LeaseKeepAlive is a stream, of which one question and its answer are used.
class KeepAliveOnce final : public grpc::ClientBidiReactor<pb::LeaseKeepAliveRequest, pb::LeaseKeepAliveResponse> {
 public:
  using Shared = std::shared_ptr<Messages<pb::LeaseKeepAliveRequest, pb::LeaseKeepAliveResponse>>;
  // Frees itself.
  KeepAliveOnce(EtcdMember& member, grpc::ClientContext* context, Shared messages, EtcdCall::Finish finish)
      : messages_(std::move(messages)), finish_(std::move(finish)) {
    member.lease->async()->LeaseKeepAlive(context, this);
    StartWriteLast(&messages_->request, grpc::WriteOptions());
    StartRead(&messages_->reply);
    StartCall();
  }

 private:
  void OnReadDone(bool ok) override { answered_ = ok; }
  void OnDone(const grpc::Status& status) override {
    const grpc::Status none(grpc::StatusCode::UNAVAILABLE, "the stream ended without an answer");
    finish_(status.ok() && !answered_ ? none : status);
    delete this;
  }

  const Shared messages_;
  const EtcdCall::Finish finish_;
  bool answered_ = false;
};

class EtcdStore final : public store::Store {
 public:
  explicit EtcdStore(std::unique_ptr<EtcdConnection> connection) : connection_(std::move(connection)) {}
  ~EtcdStore() override { connection_->Shutdown(); }
  EtcdStore(const EtcdStore&) = delete;
  EtcdStore& operator=(const EtcdStore&) = delete;

  void Range(store::KeyRange range, Duration timeout, RangeDone done) override {
    NextPage(std::make_shared<EtcdListing>(range, prefix(), timeout, Mono()), std::move(done));
  }

  void Commit(store::Transaction transaction, Duration timeout, CommitDone done) override {
    if (Status status = store::Validate(transaction); !status.ok()) {
      return connection_->schedule().After({}, [status, done = std::move(done)] { done(contract::Unknown{status}); });
    }
    const auto messages = std::make_shared<Messages<pb::TxnRequest, pb::TxnResponse>>();
    messages->request = ToWire(transaction, prefix());
    connection_->Call({.start =
                           [messages](EtcdMember& member, grpc::ClientContext* context, EtcdCall::Finish finish) {
                             member.kv->async()->Txn(context, &messages->request, &messages->reply, std::move(finish));
                           },
                       .done =
                           [messages, done = std::move(done)](const Status& status, int) {
                             if (!status.ok()) return done(contract::Unknown{status});
                             const Revision revision = messages->reply.header().revision();
                             if (messages->reply.succeeded()) return done(contract::Committed{revision});
                             done(contract::Conflict{revision});
                           },
                       .timeout = timeout,
                       .repeatable = false});
  }

  std::unique_ptr<store::WatchHandle> Watch(store::KeyRange range, Revision from,
                                            store::WatchHandler handler) override {
    auto gate = std::make_shared<store::WatchGate>(std::move(handler));
    const auto watch = std::make_shared<EtcdWatch>(*connection_, std::move(range), from, gate);
    connection_->schedule().After({}, [watch] { watch->Start(); });
    return std::make_unique<store::WatchHandle>(std::move(gate));
  }

  void Grant(Duration ttl, Duration timeout, LeaseDone done) override {
    const auto messages = std::make_shared<Messages<pb::LeaseGrantRequest, pb::LeaseGrantResponse>>();
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(ttl).count();
    messages->request.set_ttl(std::max<int64_t>(seconds, 1));
    // A second grant leaves a lease behind that ends by itself.
    connection_->Call(
        {.start =
             [messages](EtcdMember& member, grpc::ClientContext* context, EtcdCall::Finish finish) {
               member.lease->async()->LeaseGrant(context, &messages->request, &messages->reply, std::move(finish));
             },
         .done =
             [messages, done = std::move(done)](const Status& status, int) {
               if (!status.ok()) return done(std::unexpected(status));
               done(store::Lease{.id = messages->reply.id(), .ttl = std::chrono::seconds(messages->reply.ttl())});
             },
         .timeout = timeout});
  }

  void KeepAlive(LeaseId lease, Duration timeout, LeaseDone done) override {
    const auto messages = std::make_shared<Messages<pb::LeaseKeepAliveRequest, pb::LeaseKeepAliveResponse>>();
    messages->request.set_id(lease);
    connection_->Call({.start =
                           [messages](EtcdMember& member, grpc::ClientContext* context, EtcdCall::Finish finish) {
                             new KeepAliveOnce(member, context, messages, std::move(finish));
                           },
                       .done =
                           [messages, lease, done = std::move(done)](const Status& status, int) {
                             if (!status.ok()) return done(std::unexpected(status));
                             const std::chrono::seconds ttl(messages->reply.ttl());
                             if (ttl.count() <= 0) return done(std::unexpected(LeaseEnded()));
                             done(store::Lease{.id = lease, .ttl = ttl});
                           },
                       .timeout = timeout});
  }

  void Revoke(LeaseId lease, Duration timeout, Done done) override {
    const auto messages = std::make_shared<Messages<pb::LeaseRevokeRequest, pb::LeaseRevokeResponse>>();
    messages->request.set_id(lease);
    connection_->Call({.start =
                           [messages](EtcdMember& member, grpc::ClientContext* context, EtcdCall::Finish finish) {
                             member.lease->async()->LeaseRevoke(context, &messages->request, &messages->reply,
                                                                std::move(finish));
                           },
                       .done =
                           [done = std::move(done)](const Status& status, int attempts) {
                             if (status.code() != Code::kNotFound) return done(status);
                             done(attempts > 1 ? Status() : LeaseEnded());  // an attempt before may have revoked it
                           },
                       .timeout = timeout});
  }

  void Compact(Revision revision, Duration timeout, Done done) override {
    const auto messages = std::make_shared<Messages<pb::CompactionRequest, pb::CompactionResponse>>();
    messages->request.set_revision(revision);
    connection_->Call(
        {.start =
             [messages](EtcdMember& member, grpc::ClientContext* context, EtcdCall::Finish finish) {
               member.kv->async()->Compact(context, &messages->request, &messages->reply, std::move(finish));
             },
         .done =
             [done = std::move(done)](const Status& status, int) {
               done(IsCompacted(status) ? Status() : status);  // by somebody, which is all that was asked for
             },
         .timeout = timeout});
  }

 private:
  const std::string& prefix() const { return connection_->options().prefix; }

  void NextPage(const std::shared_ptr<EtcdListing>& listing, RangeDone done) {
    const auto messages = std::make_shared<Messages<pb::RangeRequest, pb::RangeResponse>>();
    messages->request = listing->Request();
    connection_->Call({.start =
                           [messages](EtcdMember& member, grpc::ClientContext* context, EtcdCall::Finish finish) {
                             member.kv->async()->Range(context, &messages->request, &messages->reply,
                                                       std::move(finish));
                           },
                       .done =
                           [this, listing, messages, done = std::move(done)](const Status& status, int) {
                             auto ended = listing->Take(status, messages->reply, Mono());
                             if (!ended) return NextPage(listing, done);
                             done(*std::move(ended));
                           },
                       .timeout = listing->Left(Mono())});
  }

  const std::unique_ptr<EtcdConnection> connection_;
};

}  // namespace

Result<std::unique_ptr<store::Store>> MakeEtcdStore(const EtcdOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<EtcdConnection> connection, EtcdConnection::Make(options));
  return std::make_unique<EtcdStore>(std::move(connection));
}

}  // namespace muster::rpc
