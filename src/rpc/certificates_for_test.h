// Certificates made on the spot: a CA, and what it signs. P-256 keys, valid from an hour ago.
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

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

  // Writes <dir>/<name>.cert, .key and .ca.
  TlsFiles Write(const std::string& dir, const std::string& name, const CertificateForTest& made) const {
    const TlsFiles files = {
        .cert = dir + "/" + name + ".cert", .key = dir + "/" + name + ".key", .ca = dir + "/" + name + ".ca"};
    Replace(files.cert, Pem([&](BIO* out) { PEM_write_bio_X509(out, made.certificate.get()); }));
    WriteKey(files, made);
    Replace(files.ca, Pem([&](BIO* out) { PEM_write_bio_X509(out, own_.certificate.get()); }));
    return files;
  }
  static void WriteKey(const TlsFiles& files, const CertificateForTest& made) {
    Replace(files.key, Pem([&](BIO* out) {
              PEM_write_bio_PrivateKey(out, made.key.get(), nullptr, nullptr, 0, nullptr, nullptr);
            }));
  }

 private:
  CertificateForTest Make(const std::string& name, const std::string& alternatives, int64_t lifetime_seconds) {
    CertificateForTest made = {.certificate = {X509_new(), &X509_free}, .key = {EVP_EC_gen("P-256"), &EVP_PKEY_free}};
    X509* x = made.certificate.get();
    const bool is_ca = own_.certificate == nullptr;
    X509_set_version(x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x), ++serial_);
    X509_gmtime_adj(X509_getm_notBefore(x), -3600);
    X509_gmtime_adj(X509_getm_notAfter(x), lifetime_seconds);
    X509_set_pubkey(x, made.key.get());
    const auto* text = reinterpret_cast<const unsigned char*>(name.c_str());
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_UTF8, text, -1, -1, 0);
    X509_set_issuer_name(x, X509_get_subject_name(is_ca ? x : own_.certificate.get()));
    AddExtension(x, NID_basic_constraints, is_ca ? "critical,CA:TRUE" : "CA:FALSE");
    if (!alternatives.empty()) AddExtension(x, NID_subject_alt_name, alternatives);
    MUSTER_CHECK(X509_sign(x, is_ca ? made.key.get() : own_.key.get(), EVP_sha256()) != 0);
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

  // By rename, so that no reader sees half a file.
  static void Replace(const std::string& file, const std::string& content) {
    std::ofstream(file + ".next", std::ios::binary) << content;
    std::filesystem::rename(file + ".next", file);
  }

  CertificateForTest own_;
  int64_t serial_ = 0;
};

}  // namespace muster::rpc
