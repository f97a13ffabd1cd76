#include "rpc/certificate_check.h"

#include <fmt/format.h>
#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/log.h"
#include "host/system_clock.h"
#include "host/text_file.h"

namespace muster::rpc {
namespace {

constexpr Duration kLookEvery = 1s;
constexpr size_t kMostKnown = 1'024;
constexpr std::string_view kBeginList = "-----BEGIN X509 CRL-----";
constexpr std::string_view kEndList = "-----END X509 CRL-----";

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

std::shared_ptr<const X509_NAME> CopyOf(const X509_NAME* name) { return {X509_NAME_dup(name), &X509_NAME_free}; }

// A CA revokes what it has issued itself, and nothing of another.
bool SignedByItsIssuer(X509_CRL* list, const std::string& ca) {
  const Bio in = Reader(ca);
  while (true) {
    const Certificate signer(PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr), &X509_free);
    if (!signer) break;
    if (X509_NAME_cmp(X509_get_subject_name(signer.get()), X509_CRL_get_issuer(list)) != 0) continue;
    EVP_PKEY* key = X509_get0_pubkey(signer.get());
    if (key != nullptr && X509_CRL_verify(list, key) == 1) return true;
  }
  ERR_clear_error();
  return false;
}

void Add(X509_CRL* list, Revoked& revoked) {
  ++revoked.lists;
  std::tm next = {};
  const ASN1_TIME* update = X509_CRL_get0_nextUpdate(list);
  if (update != nullptr && ASN1_TIME_to_tm(update, &next) == 1) {
    const std::time_t until = timegm(&next);
    revoked.until = std::min(revoked.until.value_or(until), until);
  }
  const auto issuer = CopyOf(X509_CRL_get_issuer(list));
  STACK_OF(X509_REVOKED)* entries = X509_CRL_get_REVOKED(list);
  for (int i = 0; i < sk_X509_REVOKED_num(entries); ++i) {
    const ASN1_INTEGER* serial = X509_REVOKED_get0_serialNumber(sk_X509_REVOKED_value(entries, i));
    revoked.certificates.insert({.issuer = issuer, .serial = SerialText(serial)});
  }
}

std::string StampOf(const std::string& file) {
  struct stat found = {};
  if (::stat(file.c_str(), &found) != 0) return "none";
  return fmt::format("{}.{}/{}/{}", found.st_mtim.tv_sec, found.st_mtim.tv_nsec, found.st_ino, found.st_size);
}

// Whether a line of it begins as those around a list do.
bool HasMark(std::string_view words) { return words.starts_with("-----") || words.contains("\n-----"); }

}  // namespace

bool RevokedCertificate::operator<(const RevokedCertificate& other) const {
  const int names = X509_NAME_cmp(issuer.get(), other.issuer.get());
  return names != 0 ? names < 0 : serial < other.serial;
}

Result<Revoked> ReadRevoked(const TlsFiles& files) {
  MUSTER_ASSIGN_OR_RETURN(const std::string text, host::ReadTextFile(files.crl));
  MUSTER_ASSIGN_OR_RETURN(const std::string ca, host::ReadTextFile(files.ca));
  Revoked revoked;
  for (std::string_view rest = text;;) {
    const size_t begin = rest.find(kBeginList);
    // A list whose first line is damaged would otherwise revoke nothing, in silence. Before the first is room for
    // words.
    if (revoked.lists == 0 && begin != std::string_view::npos && HasMark(rest.substr(0, begin))) {
      return InvalidArgument(fmt::format(
          "{}: before its first list stands one that is damaged, or no list; give lists in PEM form", files.crl));
    }
    if (revoked.lists > 0 && rest.substr(0, begin).find_first_not_of(" \t\r\n") != std::string_view::npos) {
      return InvalidArgument(
          fmt::format("{}: what follows list {} is no list; give lists in PEM form and nothing between them", files.crl,
                      revoked.lists));
    }
    if (begin == std::string_view::npos) break;
    rest.remove_prefix(begin);
    const size_t end = std::min(rest.find(kEndList), rest.size());
    const std::string_view block = rest.substr(0, end + kEndList.size());
    const List list(PEM_read_bio_X509_CRL(Reader(block).get(), nullptr, nullptr, nullptr), &X509_CRL_free);
    ERR_clear_error();
    if (!list) return InvalidArgument(fmt::format("{}: list {} cannot be read", files.crl, revoked.lists + 1));
    if (!SignedByItsIssuer(list.get(), ca)) {
      return InvalidArgument(
          fmt::format("{}: list {} is not signed by its CA in {}", files.crl, revoked.lists + 1, files.ca));
    }
    Add(list.get(), revoked);
    rest.remove_prefix(block.size());
  }
  if (revoked.lists > 0) return revoked;
  return InvalidArgument(
      fmt::format("{}: no revocation list in PEM form; give the file with BEGIN X509 CRL", files.crl));
}

void CertificateCheck::LookAtLists(MonoTime now) {
  if (files_.crl.empty() || (looked_ != MonoTime(Duration::min()) && now - looked_ < kLookEvery)) return;
  looked_ = now;
  std::string stamp = StampOf(files_.crl) + " " + StampOf(files_.ca);
  if (stamp == stamp_) return;
  stamp_ = std::move(stamp);
  auto revoked = ReadRevoked(files_);
  unfit_ = revoked ? Status() : revoked.error();
  if (!revoked) {
    log::Warn("revocation list not fit for use, the last one stays", {{"reason", revoked.error().message()}});
    return;
  }
  revoked_ = *std::move(revoked);
  warned_ = false;
  log::Info("revocation list read",
            {{"file", files_.crl}, {"lists", revoked_.lists}, {"certificates", revoked_.certificates.size()}});
}

void CertificateCheck::WarnOfAge(std::time_t now) {
  if (!revoked_.until || now <= *revoked_.until || std::exchange(warned_, true)) return;
  log::Warn("revocation list is past its next update: what was revoked since is not known", {{"file", files_.crl}});
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
  Known known{.until = timegm(&until),
              .name = {.issuer = CopyOf(X509_get_issuer_name(certificate.get())),
                       .serial = SerialText(X509_get0_serialNumber(certificate.get()))}};
  return &known_.emplace(pem, std::move(known)).first->second;
}

Status CertificateCheck::Fit() {
  const std::lock_guard lock(mu_);
  LookAtLists(host::SystemClock().Read().mono);
  return revoked_.lists > 0 ? Status() : unfit_;
}

Status CertificateCheck::Check(std::string_view pem) {
  const Now now = host::SystemClock().Read();
  const std::lock_guard lock(mu_);
  LookAtLists(now.mono);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now.wall.time_since_epoch()).count();
  WarnOfAge(seconds);
  const auto known = Find(pem);
  if (!known) return known.error();
  if ((*known)->until < seconds) return {Code::kPermissionDenied, "the peer's certificate has expired; renew it"};
  if (revoked_.certificates.contains((*known)->name)) {
    return {Code::kPermissionDenied, fmt::format("the peer's certificate {} is revoked", (*known)->name.serial)};
  }
  return {};
}

}  // namespace muster::rpc
