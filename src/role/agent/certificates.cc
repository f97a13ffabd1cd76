#include "role/agent/certificates.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <future>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "host/text_file.h"
#include "rpc/enrol_client.h"
#include "rpc/node_key.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

constexpr Duration kLook = 50ms;  // at whether the agent stops
constexpr Duration kFirstPause = 200ms;
constexpr Duration kLongestPause = 5s;
constexpr Duration kLongestSleep = 30s;  // clocks are set, and machines sleep

Status CannotKeep(const fs::path& path, int error) {
  return {Code::kUnavailable,
          fmt::format("cannot write {}: {}", path.string(), std::generic_category().message(error))};
}

Status MakeDirectory(const fs::path& path) {
  if (mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST) return CannotKeep(path, errno);
  return chmod(path.c_str(), S_IRWXU) == 0 ? Status() : CannotKeep(path, errno);
}

// Whole or not at all, durable, and private to this user.
Status ReplaceFile(const fs::path& path, std::string_view text) {
  const std::string draft = path.string() + ".new";
  const int file = open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, S_IRUSR | S_IWUSR);
  bool whole = file >= 0 && write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
               fsync(file) == 0 && rename(draft.c_str(), path.c_str()) == 0;
  const int directory = whole ? open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
  whole = whole && directory >= 0 && fsync(directory) == 0;
  const int error = errno;
  if (directory >= 0) close(directory);
  if (file >= 0) close(file);
  return whole ? Status() : CannotKeep(path, error);
}

// When a file was written last; nothing if it is not there.
std::optional<WallTime> WrittenAt(const fs::path& path) {
  struct stat found = {};
  if (stat(path.c_str(), &found) != 0) return std::nullopt;
  return WallTime(std::chrono::seconds(found.st_mtim.tv_sec) + std::chrono::nanoseconds(found.st_mtim.tv_nsec));
}

struct Life {
  WallTime from;  // when it was signed: certificates say a moment before
  WallTime until;
  WallTime due() const { return from + (until - from) / 3 * 2; }
};
Result<Life> LifeOf(const fs::path& certificate, WallTime now) {
  MUSTER_ASSIGN_OR_RETURN(const std::string pem, host::ReadTextFile(certificate.string()));
  MUSTER_ASSIGN_OR_RETURN(const rpc::CertificateFacts facts, rpc::ReadCertificate(pem));
  const WallTime written = WrittenAt(certificate).value_or(facts.from);
  return Life{.from = std::clamp(written, facts.from, std::max(facts.from, now)), .until = facts.until};
}

bool IsRefusal(Code code) {
  return code == Code::kPermissionDenied || code == Code::kInvalidArgument || code == Code::kUnimplemented;
}

}  // namespace

rpc::TlsFiles OwnCertificate(const fs::path& data_dir) {
  const fs::path tls = data_dir / "tls";
  return {.cert = (tls / "cert.pem").string(), .key = (tls / "key.pem").string(), .ca = (tls / "ca.pem").string()};
}

bool Certificates::HasOwn() const {
  const rpc::TlsFiles own = OwnCertificate(options_.data_dir);
  std::error_code error;
  if (!fs::exists(own.cert, error) || !rpc::ReadTlsMaterial(own)) return false;
  const auto pem = host::ReadTextFile(own.cert);
  if (!pem) return false;
  const auto facts = rpc::ReadCertificate(*pem);
  if (!facts) return false;
  const std::string identity = fmt::format("muster://node/{}/{}", options_.cluster, options_.node);
  const bool fits = options_.cluster.empty() || std::ranges::find(facts->uris, identity) != facts->uris.end();
  const bool expired = facts->until <= clock_.Read().wall;
  if (fits && !expired) return true;
  if (!options_.token.empty()) return false;
  log::Err("the node's certificate is not fit, and there is no join token for another; configure the machine anew",
           {{"file", own.cert}, {"why", expired ? "it has expired" : "it is another node's"}});
  return true;
}

Status Certificates::Enrol(const std::function<bool()>& cancelled) {
  std::error_code error;
  if (!HasOwn()) {
    if (options_.token.empty()) {
      return {Code::kFailedPrecondition,
              fmt::format("{} holds no certificate, and there is no join token for one; configure the machine anew",
                          (options_.data_dir / "tls").string())};
    }
    if (Status bought = Buy(cancelled); !bought.ok()) {
      fs::remove_all(JoinDir(), error);
      return bought;
    }
  }
  fs::remove_all(JoinDir(), error);
  if (error) return CannotKeep(JoinDir(), error.value());
  return {};
}

Status Certificates::Buy(const std::function<bool()>& cancelled) {
  const auto token = rpc::ReadCertificate(options_.token);
  if (!token) return {token.error().code(), fmt::format("join-token: {}", token.error().message())};
  const rpc::TlsFiles own = OwnCertificate(options_.data_dir);
  MUSTER_RETURN_IF_ERROR(MakeDirectory(options_.data_dir / "tls"));
  MUSTER_RETURN_IF_ERROR(MakeDirectory(JoinDir()));
  // The key of an earlier try is as good: the scheduler has perhaps signed it.
  const auto key = host::ReadTextFile(own.key);
  if (!key || !rpc::MakeCertificateRequest(*key)) {
    MUSTER_RETURN_IF_ERROR(ReplaceFile(own.key, rpc::MakeNodeKey()));
  }
  const std::string file = (JoinDir() / "token.pem").string();  // certificate and key: readers find what they look for
  const rpc::TlsFiles as = {.cert = file, .key = file, .ca = (JoinDir() / "ca.pem").string()};
  MUSTER_RETURN_IF_ERROR(ReplaceFile(as.cert, options_.token));
  MUSTER_RETURN_IF_ERROR(ReplaceFile(as.ca, options_.ca));
  Duration pause = kFirstPause;
  for (std::string said;;) {
    if (token->until <= clock_.Read().wall) {
      return {Code::kFailedPrecondition, "the join token has expired; configure the machine anew"};
    }
    const auto made = Ask(as, cancelled);
    if (cancelled()) return {Code::kCancelled, "stopped before a scheduler had signed the node's certificate"};
    if (made) return Keep(*made);
    if (IsRefusal(made.error().code())) return made.error();
    if (std::exchange(said, made.error().message()) != made.error().message()) {
      log::Warn("waiting for a certificate", {{"scheduler", options_.schedulers}, {"why", made.error().message()}});
    }
    for (Duration slept{}; slept < pause && !cancelled(); slept += kLook) std::this_thread::sleep_for(kLook);
    pause = std::min(2 * pause, kLongestPause);
  }
}

Result<rpc::SignedNode> Certificates::Ask(const rpc::TlsFiles& as, const std::function<bool()>& cancelled) const {
  MUSTER_ASSIGN_OR_RETURN(const std::string key, host::ReadTextFile(OwnCertificate(options_.data_dir).key));
  MUSTER_ASSIGN_OR_RETURN(const std::string csr, rpc::MakeCertificateRequest(key));
  MUSTER_ASSIGN_OR_RETURN(const auto client, rpc::MakeEnrolClient(options_.schedulers, as, options_.cluster));
  const auto answer = std::make_shared<std::promise<Result<rpc::SignedNode>>>();
  client->Sign({.node = options_.node, .host = options_.host, .csr_pem = csr},
               [answer](Result<rpc::SignedNode> made) { answer->set_value(std::move(made)); });
  auto arrives = answer->get_future();
  while (arrives.wait_for(kLook) != std::future_status::ready) {
    if (cancelled()) return Error(Code::kCancelled, "stopped");  // the client cancels the call
  }
  return arrives.get();
}

Status Certificates::Keep(const rpc::SignedNode& made) const {
  const auto facts = rpc::ReadCertificate(made.chain_pem);
  if (!facts) return {Code::kInternal, fmt::format("the scheduler answers with {}", facts.error().message())};
  const rpc::TlsFiles own = OwnCertificate(options_.data_dir);
  const auto known = host::ReadTextFile(own.ca);
  if (!known || *known != made.ca_pem) MUSTER_RETURN_IF_ERROR(ReplaceFile(own.ca, made.ca_pem));
  MUSTER_RETURN_IF_ERROR(ReplaceFile(own.cert, made.chain_pem));
  const auto left = std::chrono::duration_cast<std::chrono::seconds>(facts->until - clock_.Read().wall);
  log::Info("the node has a certificate", {{"serial", facts->serial}, {"seconds", left.count()}});
  return {};
}

void Certificates::Start() {
  renewals_ = std::jthread([this](const std::stop_token& stop) { Renew(stop); });
}

void Certificates::Stop() {
  if (!renewals_.joinable()) return;
  renewals_.request_stop();
  renewals_.join();
}

void Certificates::Renew(const std::stop_token& stop) {
  const rpc::TlsFiles own = OwnCertificate(options_.data_dir);
  const auto sleep = [&](Duration time) {
    std::unique_lock lock(mu_);
    stops_.wait_for(lock, stop, std::min(time, kLongestSleep), [] { return false; });
  };
  while (!stop.stop_requested()) {
    const WallTime now = clock_.Read().wall;
    const auto life = LifeOf(own.cert, now);
    if (life && now < life->due()) {
      sleep(life->due() - now);
      continue;
    }
    const auto made = Ask(own, [&stop] { return stop.stop_requested(); });
    if (stop.stop_requested()) return;
    const Status kept = made ? Keep(*made) : made.error();
    if (kept.ok()) {
      sleep(1s);  // clocks that differ may make the new one due already
      continue;
    }
    log::Warn("the node's certificate cannot be renewed", {{"why", kept.message()}});
    sleep(life ? std::clamp<Duration>((life->until - life->from) / 50, 500ms, kLongestSleep) : kLongestSleep);
  }
}

}  // namespace muster::agent
