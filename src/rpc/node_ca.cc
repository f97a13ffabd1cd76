#include "rpc/node_ca.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>
#include <vector>

#include "base/check.h"
#include "host/text_file.h"
#include "model/names.h"
#include "rpc/node_key.h"
#include "rpc/object_id.h"
#include "rpc/openssl_ptr.h"

namespace muster::rpc {
namespace {

constexpr size_t kLongestCsr = 4 << 10;
constexpr size_t kLongestPem = 64 << 10;
constexpr size_t kLongestHost = 253;
constexpr Duration kClocksBehind = 5min;

using NamesPtr = std::unique_ptr<GENERAL_NAMES, FreedBy<GENERAL_NAMES_free>>;
using TrustPtr = std::unique_ptr<X509_STORE, FreedBy<X509_STORE_free>>;
using VerifyPtr = std::unique_ptr<X509_STORE_CTX, FreedBy<X509_STORE_CTX_free>>;

std::unexpected<Status> UnfitCa(const std::string& file, std::string_view why) {
  ERR_clear_error();
  return InvalidArgument(fmt::format("{}: {}", file, why));
}

std::vector<X509Ptr> ReadCertificates(const std::string& pem) {
  std::vector<X509Ptr> all;
  const BioPtr in = PemReader(pem);
  while (X509* one = PEM_read_bio_X509(in.get(), nullptr, &RefusePassphrase, nullptr)) all.emplace_back(one);
  ERR_clear_error();
  return all;
}

std::string ToPem(X509& certificate) {
  return PemOf([&](BIO* out) { return PEM_write_bio_X509(out, &certificate); });
}

// Why the CA does not come from what is trusted; empty if it does.
std::string Distrust(const std::vector<X509Ptr>& chain, const std::vector<X509Ptr>& trusted) {
  const TrustPtr store(X509_STORE_new());
  for (const X509Ptr& one : trusted) X509_STORE_add_cert(store.get(), one.get());
  STACK_OF(X509)* between = sk_X509_new_null();
  for (const X509Ptr& one : chain) sk_X509_push(between, one.get());
  const VerifyPtr verify(X509_STORE_CTX_new());
  std::string why;
  if (X509_STORE_CTX_init(verify.get(), store.get(), chain.front().get(), between) != 1) {
    why = "it cannot be looked at";
  } else if (X509_verify_cert(verify.get()) != 1) {
    why = X509_verify_cert_error_string(X509_STORE_CTX_get_error(verify.get()));
  }
  sk_X509_free(between);
  ERR_clear_error();
  return why;
}

bool IsP256(EVP_PKEY& key) {
  std::array<char, 64> curve = {};
  size_t size = 0;
  int explicit_parameters = 0;
  return EVP_PKEY_get_base_id(&key) == EVP_PKEY_EC &&
         EVP_PKEY_get_group_name(&key, curve.data(), curve.size(), &size) == 1 &&
         std::string_view(curve.data()) == SN_X9_62_prime256v1 &&
         EVP_PKEY_get_int_param(&key, OSSL_PKEY_PARAM_EC_DECODED_FROM_EXPLICIT_PARAMS, &explicit_parameters) == 1 &&
         explicit_parameters == 0;
}

bool IsDnsName(std::string_view host) {
  if (host.empty() || host.size() > kLongestHost) return false;
  const auto letter_or_digit = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  size_t label = 0;  // letters of the part between two dots
  for (size_t i = 0; i < host.size(); ++i) {
    if (host[i] == '.') {
      if (label == 0 || host[i - 1] == '-') return false;
      label = 0;
      continue;
    }
    if (!letter_or_digit(host[i]) && (host[i] != '-' || label == 0)) return false;
    if (++label > 63) return false;
  }
  return label > 0 && host.back() != '-';
}

// The names are put in as values, never through OpenSSL's texts: a comma in one adds no other.
void AddName(GENERAL_NAMES& names, int type, std::string_view bytes) {
  GENERAL_NAME* name = GENERAL_NAME_new();
  ASN1_STRING* value = ASN1_STRING_type_new(type == GEN_IPADD ? V_ASN1_OCTET_STRING : V_ASN1_IA5STRING);
  MUSTER_CHECK(
      name != nullptr && value != nullptr && ASN1_STRING_set(value, bytes.data(), static_cast<int>(bytes.size())) == 1,
      "no memory for a name");
  GENERAL_NAME_set0_value(name, type, value);
  MUSTER_CHECK(sk_GENERAL_NAME_push(&names, name) > 0, "no memory for a name");
}

// False for what is neither an address nor a DNS name.
bool AddHost(GENERAL_NAMES& names, const std::string& host) {
  std::array<char, 16> address = {};
  if (inet_pton(AF_INET, host.c_str(), address.data()) == 1) {
    AddName(names, GEN_IPADD, {address.data(), 4});
  } else if (inet_pton(AF_INET6, host.c_str(), address.data()) == 1) {
    AddName(names, GEN_IPADD, {address.data(), 16});
  } else if (IsDnsName(host)) {
    AddName(names, GEN_DNS, host);
  } else {
    return false;
  }
  return true;
}

bool AddConstant(X509& certificate, int nid, const char* value) {
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, nid, value);
  const bool added = extension != nullptr && X509_add_ext(&certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return added;
}

bool SetSerial(X509& certificate) {
  std::array<unsigned char, 16> random = {};
  if (RAND_bytes(random.data(), static_cast<int>(random.size())) != 1) return false;
  const std::unique_ptr<BIGNUM, FreedBy<BN_free>> number(
      BN_bin2bn(random.data(), static_cast<int>(random.size()), nullptr));
  return number && BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(&certificate)) != nullptr;
}

std::time_t Seconds(WallTime time) {
  return static_cast<std::time_t>(std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count());
}

}  // namespace

struct NodeCa::Signer {
  X509Ptr certificate;
  KeyPtr key;
  std::string chain;  // what a peer needs to come from a certificate to what it trusts
  WallTime until;

  // What makes a certificate a token or a node's.
  struct Shape {
    const char* name;
    const char* usage;
  };
  X509Ptr Issue(EVP_PKEY& of, const Shape& shape, GENERAL_NAMES& names, WallTime now, WallTime end) const {
    X509Ptr made(X509_new());
    X509* x = made.get();
    const auto* name = reinterpret_cast<const unsigned char*>(shape.name);
    bool good = x != nullptr && X509_set_version(x, X509_VERSION_3) == 1 && SetSerial(*x) &&
                ASN1_TIME_set(X509_getm_notBefore(x), Seconds(now - kClocksBehind)) != nullptr &&
                ASN1_TIME_set(X509_getm_notAfter(x), Seconds(end)) != nullptr && X509_set_pubkey(x, &of) == 1 &&
                X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_UTF8, name, -1, -1, 0) == 1 &&
                X509_set_issuer_name(x, X509_get_subject_name(certificate.get())) == 1 &&
                AddConstant(*x, NID_basic_constraints, "critical,CA:FALSE") &&
                AddConstant(*x, NID_key_usage, "critical,digitalSignature") &&
                AddConstant(*x, NID_ext_key_usage, shape.usage) &&
                X509_add1_ext_i2d(x, NID_subject_alt_name, &names, 0, 0) == 1;
    if (good && X509_get0_subject_key_id(certificate.get()) != nullptr) {
      X509V3_CTX context;
      X509V3_set_ctx(&context, certificate.get(), x, nullptr, nullptr, 0);
      X509_EXTENSION* issuer = X509V3_EXT_conf_nid(nullptr, &context, NID_authority_key_identifier, "keyid");
      good = issuer != nullptr && X509_add_ext(x, issuer, -1) == 1;
      X509_EXTENSION_free(issuer);
    }
    good = good && X509_sign(x, key.get(), EVP_sha256()) != 0;
    ERR_clear_error();
    return good ? std::move(made) : nullptr;
  }
};

Result<NodeCa> NodeCa::Read(const Files& files) {
  const model::TextLimits limits{.max_bytes = kLongestPem};
  MUSTER_ASSIGN_OR_RETURN(const std::string cert, host::ReadTextFile(files.cert, limits));
  MUSTER_ASSIGN_OR_RETURN(const std::string key, host::ReadTextFile(files.key, limits));
  MUSTER_ASSIGN_OR_RETURN(std::string trusted, host::ReadTextFile(files.trusted, limits));
  std::vector<X509Ptr> chain = ReadCertificates(cert);
  if (chain.empty()) return UnfitCa(files.cert, "no certificate in PEM form; give that of a CA");
  X509* const ca = chain.front().get();
  if (X509_check_ca(ca) != 1 || (X509_get_key_usage(ca) & KU_KEY_CERT_SIGN) == 0) {
    return UnfitCa(files.cert, "its first certificate is no CA's: it may sign nothing");
  }
  struct stat key_file = {};
  if (::stat(files.key.c_str(), &key_file) == 0 && (key_file.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return UnfitCa(files.key, "other users of this machine may read or change the key of the CA; chmod 600 it");
  }
  auto signer = std::make_shared<Signer>();
  signer->key.reset(PEM_read_bio_PrivateKey(PemReader(key).get(), nullptr, &RefusePassphrase, nullptr));
  if (!signer->key) return UnfitCa(files.key, "no private key in PEM form; a key with a passphrase cannot be used");
  if (X509_check_private_key(ca, signer->key.get()) != 1) {
    return UnfitCa(files.key, fmt::format("not the key of the certificate in {}", files.cert));
  }
  if (const std::string why = Distrust(chain, ReadCertificates(trusted)); !why.empty()) {
    return UnfitCa(files.cert, fmt::format("does not come from what {} holds: {}", files.trusted, why));
  }
  for (const X509Ptr& one : chain) {
    if (X509_self_signed(one.get(), 0) != 1) signer->chain += ToPem(*one);
  }
  MUSTER_ASSIGN_OR_RETURN(const CertificateFacts facts, ReadCertificate(cert));
  signer->until = facts.until;
  signer->certificate = std::move(chain.front());
  return NodeCa(std::move(signer), std::move(trusted));
}

Result<JoinToken> NodeCa::MakeToken(std::string_view cluster, WallTime now, Duration lifetime) const {
  const WallTime end = std::min(now + lifetime, signer_->until);
  const KeyPtr key(EVP_EC_gen("P-256"));
  const NamesPtr names(GENERAL_NAMES_new());
  MUSTER_CHECK(key && names, "no key can be made");
  AddName(*names, GEN_URI, fmt::format("muster://join/{}", cluster));
  const X509Ptr made = signer_->Issue(*key, {.name = "join", .usage = "clientAuth"}, *names, now, end);
  if (!made) return Error(Code::kInternal, "the token cannot be signed");
  std::string pem = ToPem(*made);
  MUSTER_ASSIGN_OR_RETURN(const CertificateFacts facts, ReadCertificate(pem));
  pem += signer_->chain;
  pem += PemOf(
      [&](BIO* out) { return PEM_write_bio_PKCS8PrivateKey(out, key.get(), nullptr, nullptr, 0, nullptr, nullptr); });
  return JoinToken{.pem = std::move(pem), .serial = facts.serial, .expires = facts.until};
}

Result<NodeCertificate> NodeCa::SignNode(std::string_view cluster, const NodeRequest& request, WallTime now,
                                         Duration lifetime) const {
  if (Status id = CheckObjectId(request.node, "node", "name the node"); !id.ok()) return std::unexpected(std::move(id));
  if (request.csr_pem.size() > kLongestCsr) {
    return InvalidArgument(
        fmt::format("csr_pem: {} bytes; a request has {} at the most", request.csr_pem.size(), kLongestCsr));
  }
  const CsrPtr csr(PEM_read_bio_X509_REQ(PemReader(request.csr_pem).get(), nullptr, &RefusePassphrase, nullptr));
  ERR_clear_error();
  EVP_PKEY* const key = csr ? X509_REQ_get0_pubkey(csr.get()) : nullptr;
  if (key == nullptr) return InvalidArgument("csr_pem: no request for a certificate in PEM form");
  if (!IsP256(*key)) return InvalidArgument("csr_pem: the key of a node is one on P-256");
  const bool proven = X509_REQ_verify(csr.get(), key) == 1;
  ERR_clear_error();
  if (!proven) return InvalidArgument("csr_pem: not signed with its key");
  const NamesPtr names(GENERAL_NAMES_new());
  MUSTER_CHECK(names, "no memory for a name");
  AddName(*names, GEN_URI, fmt::format("muster://node/{}/{}", cluster, request.node));
  if (!AddHost(*names, request.host)) {
    return InvalidArgument(
        fmt::format("host: {} is neither an IP address nor a DNS name", model::Quoted(request.host)));
  }
  const WallTime end = std::min(now + lifetime, signer_->until);
  const X509Ptr made = signer_->Issue(*key, {.name = "node", .usage = "clientAuth,serverAuth"}, *names, now, end);
  if (!made) return Error(Code::kInternal, "the certificate cannot be signed");
  std::string pem = ToPem(*made);
  MUSTER_ASSIGN_OR_RETURN(const CertificateFacts facts, ReadCertificate(pem));
  return NodeCertificate{.chain_pem = pem + signer_->chain,
                         .serial = facts.serial,
                         .key_digest = facts.key_digest,
                         .expires = facts.until};
}

}  // namespace muster::rpc
