#include "rpc/node_key.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/asn1.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <array>
#include <ctime>
#include <optional>
#include <utility>

#include "base/check.h"
#include "rpc/openssl_ptr.h"

namespace muster::rpc {
namespace {

std::optional<WallTime> TimeOf(const ASN1_TIME* time) {
  std::tm parts = {};
  if (time == nullptr || ASN1_TIME_to_tm(time, &parts) != 1) return std::nullopt;
  return WallTime(std::chrono::seconds(timegm(&parts)));
}

std::string SerialOf(const X509& certificate) {
  const std::unique_ptr<BIGNUM, FreedBy<BN_free>> number(
      ASN1_INTEGER_to_BN(X509_get0_serialNumber(&certificate), nullptr));
  if (!number) return {};
  char* text = BN_bn2hex(number.get());
  std::string copy = text == nullptr ? "" : text;
  OPENSSL_free(text);
  return copy;
}

std::vector<std::string> UrisOf(const X509& certificate) {
  std::vector<std::string> uris;
  const std::unique_ptr<GENERAL_NAMES, FreedBy<GENERAL_NAMES_free>> names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* uri = name->d.uniformResourceIdentifier;
    uris.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                      static_cast<size_t>(ASN1_STRING_length(uri)));
  }
  return uris;
}

std::string KeyDigestOf(const X509& certificate) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest = {};
  unsigned int size = 0;
  if (X509_pubkey_digest(&certificate, EVP_sha256(), digest.data(), &size) != 1) return {};
  return fmt::format("{:02x}", fmt::join(digest.begin(), digest.begin() + size, ""));
}

}  // namespace

Result<CertificateFacts> ReadCertificate(std::string_view pem) {
  const X509Ptr certificate(PEM_read_bio_X509(PemReader(pem).get(), nullptr, &RefusePassphrase, nullptr));
  ERR_clear_error();
  if (!certificate) return InvalidArgument("no certificate in PEM form");
  const auto from = TimeOf(X509_get0_notBefore(certificate.get()));
  const auto until = TimeOf(X509_get0_notAfter(certificate.get()));
  if (!from || !until) return InvalidArgument("a certificate without readable times");
  std::string key_digest = KeyDigestOf(*certificate);
  ERR_clear_error();
  if (key_digest.empty()) return InvalidArgument("a certificate without a public key");
  return CertificateFacts{.serial = SerialOf(*certificate),
                          .from = *from,
                          .until = *until,
                          .uris = UrisOf(*certificate),
                          .key_digest = std::move(key_digest)};
}

std::string MakeNodeKey() {
  const KeyPtr key(EVP_EC_gen("P-256"));
  std::string pem = PemOf([&](BIO* out) {
    return key ? PEM_write_bio_PKCS8PrivateKey(out, key.get(), nullptr, nullptr, 0, nullptr, nullptr) : 0;
  });
  MUSTER_CHECK(!pem.empty(), "no key can be made");
  return pem;
}

Result<std::string> MakeCertificateRequest(std::string_view key_pem) {
  const KeyPtr key(PEM_read_bio_PrivateKey(PemReader(key_pem).get(), nullptr, &RefusePassphrase, nullptr));
  ERR_clear_error();
  if (!key) return InvalidArgument("no private key in PEM form");
  const CsrPtr csr(X509_REQ_new());
  const bool made = csr && X509_REQ_set_version(csr.get(), 0) == 1 && X509_REQ_set_pubkey(csr.get(), key.get()) == 1 &&
                    X509_REQ_sign(csr.get(), key.get(), EVP_sha256()) != 0;
  std::string pem = made ? PemOf([&](BIO* out) { return PEM_write_bio_X509_REQ(out, csr.get()); }) : std::string();
  ERR_clear_error();
  if (pem.empty()) return InvalidArgument("the key signs no request for a certificate");
  return pem;
}

}  // namespace muster::rpc
