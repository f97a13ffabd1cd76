#include "role/scheduler/enrolment.h"

#include <fmt/format.h>

#include <memory>
#include <utility>
#include <variant>

#include "base/log.h"
#include "model/names.h"
#include "model/node.h"

namespace muster::scheduler {
namespace {

constexpr Duration kStoreTimeout = 5s;
// Longer than a token is good for any scheduler, whose clocks differ.
constexpr Duration kClockDifference = 10min;

Status Stopping() { return {Code::kUnavailable, "the scheduler is stopping; ask again"}; }

bool IsThere(model::NodeStatus status) {
  return status == model::NodeStatus::kReady || status == model::NodeStatus::kDraining;
}

}  // namespace

Result<rpc::MadeToken> Enrolment::CreateToken() {
  MUSTER_ASSIGN_OR_RETURN(const rpc::NodeCa ca, rpc::NodeCa::Read(options_.ca));
  MUSTER_ASSIGN_OR_RETURN(rpc::JoinToken token,
                          ca.MakeToken(options_.cluster, clock_.Read().wall, options_.token_life));
  return rpc::MadeToken{.token = std::move(token), .ca_pem = ca.trusted_pem()};
}

void Enrolment::Sign(rpc::SignNode request, Done done) {
  const WallTime now = clock_.Read().wall;
  if (request.token && request.token->expires <= now) {
    return done(Error(Code::kPermissionDenied, "the join token has expired; configure the machine anew"));
  }
  const auto ca = rpc::NodeCa::Read(options_.ca);
  if (!ca) {
    log::Err("no certificate can be signed", {{"why", ca.error().message()}});
    return done(Error(Code::kUnavailable, "the scheduler's CA is not fit for use; its log says why"));
  }
  // First, because what cannot be signed binds no token. It is given away last.
  auto certificate = ca->SignNode(options_.cluster, request.request, now, options_.node_life);
  if (!certificate) return done(std::unexpected(certificate.error()));
  // With another key whoever once had the certificate would go on without what its owner has, unseen.
  if (!request.token && certificate->key_digest != request.own_key) {
    return done(Error(Code::kPermissionDenied,
                      "csr_pem: a node renews its certificate with the key that it has, and this is another"));
  }
  const auto asked = std::make_shared<Asked>(Asked{
      .id = 0, .request = std::move(request), .certificate = *std::move(certificate), .ca_pem = ca->trusted_pem()});
  const auto id = pending_.Add(done);
  if (!id) return done(std::unexpected(Stopping()));
  asked->id = *id;
  if (!asked->request.token) return LookForNode(asked);
  LookForToken(asked);
}

void Enrolment::LookForToken(const AskedPtr& asked) {
  WithStore(asked, [&](store::Store& store) {
    store.Range(contract::OneKey(KeyOf(*asked->request.token)), kStoreTimeout,
                [this, asked](const Result<store::RangeReply>& rows) {
                  if (!rows) return Refuse(asked, rows.error());
                  if (rows->rows.empty()) return LookForNode(asked);
                  const std::string& holder = rows->rows.front().value;
                  if (holder == HolderOf(*asked)) return Give(asked);
                  Refuse(asked, {Code::kPermissionDenied,
                                 fmt::format("the join token was used for node {} with another key or name",
                                             model::Quoted(holder.substr(0, holder.find(' '))))});
                });
  });
}

// For a token nobody may be there; for a renewal the node must be known.
void Enrolment::LookForNode(const AskedPtr& asked) {
  const std::string& node = asked->request.request.node;
  cluster_.Ask(contract::GetNode{.node = node}, [this, asked](const Result<contract::ClusterReply>& reply) {
    const std::string& name = asked->request.request.node;
    const bool unknown = !reply && reply.error().code() == Code::kNotFound;
    if (!reply && !unknown) return Refuse(asked, reply.error());
    if (!asked->request.token) {
      if (!unknown) return Give(asked);
      return Refuse(
          asked, {Code::kPermissionDenied,
                  fmt::format("there is no node {} (any more): its certificate is not renewed", model::Quoted(name))});
    }
    if (!unknown && IsThere(std::get<contract::NodeView>(*reply).status)) {
      return Refuse(asked, {Code::kFailedPrecondition,
                            fmt::format("node {} is there, and this join token is not its own; it can be replaced once "
                                        "it is NotReady or deleted",
                                        model::Quoted(name))});
    }
    Bind(asked);
  });
}

void Enrolment::Bind(const AskedPtr& asked) {
  const Duration ttl = asked->request.token->expires - clock_.Read().wall + kClockDifference;
  WithStore(asked, [&](store::Store& store) {
    store.Grant(ttl, kStoreTimeout, [this, asked](const Result<store::Lease>& lease) {
      if (!lease) return Refuse(asked, lease.error());
      BindWith(asked, lease->id);
    });
  });
}

void Enrolment::BindWith(const AskedPtr& asked, store::LeaseId lease) {
  const std::string key = KeyOf(*asked->request.token);
  WithStore(asked, [&](store::Store& store) {
    store.Commit({.compares = {contract::IfAbsent(key)}, .writes = {contract::Put(key, HolderOf(*asked), lease)}},
                 kStoreTimeout, [this, asked, lease](const store::CommitOutcome& outcome) {
                   if (std::holds_alternative<contract::Committed>(outcome)) return Give(asked);
                   // Without a verdict the token may be bound, and the lease must stay.
                   const bool lost = std::holds_alternative<contract::Unknown>(outcome);
                   if (!lost) {
                     WithStore(asked, [&](store::Store& held) { held.Revoke(lease, kStoreTimeout, [](Status) {}); });
                   }
                   // Another use of the token came first: whose it is now is in the store.
                   if (!lost && !std::exchange(asked->looked_again, true)) return LookForToken(asked);
                   Refuse(asked, {Code::kUnavailable, "the store does not say whether the token is bound; ask again"});
                 });
  });
}

void Enrolment::Refuse(const AskedPtr& asked, Status why) {
  pending_.Finish(asked->id, std::unexpected(std::move(why)));
}

void Enrolment::Give(const AskedPtr& asked) {
  log::Info("certificate of a node signed",
            {{"node", asked->request.request.node},
             {"host", asked->request.request.host},
             {"by", asked->request.token ? "token/" + asked->request.token->serial : std::string("its own")},
             {"serial", asked->certificate.serial}});
  pending_.Finish(asked->id, rpc::SignedNode{.chain_pem = asked->certificate.chain_pem, .ca_pem = asked->ca_pem});
}

template <class Use>
void Enrolment::WithStore(const AskedPtr& asked, const Use& use) {
  {
    // The store answers never inside a call, so that it may be made under the lock.
    const std::lock_guard lock(mu_);
    if (store_ != nullptr) return use(*store_);
  }
  Refuse(asked, Stopping());
}

void Enrolment::Stop() {
  {
    const std::lock_guard lock(mu_);
    store_ = nullptr;
  }
  pending_.Close(Stopping());
}

}  // namespace muster::scheduler
