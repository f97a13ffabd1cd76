// Any bytes as the messages of muster.v1.Enrol, and as the texts in them: a request for a certificate is refused by
// name, or signed for that node alone; what is no certificate or key is refused. The first byte says which.
#include <string>
#include <vector>

#include "frames.h"
#include "host/system_clock.h"
#include "host/temp_dir_for_test.h"
#include "muster/v1/enrol.pb.h"
#include "rpc/certificates_for_test.h"
#include "rpc/node_ca.h"
#include "rpc/node_key.h"
#include "rpc/object_id.h"

namespace {

using namespace muster;

// A scheduler's CA, made once.
const rpc::NodeCa& Ca() {
  static const rpc::NodeCa kCa = [] {
    const host::TempDir dir;
    rpc::CertificateAuthorityForTest root;
    const rpc::TlsFiles files = root.Write(dir.path(), "join", root.SignCa());
    auto read = rpc::NodeCa::Read({.cert = files.cert, .key = files.key, .trusted = files.ca});
    MUSTER_CHECK(read.has_value(), "{}", read.error().ToString());
    return *std::move(read);
  }();
  return kCa;
}

WallTime Now() {
  static const WallTime kNow = host::SystemClock().Read().wall;
  return kNow;
}

void CheckIssued(const std::string& pem, const std::string& uri, Duration life) {
  const auto facts = rpc::ReadCertificate(pem);
  MUSTER_CHECK(facts.has_value(), "{}", facts.error().ToString());
  MUSTER_CHECK(facts->uris == std::vector<std::string>{uri}, "the certificate is for more than {}", uri);
  MUSTER_CHECK(facts->until <= Now() + life, "the certificate of {} lasts too long", uri);
}

void Sign(const std::string& bytes) {
  v1::SignRequest wire;
  if (!wire.ParseFromString(bytes)) return;
  const rpc::NodeRequest request{.node = wire.node(), .host = wire.host(), .csr_pem = wire.csr_pem()};
  const auto made = Ca().SignNode("blue", request, Now(), 1h);
  if (!made) return CheckRefusal(made.error());
  CheckIssued(made->chain_pem, "muster://node/blue/" + request.node, 1h);
}

// A request for a token has no fields. What a token depends on is the scheduler's own: how long it is good, the first
// byte in minutes, and the name of the cluster, which is the rest.
void CreateToken(const std::string& bytes) {
  if (bytes.empty()) return;
  const Duration life = (1 + static_cast<unsigned char>(bytes.front())) * 1min;
  const std::string cluster = bytes.substr(1);
  if (!rpc::CheckObjectId(cluster, "cluster", "name the cluster").ok()) return;
  const auto token = Ca().MakeToken(cluster, Now(), life);
  MUSTER_CHECK(token.has_value(), "{}", token.error().ToString());
  CheckIssued(token->pem, "muster://join/" + cluster, life);
}

// A text has no fields to name.
void CheckText(const auto& read) {
  MUSTER_CHECK(read || read.error().code() == Code::kInvalidArgument, "{}", read.error().ToString());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0: Sign(bytes); break;
    case 1: CreateToken(bytes); break;
    case 2: CheckText(rpc::ReadCertificate(bytes)); break;
    default: CheckText(rpc::MakeCertificateRequest(bytes)); break;
  }
  return 0;
}
