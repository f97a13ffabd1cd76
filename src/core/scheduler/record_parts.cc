#include "core/scheduler/record_parts.h"

#include <array>
#include <charconv>
#include <cmath>

#include "core/scheduler/json_fields.h"
#include "model/utf8.h"

namespace muster::scheduler {
namespace {

constexpr int64_t kMilliPerMegabyte = (int64_t{1} << 20) * 1000;
constexpr int64_t kMilliPerGigabyte = (int64_t{1} << 30) * 1000;
// Of megabytes and gigabytes: their thousandths of bytes fit int64. Of thousandths of cores: a double holds each
// exactly.
constexpr int64_t kMostMegabytes = INT64_MAX / kMilliPerMegabyte;
constexpr int64_t kMostGigabytes = INT64_MAX / kMilliPerGigabyte;
constexpr int64_t kMostMilliCores = 1'000'000'000'000'000;

int64_t RoundedUp(int64_t amount, int64_t unit) { return amount / unit + (amount % unit != 0 ? 1 : 0); }

// The number before the next ':', which it takes too.
bool TakeNumber(std::string_view& text, int32_t& out) {
  const std::string_view digits = text.substr(0, text.find(':'));
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
  if (error != std::errc() || end != digits.data() + digits.size() || out < 0 || out > 65535) return false;
  text.remove_prefix(std::min(text.size(), digits.size() + 1));
  return true;
}

// The bytes of a base64 text; nothing if it is none.
std::optional<std::string> FromBase64(std::string_view text) {
  static constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (text.empty() || text.size() % 4 != 0) return std::nullopt;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text.substr(0, text.size() - padding)) {
    const size_t value = kAlphabet.find(c);
    if (value == std::string_view::npos) return std::nullopt;
    bits = (bits << 6) | static_cast<uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<char>((bits >> count) & 0xFF));
  }
  return bytes;
}

}  // namespace

void WriteRetry(JsonWriter& out, const RetryRecord& retry) {
  out.Key("attempts");
  out.Integer(retry.attempts);
  out.Key("maxAttempts");
  out.Integer(retry.max_attempts);
  WriteField(out, "nextRetryAt", retry.next_retry_at, {});
}

void ReadRetry(JsonCursor& in, RetryRecord& retry) {
  in.Object([&](std::string_view key) {
    if (key == "attempts") return in.Read(retry.attempts);
    if (key == "maxAttempts") return in.Read(retry.max_attempts);
    if (key == "nextRetryAt") return ReadTime(in, retry.next_retry_at);
    in.Skip();
  });
}

void ReadTime(JsonCursor& in, std::optional<WallTime>& time) {
  std::string text;
  in.Read(text);
  if (!in.ok() || text.empty() || IsZeroTime(text)) return;
  WallTime read;
  if (const Status status = ParseJsonText(text, read); !status.ok()) return in.Fail(status.message());
  time = read;
}

void ReadTexts(JsonCursor& in, std::map<std::string, std::string>& map) {
  in.Object([&](std::string_view key) { in.ReadAsText(map[std::string(key)]); });
}

std::string PortText(const model::Port& port) {
  const std::string_view protocol = port.protocol == model::PortProtocol::kUdp    ? "udp"
                                    : port.protocol == model::PortProtocol::kSctp ? "sctp"
                                                                                  : "tcp";
  return fmt::format("{}{}{}:{}/{}", port.host_ip, port.host_ip.empty() ? "" : ":", port.host,
                     port.container == 0 ? port.host : port.container, protocol);
}

Result<model::Port> ParsePortText(std::string_view text) {
  const auto fail = [&] {
    return InvalidArgument(fmt::format("{} is no port; write host:container/protocol", model::Quoted(text)));
  };
  model::Port port;
  std::string_view rest = text;
  if (const size_t slash = rest.rfind('/'); slash != std::string_view::npos) {
    const std::string_view name = rest.substr(slash + 1);
    if (name == "udp" || name == "UDP") {
      port.protocol = model::PortProtocol::kUdp;
    } else if (name == "sctp" || name == "SCTP") {
      port.protocol = model::PortProtocol::kSctp;
    } else if (name != "tcp" && name != "TCP" && !name.empty()) {
      return fail();
    }
    rest = rest.substr(0, slash);
  }
  // The last two parts are ports; what stands before them is an address, which may hold ':' itself.
  const size_t last = rest.rfind(':');
  if (last == std::string_view::npos) return TakeNumber(rest, port.container) ? Result<model::Port>(port) : fail();
  if (const size_t before = rest.substr(0, last).rfind(':'); before != std::string_view::npos) {
    port.host_ip = rest.substr(0, before);
    rest.remove_prefix(before + 1);
  }
  if (!TakeNumber(rest, port.host) || !TakeNumber(rest, port.container) || !rest.empty()) return fail();
  return port;
}

std::string VolumeText(const model::VolumeMount& volume) {
  return fmt::format("{}:{}{}", volume.source, volume.target, volume.read_only ? ":ro" : "");
}

Result<model::VolumeMount> ParseVolumeText(std::string_view text) {
  const auto fail = [&] {
    return InvalidArgument(
        fmt::format("{} is no volume; write source:target or source:target:ro", model::Quoted(text)));
  };
  const size_t first = text.find(':');
  if (first == std::string_view::npos) return fail();
  const std::string_view rest = text.substr(first + 1);
  const size_t second = rest.find(':');
  const std::string_view options = second == std::string_view::npos ? "" : rest.substr(second + 1);
  if (options != "" && options != "ro" && options != "rw") return fail();
  return model::VolumeMount{.source = std::string(text.substr(0, first)),
                            .target = std::string(rest.substr(0, second)),
                            .read_only = options == "ro"};
}

CoarseAmounts Coarse(const model::Resources& resources) {
  return {.cpu_milli = std::min(resources.Get("cpu"), kMostMilliCores),
          .memory_mb = std::min(RoundedUp(resources.Get("memory"), kMilliPerMegabyte), kMostMegabytes),
          .disk_gb = std::min(RoundedUp(resources.Get("disk"), kMilliPerGigabyte), kMostGigabytes)};
}

model::Resources Fine(const CoarseAmounts& amounts) {
  model::Resources resources;
  resources.Set("cpu", amounts.cpu_milli);
  resources.Set("memory", std::min(amounts.memory_mb, kMostMegabytes) * kMilliPerMegabyte);
  resources.Set("disk", std::min(amounts.disk_gb, kMostGigabytes) * kMilliPerGigabyte);
  return resources;
}

void ReadCores(JsonCursor& in, int64_t& cpu_milli) {
  double cores = 0;
  in.Read(cores);
  if (cores < 0 || cores * 1000 > static_cast<double>(kMostMilliCores))
    return in.Fail("this many cores are not possible");
  cpu_milli = std::llround(cores * 1000);
}

void ReadAmount(JsonCursor& in, int64_t& whole) {
  double amount = 0;
  in.Read(amount);
  if (amount < 0 || amount > static_cast<double>(kMostMegabytes)) return in.Fail("this amount is not possible");
  whole = static_cast<int64_t>(std::ceil(amount));
}

std::string ParseCompose(std::string_view text) {
  if (text.contains(':')) return std::string(text);
  const std::optional<std::string> bytes = FromBase64(text);
  const bool is_text = bytes && model::FindInvalidUtf8(*bytes) == std::string_view::npos && bytes->contains(':');
  return is_text ? *bytes : std::string(text);
}

}  // namespace muster::scheduler
