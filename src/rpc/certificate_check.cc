#include "rpc/certificate_check.h"

#include <fmt/format.h>
#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <memory>
#include <utility>

#include "base/log.h"
#include "host/system_clock.h"
#include "host/text_file.h"

namespace muster::rpc {
namespace {

constexpr Duration kLookEvery = 1s;
constexpr size_t kMostKnown = 1'024;

using Bio = std::unique_ptr<BIO, decltype(&BIO_free_all)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using List = std::unique_ptr<X509_CRL, decltype(&X509_CRL_free)>;

Bio Reader(std::string_view text) {
  return {BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &BIO_free_all};
}

std::string SerialText(const ASN1_INTEGER* serial) {
  const std::unique_ptr<BIGNUM, decltype(&BN_free)> number(ASN1_INTEGER_to_BN(serial, nullptr), &BN_free);
  char* text = BN_bn2hex(number.get());
  std::string copy = text;
  OPENSSL_free(text);
  return copy;
}

bool SignedByOneOf(X509_CRL* list, const std::string& ca) {
  const Bio in = Reader(ca);
  while (true) {
    const Certificate signer(PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr), &X509_free);
    if (!signer) break;
    EVP_PKEY* key = X509_get0_pubkey(signer.get());
    if (key != nullptr && X509_CRL_verify(list, key) == 1) return true;
  }
  ERR_clear_error();
  return false;
}

std::string StampOf(const std::string& file) {
  struct stat found = {};
  if (::stat(file.c_str(), &found) != 0) return "none";
  return fmt::format("{}.{}/{}/{}", found.st_mtim.tv_sec, found.st_mtim.tv_nsec, found.st_ino, found.st_size);
}

}  // namespace

Result<std::set<std::string>> ReadRevoked(const TlsFiles& files) {
  MUSTER_ASSIGN_OR_RETURN(const std::string text, host::ReadTextFile(files.crl));
  MUSTER_ASSIGN_OR_RETURN(const std::string ca, host::ReadTextFile(files.ca));
  const List list(PEM_read_bio_X509_CRL(Reader(text).get(), nullptr, nullptr, nullptr), &X509_CRL_free);
  if (!list) {
    ERR_clear_error();
    return InvalidArgument(
        fmt::format("{}: no revocation list in PEM form; give the file with BEGIN X509 CRL", files.crl));
  }
  if (!SignedByOneOf(list.get(), ca)) {
    return InvalidArgument(fmt::format("{}: the list is not signed by the CA in {}", files.crl, files.ca));
  }
  std::set<std::string> revoked;
  STACK_OF(X509_REVOKED)* entries = X509_CRL_get_REVOKED(list.get());
  for (int i = 0; i < sk_X509_REVOKED_num(entries); ++i) {
    revoked.insert(SerialText(X509_REVOKED_get0_serialNumber(sk_X509_REVOKED_value(entries, i))));
  }
  return revoked;
}

void CertificateCheck::LookAtList(MonoTime now) {
  if (files_.crl.empty() || (looked_ != MonoTime(Duration::min()) && now - looked_ < kLookEvery)) return;
  looked_ = now;
  std::string stamp = StampOf(files_.crl);
  if (stamp == stamp_) return;
  stamp_ = std::move(stamp);
  auto revoked = ReadRevoked(files_);
  if (!revoked) {
    log::Warn("revocation list not fit for use, the last one stays", {{"reason", revoked.error().message()}});
    return;
  }
  revoked_ = *std::move(revoked);
  log::Info("revocation list read", {{"file", files_.crl}, {"certificates", revoked_.size()}});
}

Result<const CertificateCheck::Known*> CertificateCheck::Find(std::string_view pem) {
  if (const auto found = known_.find(pem); found != known_.end()) return &found->second;
  const Certificate certificate(PEM_read_bio_X509(Reader(pem).get(), nullptr, nullptr, nullptr), &X509_free);
  std::tm until = {};
  if (!certificate || ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &until) != 1) {
    ERR_clear_error();
    return Error(Code::kPermissionDenied, "the peer's certificate cannot be read");
  }
  if (known_.size() >= kMostKnown) known_.clear();
  Known known{.until = timegm(&until), .serial = SerialText(X509_get0_serialNumber(certificate.get()))};
  return &known_.emplace(pem, std::move(known)).first->second;
}

Status CertificateCheck::Check(std::string_view pem) {
  const Now now = host::SystemClock().Read();
  const std::lock_guard lock(mu_);
  LookAtList(now.mono);
  const auto known = Find(pem);
  if (!known) return known.error();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now.wall.time_since_epoch()).count();
  if ((*known)->until < seconds) return {Code::kPermissionDenied, "the peer's certificate has expired; renew it"};
  if (revoked_.contains((*known)->serial)) {
    return {Code::kPermissionDenied, fmt::format("the peer's certificate {} is revoked", (*known)->serial)};
  }
  return {};
}

}  // namespace muster::rpc
