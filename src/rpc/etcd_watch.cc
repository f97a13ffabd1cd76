#include "rpc/etcd_watch.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/probe.h"
#include "rpc/etcd_conversion.h"

namespace muster::rpc {
namespace {

namespace pb = etcdserverpb;

constexpr Duration kFirstPause = 20ms;
constexpr Duration kLongestPause = 500ms;
constexpr Duration kStreamLife = 24h;  // then it is opened anew, like one that broke

}  // namespace

// One stream. Writing is one at a time: who sets writing_ may start a write. The hold keeps the call from ending before
// the last write was answered.
class EtcdWatch::Stream : public grpc::ClientBidiReactor<pb::WatchRequest, pb::WatchResponse>,
                          public std::enable_shared_from_this<Stream> {
 public:
  Stream(std::shared_ptr<EtcdWatch> watch, uint64_t number) : watch_(std::move(watch)), number_(number) {}

  void Start(EtcdMember& member, const std::string& token, pb::WatchRequest request) {
    OpenCalls& calls = watch_->connection_.calls();
    self_ = shared_from_this();
    calls.Begin(context_, kStreamLife);
    if (!token.empty()) context_.AddMetadata("token", token);
    context_.AddMetadata("hasleader", "true");  // the stream breaks when the member loses its leader
    out_ = std::move(request);
    writing_ = true;
    member.watch->async()->Watch(&context_, this);
    AddHold();
    StartWrite(&out_);
    StartRead(&in_);
    StartCall();
  }
  void AskForProgress() {
    {
      const std::lock_guard lock(mu_);
      if (broken_ || std::exchange(writing_, true)) return;
    }
    out_.Clear();
    out_.mutable_progress_request();
    StartWrite(&out_);
  }
  void Cancel() { context_.TryCancel(); }

 private:
  // For OpenCalls: the context goes with it.
  struct Finished {
    std::shared_ptr<Stream> stream;
    grpc::ClientContext& context;
  };

  void OnWriteDone(bool ok) override {
    bool release = false;
    {
      const std::lock_guard lock(mu_);
      writing_ = false;
      broken_ = broken_ || !ok;
      release = broken_ && std::exchange(held_, false);
    }
    if (release) RemoveHold();
  }
  void OnReadDone(bool ok) override {
    if (ok) {
      watch_->Received(number_, in_);
      in_.Clear();
      return StartRead(&in_);
    }
    bool release = false;
    {
      const std::lock_guard lock(mu_);
      broken_ = true;
      release = !writing_ && std::exchange(held_, false);
    }
    if (release) RemoveHold();
  }
  void OnDone(const grpc::Status& status) override {
    const std::shared_ptr<EtcdWatch> watch = std::move(watch_);
    OpenCalls& calls = watch->connection_.calls();
    watch->Ended(number_, calls.Explain(status));
    // The watch may hold the stream until here, and its end must come before the client's.
    std::unique_ptr<Finished> finished(new Finished{.stream = std::move(self_), .context = context_});
    calls.End(std::move(finished));
  }

  std::shared_ptr<EtcdWatch> watch_;
  const uint64_t number_;
  std::shared_ptr<Stream> self_;  // until OnDone
  grpc::ClientContext context_;
  pb::WatchRequest out_;
  pb::WatchResponse in_;

  std::mutex mu_;
  bool writing_ = false;  // guarded by mu_
  bool broken_ = false;   // guarded by mu_: nothing can be written any more
  bool held_ = true;      // guarded by mu_
};

EtcdWatch::EtcdWatch(EtcdConnection& connection, const contract::KeyRange& range, store::Revision from,
                     std::shared_ptr<store::WatchGate> gate)
    : connection_(connection),
      range_(WireRange(range, connection.options().prefix)),
      gate_(std::move(gate)),
      pause_(kFirstPause),
      next_(from) {}

void EtcdWatch::Start() {
  if (!gate_->open()) return;
  connection_.WithToken(5s, [self = shared_from_this()](const Result<std::string>& token) {
    if (token) return self->Open(*token);
    log::Warn("store watch has no token, trying again", {{"error", token.error().ToString()}});
    self->OpenLater();
  });
}

void EtcdWatch::OpenLater() {
  Duration pause{};
  {
    const std::lock_guard lock(mu_);
    pause = std::exchange(pause_, std::min(2 * pause_, kLongestPause));
  }
  connection_.schedule().After(pause, [self = shared_from_this()] { self->Start(); });
}

void EtcdWatch::Open(const std::string& token) {
  batch_ = {};
  pb::WatchRequest request;
  pb::WatchCreateRequest& create = *request.mutable_create_request();
  create.set_key(range_.begin);
  create.set_range_end(range_.end);
  // One revision early: etcd calls a start compacted only if it is before the compacted revision, though a deletion in
  // that very revision may be gone. What was given already is left out in Received.
  const store::Revision early = next_ - 1 + (MUTANT("etcd.watch_resumes_late") ? 2 : 0);
  create.set_start_revision(std::max<store::Revision>(1, early));
  create.set_fragment(true);
  std::shared_ptr<Stream> stream;
  uint64_t number = 0;
  size_t member = 0;
  {
    const std::lock_guard lock(mu_);
    number = ++number_;
    member_ = member = connection_.current();
    token_ = token;
    heard_ = true;
    stream_ = stream = std::make_shared<Stream>(shared_from_this(), number);
  }
  stream->Start(connection_.member(member), token, std::move(request));
  connection_.schedule().After(connection_.options().progress_every,
                               [self = shared_from_this(), number] { self->CheckProgress(number); });
}

bool EtcdWatch::IsCurrent(uint64_t number) const {
  const std::lock_guard lock(mu_);
  return number == number_ && stream_ != nullptr;
}

// A member that is silent from one check to the next is given up.
void EtcdWatch::CheckProgress(uint64_t number) {
  std::shared_ptr<Stream> stream;
  bool silent = false;
  {
    const std::lock_guard lock(mu_);
    if (number != number_ || stream_ == nullptr) return;
    stream = stream_;
    silent = !std::exchange(heard_, false);
  }
  if (!gate_->open() || silent) {
    if (silent) PROBE("etcd.watch_member_silent");
    return stream->Cancel();
  }
  stream->AskForProgress();
  connection_.schedule().After(connection_.options().progress_every,
                               [self = shared_from_this(), number] { self->CheckProgress(number); });
}

void EtcdWatch::Received(uint64_t number, pb::WatchResponse& response) {
  if (!IsCurrent(number)) return;
  {
    const std::lock_guard lock(mu_);
    heard_ = true;
    if (!response.canceled()) pause_ = kFirstPause;
  }
  if (response.canceled()) return Cancelled(response);
  for (mvccpb::Event& event : *response.mutable_events()) {
    contract::Change change = TakeChange(event, connection_.options().prefix);
    if (change.now.modified < next_ && !MUTANT("etcd.watch_repeats")) continue;
    batch_.changes.push_back(std::move(change));
  }
  if (!response.fragment()) Deliver();
}

void EtcdWatch::Deliver() {
  if (batch_.changes.empty()) return;
  batch_.revision = batch_.changes.back().now.modified;
  next_ = batch_.revision + 1;
  const bool open = gate_->Deliver(batch_);
  batch_ = {};
  if (open) return;
  const std::lock_guard lock(mu_);
  if (stream_ != nullptr) stream_->Cancel();
}

void EtcdWatch::Cancelled(const pb::WatchResponse& response) {
  std::shared_ptr<Stream> stream;
  std::string token;
  {
    const std::lock_guard lock(mu_);
    stream = stream_;
    token = token_;
  }
  if (response.compact_revision() > 0) {
    gate_->Deliver(store::Compacted{response.compact_revision()});
    gate_->Close();
  } else {
    // The token may have expired or been forgotten: a new one is tried in any case.
    if (!token.empty()) PROBE("etcd.watch_token_refused");
    log::Warn("store watch was cancelled, trying again", {{"reason", response.cancel_reason()}});
    connection_.TokenRefused(token);
  }
  if (stream != nullptr) stream->Cancel();
}

void EtcdWatch::Ended(uint64_t number, const Status& status) {
  size_t member = 0;
  std::string token;
  {
    const std::lock_guard lock(mu_);
    if (number != number_) return;
    stream_ = nullptr;
    member = member_;
    token = token_;
  }
  if (!gate_->open()) return;
  PROBE("etcd.watch_stream_ended");
  log::Debug("store watch goes on at the next member", {{"error", status.ToString()}});
  if (EtcdConnection::IsTokenRefusal(status)) connection_.TokenRefused(token);
  connection_.MemberFailed(member);
  OpenLater();
}

}  // namespace muster::rpc
