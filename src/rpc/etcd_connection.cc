#include "rpc/etcd_connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/probe.h"
#include "host/system_clock.h"
#include "rpc/aging_channel.h"
#include "rpc/channel.h"

namespace muster::rpc {
namespace {

namespace pb = etcdserverpb;

constexpr Duration kFirstPause = 20ms;
constexpr Duration kLongestPause = 500ms;
constexpr Duration kShortestAttempt = 500ms;
constexpr int kTokenRefusals = 3;  // of one call, before it is given up
// A ping after this long without traffic finds a member whose machine is gone; etcd allows one every five seconds.
constexpr Duration kKeepAlive = 10s;

bool IsSilence(const Status& status) {
  return status.code() == Code::kUnavailable || status.code() == Code::kDeadlineExceeded;
}

MonoTime Mono() { return host::SystemClock().Read().mono; }

}  // namespace

// One call, over all its attempts.
struct EtcdConnection::Attempt {
  explicit Attempt(EtcdCall what) : call(std::move(what)), deadline(Mono() + call.timeout) {}
  EtcdCall call;
  MonoTime deadline;
  Duration pause = kFirstPause;
  int count = 0;
  int token_refusals = 0;
  Duration left() const { return deadline - Mono(); }
};

Result<std::unique_ptr<EtcdConnection>> EtcdConnection::Make(const EtcdOptions& options) {
  if (options.endpoints.empty()) return InvalidArgument("an etcd store needs at least one HOST:PORT");
  std::unique_ptr<EtcdConnection> connection(new EtcdConnection(options));
  for (const std::string& target : options.endpoints) {
    MUSTER_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::ChannelInterface> channel,
                            MakeAgingChannel({.target = target,
                                              .tls = options.tls,
                                              .serves = {.foreign = true},
                                              .max_message_bytes = kLargeMessageBytes,
                                              .keep_alive = kKeepAlive,
                                              .transparent_retries = false}));
    connection->members_.push_back({.target = target,
                                    .channel = channel,
                                    .kv = pb::KV::NewStub(channel),
                                    .watch = pb::Watch::NewStub(channel),
                                    .lease = pb::Lease::NewStub(channel),
                                    .auth = pb::Auth::NewStub(channel)});
  }
  return connection;
}

EtcdConnection::EtcdConnection(const EtcdOptions& options)
    : options_(options), calls_(fmt::format("etcd {}", fmt::join(options.endpoints, ",")), "answer") {}

size_t EtcdConnection::current() const {
  const std::lock_guard lock(mu_);
  return current_;
}

void EtcdConnection::MemberFailed(size_t index) {
  size_t next = 0;
  {
    const std::lock_guard lock(mu_);
    if (current_ == index) current_ = (index + 1) % members_.size();
    next = current_;
  }
  // Pauses are ours: gRPC's own would keep a member that is back waiting for seconds.
  ConnectAgainSoon(*members_[next].channel);
}

void EtcdConnection::Call(EtcdCall call) { TryOnce(std::make_shared<Attempt>(std::move(call))); }

void EtcdConnection::TryOnce(const std::shared_ptr<Attempt>& attempt) {
  const Duration timeout = attempt->left();
  WithToken(timeout, [this, attempt](const Result<std::string>& token) {
    if (token) return Send(attempt, *token);
    // Nothing was sent, so the call may be tried again whatever it is.
    if (!IsSilence(token.error()) || attempt->left() <= attempt->pause) {
      return attempt->call.done(token.error(), attempt->count);
    }
    RetryLater(attempt);
  });
}

void EtcdConnection::Send(const std::shared_ptr<Attempt>& attempt, const std::string& token) {
  struct Open {
    grpc::ClientContext context;
  };
  auto* open = new Open;  // until End
  Duration timeout = std::max<Duration>(attempt->left(), 1ms);
  // A member that hangs leaves time for the next one.
  if (attempt->call.repeatable) {
    timeout = std::min(timeout, std::max(kShortestAttempt, attempt->call.timeout / 3));
  }
  calls_.Begin(open->context, timeout);
  if (!token.empty()) open->context.AddMetadata("token", token);
  const size_t index = current();
  ++attempt->count;
  attempt->call.start(members_[index], &open->context, [this, attempt, open, index, token](const grpc::Status& status) {
    Ended(attempt, index, token, calls_.Explain(status));
    calls_.End(std::unique_ptr<Open>(open));
  });
}

void EtcdConnection::Ended(const std::shared_ptr<Attempt>& attempt, size_t member, const std::string& token,
                           const Status& status) {
  if (IsTokenRefusal(status) && !options_.user.empty()) {
    PROBE("etcd.token_refused");
    TokenRefused(token);
    if (++attempt->token_refusals < kTokenRefusals && attempt->left() > Duration::zero()) return TryOnce(attempt);
  }
  if (IsSilence(status)) {
    MemberFailed(member);
    if (attempt->call.repeatable && attempt->left() > attempt->pause) return RetryLater(attempt);
  }
  attempt->call.done(status, attempt->count);
}

void EtcdConnection::RetryLater(std::shared_ptr<Attempt> attempt) {
  PROBE("etcd.repeated");
  const Duration pause = attempt->pause;
  attempt->pause = std::min(2 * pause, kLongestPause);
  schedule_.After(pause, [this, attempt = std::move(attempt)] { TryOnce(attempt); });
}

bool EtcdConnection::IsTokenRefusal(const Status& status) {
  if (MUTANT("etcd.token_never_renewed")) return false;
  return status.code() == Code::kUnauthenticated ||
         (status.code() == Code::kInvalidArgument &&
          (status.message().find("revision of auth store is old") != std::string::npos ||
           status.message().find("user name is empty") != std::string::npos));
}

void EtcdConnection::TokenRefused(const std::string& token) {
  const std::lock_guard lock(mu_);
  if (token_ == token) token_.clear();
}

void EtcdConnection::WithToken(Duration timeout, const std::function<void(Result<std::string>)>& then) {
  std::string token;
  bool first = false;
  {
    const std::lock_guard lock(mu_);
    token = token_;
    if (token.empty() && !options_.user.empty()) {
      for_token_.push_back(then);
      first = for_token_.size() == 1;
      if (!first) return;
    }
  }
  if (first) return Authenticate(timeout);
  then(std::move(token));
}

// The cluster takes tens of milliseconds to check a password, so all that wait share one attempt.
void EtcdConnection::Authenticate(Duration timeout) {
  struct Open {
    grpc::ClientContext context;
    pb::AuthenticateRequest request;
    pb::AuthenticateResponse reply;
  };
  auto* open = new Open;  // until End
  open->request.set_name(options_.user);
  open->request.set_password(options_.password);
  calls_.Begin(open->context, std::clamp<Duration>(timeout, 1ms, 5s));
  const size_t index = current();
  members_[index].auth->async()->Authenticate(
      &open->context, &open->request, &open->reply, [this, open, index](const grpc::Status& grpc_status) {
        const Status status = calls_.Explain(grpc_status);
        if (IsSilence(status)) MemberFailed(index);
        Authenticated(status.ok() ? Result<std::string>(open->reply.token()) : std::unexpected(status));
        calls_.End(std::unique_ptr<Open>(open));
      });
}

void EtcdConnection::Authenticated(const Result<std::string>& token) {
  std::vector<std::function<void(Result<std::string>)>> waiting;
  {
    const std::lock_guard lock(mu_);
    if (token) token_ = *token;
    waiting.swap(for_token_);
  }
  for (const auto& then : waiting) then(token);
}

}  // namespace muster::rpc
