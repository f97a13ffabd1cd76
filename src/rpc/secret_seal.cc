#include "rpc/secret_seal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <vector>

#include "base/check.h"
#include "host/text_file.h"

namespace muster::rpc {
namespace {

constexpr std::string_view kPrefix = "sealed:";
constexpr size_t kNonceBytes = 12;
constexpr size_t kTagBytes = 16;
constexpr char kOwnerEnds = '\0';  // no owner has one

using Bytes = std::vector<unsigned char>;
using Cipher = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;

std::span<const unsigned char> AsBytes(std::string_view text) {
  return {reinterpret_cast<const unsigned char*>(text.data()), text.size()};
}

SecretSeal::Key Keyed(std::span<const unsigned char> key, std::string_view text) {
  SecretSeal::Key digest;
  unsigned int size = 0;
  const auto bytes = AsBytes(text);
  const bool done = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), bytes.data(), bytes.size(),
                         digest.data(), &size) != nullptr;
  MUSTER_CHECK(done && size == digest.size(), "no HMAC");
  return digest;
}

std::string ToBase64(const Bytes& bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int size =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), bytes.data(), static_cast<int>(bytes.size()));
  text.resize(static_cast<size_t>(size));
  return text;
}

// Nothing for what is no base64.
std::optional<Bytes> FromBase64(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0) return std::nullopt;
  Bytes bytes(text.size() / 4 * 3);
  const auto from = AsBytes(text);
  if (EVP_DecodeBlock(bytes.data(), from.data(), static_cast<int>(from.size())) < 0) return std::nullopt;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  bytes.resize(bytes.size() - padding);
  return bytes;
}

std::unexpected<Status> NotOurs() {
  return InvalidArgument("the sealed text was not made with this scheduler's key, or was changed; give the value");
}

Result<SecretSeal::Key> ReadKey(const std::filesystem::path& file) {
  MUSTER_ASSIGN_OR_RETURN(std::string text, host::ReadTextFile(file, {.max_bytes = 4096}));
  struct stat found = {};
  if (stat(file.c_str(), &found) == 0 && (found.st_mode & (S_IROTH | S_IWOTH)) != 0) {
    return InvalidArgument(
        fmt::format("{}: every user of this machine may read or change the key; chmod 600 it, and "
                    "make a new one",
                    file.string()));
  }
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  SecretSeal::Key key;
  bool good = text.size() == 2 * key.size();
  for (size_t i = 0; good && i < key.size(); ++i) {
    const char* const digits = text.data() + 2 * i;
    const auto read = std::from_chars(digits, digits + 2, key[i], 16);
    good = read.ec == std::errc() && read.ptr == digits + 2;
  }
  if (good) return key;
  return InvalidArgument(
      fmt::format("{}: holds no key; make one of 64 hexadecimal digits: openssl rand -hex 32", file.string()));
}

// Whole or not at all, and durable before anything is sealed with it.
Status MakeKey(const std::filesystem::path& file, const SecretSeal::Key& key) {
  const std::string draft = fmt::format("{}.{}", file.string(), getpid());
  const int fd = open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, S_IRUSR | S_IWUSR);
  const std::string text = fmt::format("{:02x}\n", fmt::join(key, ""));
  bool made = fd >= 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && fsync(fd) == 0;
  made = made && (link(draft.c_str(), file.c_str()) == 0 || errno == EEXIST);  // another process may be faster
  const int directory = made ? open(file.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
  made = made && directory >= 0 && fsync(directory) == 0;
  const int error = errno;
  if (directory >= 0) close(directory);
  if (fd >= 0) close(fd);
  unlink(draft.c_str());
  if (made) return {};
  return {Code::kUnavailable,
          fmt::format("cannot write {}: {}", file.string(), std::generic_category().message(error))};
}

}  // namespace

SecretSeal SecretSeal::Random() {
  Key key;
  MUSTER_CHECK(RAND_bytes(key.data(), static_cast<int>(key.size())) == 1, "no random numbers");
  return SecretSeal(key);
}

Result<SecretSeal> SecretSeal::Read(const std::filesystem::path& file) {
  MUSTER_ASSIGN_OR_RETURN(const Key key, ReadKey(file));
  return SecretSeal(key);
}

Result<SecretSeal> SecretSeal::ReadOrMake(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) {
    if (Status made = MakeKey(file, Random().key_); !made.ok()) return std::unexpected(std::move(made));
  }
  return Read(file);
}

bool SecretSeal::IsSealed(std::string_view text) { return text.starts_with(kPrefix); }

// AES-256-GCM, with a nonce that is a keyed digest of what is sealed: two texts share a nonce only if they are one.
std::string SecretSeal::Seal(std::string_view owner, std::string_view value) const {
  std::string content(owner);
  content += kOwnerEnds;
  content += value;
  const Key nonce = Keyed(Keyed(key_, "nonce"), content);
  const Key secret = Keyed(key_, "secret");
  Bytes out(nonce.begin(), nonce.begin() + kNonceBytes);
  out.resize(kNonceBytes + kTagBytes + content.size());
  const Cipher cipher(EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free);
  int size = 0;
  const auto plain = AsBytes(content);
  unsigned char* const body = out.data() + kNonceBytes + kTagBytes;
  const bool done = EVP_EncryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, secret.data(), nonce.data()) == 1 &&
                    EVP_EncryptUpdate(cipher.get(), body, &size, plain.data(), static_cast<int>(plain.size())) == 1 &&
                    EVP_EncryptFinal_ex(cipher.get(), body + size, &size) == 1 &&
                    EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_GET_TAG, kTagBytes, out.data() + kNonceBytes) == 1;
  MUSTER_CHECK(done, "a value cannot be sealed");
  return std::string(kPrefix) + ToBase64(out);
}

Result<SecretSeal::Content> SecretSeal::Unseal(std::string_view sealed) const {
  if (!IsSealed(sealed)) return NotOurs();
  std::optional<Bytes> bytes = FromBase64(sealed.substr(kPrefix.size()));
  if (!bytes || bytes->size() < kNonceBytes + kTagBytes) return NotOurs();
  const Key secret = Keyed(key_, "secret");
  const size_t length = bytes->size() - kNonceBytes - kTagBytes;
  std::string content(length, '\0');
  const Cipher cipher(EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free);
  int size = 0;
  unsigned char* const plain = reinterpret_cast<unsigned char*>(content.data());
  const bool done =
      EVP_DecryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, secret.data(), bytes->data()) == 1 &&
      EVP_DecryptUpdate(cipher.get(), plain, &size, bytes->data() + kNonceBytes + kTagBytes,
                        static_cast<int>(length)) == 1 &&
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_SET_TAG, kTagBytes, bytes->data() + kNonceBytes) == 1 &&
      EVP_DecryptFinal_ex(cipher.get(), plain + size, &size) == 1;
  const size_t owner = content.find(kOwnerEnds);
  if (!done || owner == std::string::npos) return NotOurs();
  return Content{.owner = content.substr(0, owner), .value = content.substr(owner + 1)};
}

Result<std::string> SecretSeal::Open(std::string_view sealed) const {
  MUSTER_ASSIGN_OR_RETURN(Content content, Unseal(sealed));
  return std::move(content.value);
}

Result<std::string> SecretSeal::OpenFor(std::string_view owner, std::string_view sealed) const {
  MUSTER_ASSIGN_OR_RETURN(Content content, Unseal(sealed));
  if (content.owner == owner) return std::move(content.value);
  return InvalidArgument("the sealed text belongs to another workload or variable; give the value");
}

}  // namespace muster::rpc
