#include "rpc/etcd_store.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/probe.h"
#include "host/system_clock.h"
#include "rpc/etcd_connection.h"
#include "rpc/etcd_conversion.h"
#include "rpc/etcd_watch.h"

namespace muster::rpc {
namespace {

namespace pb = etcdserverpb;
using store::LeaseId;
using store::Revision;

constexpr int64_t kPageRows = 250;  // a page of the largest values is within the limit of a message

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
    auto listing = std::make_shared<Listing>();
    listing->range = WireRange(range, prefix());
    listing->deadline = Mono() + timeout;
    listing->done = std::move(done);
    NextPage(listing);
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
  // A range while it is read, page by page.
  struct Listing {
    contract::KeyRange range;  // what is left of it
    MonoTime deadline;
    store::RangeReply reply;  // revision 0: no page is here yet
    contract::KeyRange whole;
    RangeDone done;
  };

  const std::string& prefix() const { return connection_->options().prefix; }
  // etcd tells a compacted revision from one in the future by the text alone.
  static bool IsCompacted(const Status& status) {
    return status.code() == Code::kOutOfRange && status.message().find("compacted") != std::string::npos;
  }

  void NextPage(const std::shared_ptr<Listing>& listing) {
    const auto messages = std::make_shared<Messages<pb::RangeRequest, pb::RangeResponse>>();
    messages->request.set_key(listing->range.begin);
    messages->request.set_range_end(listing->range.end);
    messages->request.set_limit(kPageRows);
    messages->request.set_revision(listing->reply.revision);
    if (listing->reply.revision == 0) listing->whole = listing->range;
    connection_->Call(
        {.start =
             [messages](EtcdMember& member, grpc::ClientContext* context, EtcdCall::Finish finish) {
               member.kv->async()->Range(context, &messages->request, &messages->reply, std::move(finish));
             },
         .done = [this, listing, messages](const Status& status, int) { TakePage(listing, status, messages->reply); },
         .timeout = std::max<Duration>(listing->deadline - Mono(), 1ms)});
  }
  void TakePage(const std::shared_ptr<Listing>& listing, const Status& status, pb::RangeResponse& page) {
    if (IsCompacted(status) && listing->reply.revision != 0) {
      PROBE("etcd.listing_compacted");
      listing->reply = {};  // from the beginning, at a newer revision
      listing->range = listing->whole;
      return NextPage(listing);
    }
    if (!status.ok()) return listing->done(std::unexpected(status));
    if (listing->reply.revision == 0) listing->reply.revision = page.header().revision();
    std::string last;
    if (page.kvs_size() > 0) last = page.kvs(page.kvs_size() - 1).key();
    for (mvccpb::KeyValue& row : *page.mutable_kvs()) listing->reply.rows.push_back(TakeRow(row, prefix()));
    if (!page.more() || page.kvs_size() == 0) return listing->done(std::move(listing->reply));
    listing->range.begin = last + '\0';
    NextPage(listing);
  }

  const std::unique_ptr<EtcdConnection> connection_;
};

}  // namespace

Result<std::unique_ptr<store::Store>> MakeEtcdStore(EtcdOptions options) {
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<EtcdConnection> connection, EtcdConnection::Make(options));
  return std::make_unique<EtcdStore>(std::move(connection));
}

}  // namespace muster::rpc
