// Enrolment: how a scheduler gives tokens and certificates to the machines of its cluster (muster.v1.Enrol).
//
// A token is bound to the node and the public key that it is first used for, in the store, whichever scheduler is
// asked: <prefix>/joins/<serial of the token> is made once and holds both, until the token has expired. The same
// request gets a certificate again, so that a lost answer costs nothing; whoever else has the token gets none. A token
// does not take the place of a node that is there. A node renews its certificate with the one that it has, for the
// same key, as long as the store has the node.
//
// The files of the CA are read for each certificate: a new one is in use at once.
//
// Thread-safety: the port from any thread. Stop from one; nothing uses the store after it.
#pragma once

#include <mutex>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "base/time.h"
#include "contract/cluster.h"
#include "host/pending_requests.h"
#include "rpc/enrol_service.h"
#include "rpc/node_ca.h"
#include "store/store.h"

namespace muster::scheduler {

struct EnrolmentOptions {
  rpc::NodeCa::Files ca;
  std::string cluster;
  std::string prefix;  // of every key in the store
  Duration token_life = 1h;
  Duration node_life = 24h;
};

class Enrolment final : public rpc::EnrolPort {
 public:
  // All but the options outlive this; the store until Stop.
  Enrolment(EnrolmentOptions options, store::Store& store, contract::ClusterPort& cluster, const Clock& clock)
      : options_(std::move(options)), cluster_(cluster), clock_(clock), store_(&store) {}
  ~Enrolment() override { Stop(); }

  Result<rpc::MadeToken> CreateToken() override;
  // PERMISSION_DENIED: the token is another node's or key's, or has expired; or the node that renews is not in the
  // store, or has another key. FAILED_PRECONDITION: the node is there, and the token is not its own.
  void Sign(rpc::SignNode request, Done done) override;
  // Idempotent: refuses what is open, and whatever comes.
  void Stop();

 private:
  // One request on its way through the store, with the certificate that it gets if it may.
  struct Asked {
    contract::RequestId id = 0;
    rpc::SignNode request;
    rpc::NodeCertificate certificate;
    std::string ca_pem;
    bool looked_again = false;
  };
  using AskedPtr = std::shared_ptr<Asked>;

  void LookForToken(const AskedPtr& asked);
  void LookForNode(const AskedPtr& asked);
  void Bind(const AskedPtr& asked);
  void BindWith(const AskedPtr& asked, store::LeaseId lease);
  void Refuse(const AskedPtr& asked, Status why);
  void Give(const AskedPtr& asked);
  static std::string HolderOf(const Asked& asked) {
    return asked.request.request.node + " " + asked.certificate.key_digest;
  }
  std::string KeyOf(const rpc::TokenUse& token) const { return options_.prefix + "/joins/" + token.serial; }
  // `use(store)`, unless this has stopped.
  template <class Use>
  void WithStore(const AskedPtr& asked, const Use& use);

  const EnrolmentOptions options_;
  contract::ClusterPort& cluster_;
  const Clock& clock_;
  host::PendingRequests<rpc::SignedNode> pending_;
  std::mutex mu_;
  store::Store* store_;  // guarded by mu_; null after Stop
};

}  // namespace muster::scheduler
