// Owners of OpenSSL's objects, and texts in PEM form.
//
// Thread-safety: functions without state.
#pragma once

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <string_view>

namespace muster::rpc {

template <auto kFree>
struct FreedBy {
  template <class T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using BioPtr = std::unique_ptr<BIO, FreedBy<BIO_free_all>>;
using X509Ptr = std::unique_ptr<X509, FreedBy<X509_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, FreedBy<EVP_PKEY_free>>;
using CsrPtr = std::unique_ptr<X509_REQ, FreedBy<X509_REQ_free>>;

inline BioPtr PemReader(std::string_view text) {
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// `write(bio)` writes one object; empty if it fails.
template <class Write>
std::string PemOf(const Write& write) {
  const BioPtr out(BIO_new(BIO_s_mem()));
  if (write(out.get()) != 1) return {};
  char* data = nullptr;
  const auto size = BIO_get_mem_data(out.get(), &data);
  return {data, static_cast<size_t>(size)};
}

// No passphrase is ever asked for on a terminal.
inline int RefusePassphrase(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*user*/) { return -1; }

}  // namespace muster::rpc
