// Certificates made on the spot: a CA, and what it signs. P-256 keys, valid from an hour ago.
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "rpc/tls_files.h"

namespace muster::rpc {

struct CertificateForTest {
  std::shared_ptr<X509> certificate;
  std::shared_ptr<EVP_PKEY> key;
};

class CertificateAuthorityForTest {
 public:
  CertificateAuthorityForTest() { own_ = Make("test CA", "", 3600); }

  // `alternatives` as OpenSSL writes subject alternative names: "URI:bigfleet://admin,IP:127.0.0.1". With a negative
  // lifetime the certificate has expired.
  CertificateForTest Sign(const std::string& alternatives, int64_t lifetime_seconds = 3600) {
    return Make("peer", alternatives, lifetime_seconds);
  }
  // By a CA that this one has signed.
  CertificateForTest Sign(const std::string& alternatives, int64_t lifetime_seconds, const CertificateForTest& ca) {
    return Make("peer", alternatives, lifetime_seconds, false, &ca);
  }

  // An intermediate CA.
  CertificateForTest SignCa(int64_t lifetime_seconds = 3600) { return Make("between", "", lifetime_seconds, true); }
  const CertificateForTest& own() const { return own_; }

  // Writes <dir>/<name>.cert, .key and .ca.
  TlsFiles Write(const std::string& dir, const std::string& name, const CertificateForTest& made) const {
    const TlsFiles files = {
        .cert = dir + "/" + name + ".cert", .key = dir + "/" + name + ".key", .ca = dir + "/" + name + ".ca"};
    Replace(files.cert, Pem([&](BIO* out) { PEM_write_bio_X509(out, made.certificate.get()); }));
    WriteKey(files, made);
    Replace(files.ca, Pem([&](BIO* out) { PEM_write_bio_X509(out, own_.certificate.get()); }));
    return files;
  }
  // A list of what this CA has revoked.
  void WriteRevoked(const std::string& file, const std::vector<CertificateForTest>& revoked) const {
    Replace(file, RevokedBy(own_, revoked));
  }
  // In PEM form, of any CA; `issuer` is its name as the list says it, if not as the CA does.
  static std::string RevokedBy(const CertificateForTest& ca, const std::vector<CertificateForTest>& revoked,
                               const X509_NAME* issuer = nullptr) {
    const std::unique_ptr<X509_CRL, decltype(&X509_CRL_free)> list(X509_CRL_new(), &X509_CRL_free);
    const std::unique_ptr<ASN1_TIME, decltype(&ASN1_TIME_free)> now(X509_gmtime_adj(nullptr, 0), &ASN1_TIME_free);
    X509_CRL_set_version(list.get(), 1);
    X509_CRL_set_issuer_name(list.get(), issuer != nullptr ? issuer : X509_get_subject_name(ca.certificate.get()));
    X509_CRL_set1_lastUpdate(list.get(), now.get());
    X509_CRL_set1_nextUpdate(list.get(), now.get());
    for (const CertificateForTest& one : revoked) {
      X509_REVOKED* entry = X509_REVOKED_new();
      X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(one.certificate.get()));
      X509_REVOKED_set_revocationDate(entry, now.get());
      X509_CRL_add0_revoked(list.get(), entry);
    }
    MUSTER_CHECK(X509_CRL_sign(list.get(), ca.key.get(), EVP_sha256()) != 0);
    return Pem([&](BIO* out) { PEM_write_bio_X509_CRL(out, list.get()); });
  }
  static std::string PemOf(const CertificateForTest& made) {
    return Pem([&](BIO* out) { PEM_write_bio_X509(out, made.certificate.get()); });
  }
  // By rename, so that no reader sees half a file.
  static void Replace(const std::string& file, const std::string& content) {
    std::ofstream(file + ".next", std::ios::binary) << content;
    std::filesystem::rename(file + ".next", file);
  }
  static void WriteKey(const TlsFiles& files, const CertificateForTest& made) {
    Replace(files.key, Pem([&](BIO* out) {
              PEM_write_bio_PrivateKey(out, made.key.get(), nullptr, nullptr, 0, nullptr, nullptr);
            }));
    std::filesystem::permissions(files.key, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  }

 private:
  CertificateForTest Make(const std::string& name, const std::string& alternatives, int64_t lifetime_seconds,
                          bool signs = false, const CertificateForTest* by = nullptr) {
    CertificateForTest made = {.certificate = {X509_new(), &X509_free}, .key = {EVP_EC_gen("P-256"), &EVP_PKEY_free}};
    X509* x = made.certificate.get();
    const bool is_ca = own_.certificate == nullptr;
    const CertificateForTest& ca = is_ca ? made : by == nullptr ? own_ : *by;
    X509_set_version(x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x), ++serial_);
    X509_gmtime_adj(X509_getm_notBefore(x), -3600);
    X509_gmtime_adj(X509_getm_notAfter(x), lifetime_seconds);
    X509_set_pubkey(x, made.key.get());
    const auto* text = reinterpret_cast<const unsigned char*>(name.c_str());
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_UTF8, text, -1, -1, 0);
    X509_set_issuer_name(x, X509_get_subject_name(ca.certificate.get()));
    AddExtension(x, NID_basic_constraints, is_ca || signs ? "critical,CA:TRUE" : "CA:FALSE");
    if (!alternatives.empty()) AddExtension(x, NID_subject_alt_name, alternatives);
    MUSTER_CHECK(X509_sign(x, ca.key.get(), EVP_sha256()) != 0);
    return made;
  }

  static void AddExtension(X509* x, int nid, const std::string& value) {
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, nid, value.c_str());
    MUSTER_CHECK(extension != nullptr, "{}", value);
    X509_add_ext(x, extension, -1);
    X509_EXTENSION_free(extension);
  }

  template <class WriteTo>
  static std::string Pem(const WriteTo& write) {
    const std::unique_ptr<BIO, decltype(&BIO_free_all)> out(BIO_new(BIO_s_mem()), &BIO_free_all);
    write(out.get());
    char* data = nullptr;
    const auto size = BIO_get_mem_data(out.get(), &data);
    return {data, static_cast<size_t>(size)};
  }

  CertificateForTest own_;
  int64_t serial_ = 0;
};

}  // namespace muster::rpc
