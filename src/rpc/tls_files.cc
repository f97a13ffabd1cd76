#include "rpc/tls_files.h"

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <memory>
#include <utility>

#include "base/log.h"
#include "host/text_file.h"

namespace muster::rpc {
namespace {

template <auto kFree>
struct Free {
  template <class T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using Bio = std::unique_ptr<BIO, Free<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;

Bio Reader(const std::string& text) { return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))); }

// No passphrase is ever asked for on a terminal.
int NoPassphrase(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*user*/) { return -1; }

Certificate FirstCertificate(const std::string& pem) {
  return Certificate(PEM_read_bio_X509(Reader(pem).get(), nullptr, &NoPassphrase, nullptr));
}

std::unexpected<Status> Unfit(const std::string& file, std::string_view why) {
  ERR_clear_error();
  return InvalidArgument(fmt::format("{}: {}", file, why));
}

}  // namespace

Result<TlsFiles> TlsFilesFromFlags(std::string cert, std::string key, std::string ca, std::string crl, bool insecure) {
  const bool any = !cert.empty() || !key.empty() || !ca.empty() || !crl.empty();
  const char* missing = cert.empty() ? "--tls-cert" : key.empty() ? "--tls-key" : ca.empty() ? "--tls-ca" : nullptr;
  if (any && missing != nullptr) {
    return InvalidArgument(
        fmt::format("{} is missing: TLS needs --tls-cert, --tls-key and --tls-ca, all three or none", missing));
  }
  return TlsFiles{
      .cert = std::move(cert), .key = std::move(key), .ca = std::move(ca), .crl = std::move(crl), .insecure = insecure};
}

Result<TlsMaterial> ReadTlsMaterial(const TlsFiles& files) {
  TlsMaterial material;
  MUSTER_ASSIGN_OR_RETURN(material.cert_chain, host::ReadTextFile(files.cert));
  MUSTER_ASSIGN_OR_RETURN(material.private_key, host::ReadTextFile(files.key));
  MUSTER_ASSIGN_OR_RETURN(material.ca, host::ReadTextFile(files.ca));

  const Certificate certificate = FirstCertificate(material.cert_chain);
  if (!certificate) return Unfit(files.cert, "no certificate in PEM form; give the file with BEGIN CERTIFICATE");
  const Key key(PEM_read_bio_PrivateKey(Reader(material.private_key).get(), nullptr, &NoPassphrase, nullptr));
  if (!key) return Unfit(files.key, "no private key in PEM form; a key with a passphrase cannot be used");
  struct stat key_file = {};
  if (::stat(files.key.c_str(), &key_file) == 0 && S_ISREG(key_file.st_mode) && (key_file.st_mode & S_IRWXO) != 0) {
    return Unfit(files.key, "every user of this machine may read or change the key; chmod 600 it, and make a new one");
  }
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    return Unfit(files.key, fmt::format("not the key of the certificate in {}", files.cert));
  }
  if (!FirstCertificate(material.ca)) return Unfit(files.ca, "no certificate in PEM form; give the CA's");
  if (X509_cmp_current_time(X509_get0_notAfter(certificate.get())) < 0) {
    log::Warn("certificate has expired", {{"file", files.cert}});
  }
  return material;
}

TlsWatcher::Stamp TlsWatcher::Look(const std::string& file) {
  struct stat found = {};
  if (::stat(file.c_str(), &found) != 0) return {};
  return {.modified_nanos = found.st_mtim.tv_sec * 1'000'000'000 + found.st_mtim.tv_nsec,
          .inode = found.st_ino,
          .size = found.st_size};
}

std::optional<TlsMaterial> TlsWatcher::Changed() {
  // Before reading: a change during the read is then seen by the next look.
  const Stamps stamps = {Look(files_.cert), Look(files_.key), Look(files_.ca)};
  if (stamps == given_) return std::nullopt;
  Result<TlsMaterial> material = ReadTlsMaterial(files_);
  if (!material) {
    if (stamps != refused_) {
      log::Warn("certificate files not fit for use, the last ones stay", {{"reason", material.error().message()}});
    }
    refused_ = stamps;
    return std::nullopt;
  }
  if (given_) log::Info("certificate files read again", {{"cert", files_.cert}});
  given_ = stamps;
  return *std::move(material);
}

}  // namespace muster::rpc
