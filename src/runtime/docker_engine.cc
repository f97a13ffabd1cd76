#include "runtime/docker_engine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <thread>

#include "model/text_scalars.h"
#include "runtime/docker_json.h"

namespace muster::runtime {
namespace {

constexpr size_t kLastBytes = 2048;
constexpr int32_t kKilled = 128 + 9;
constexpr std::string_view kLastLines = "20";

Status Refused(const std::string& what, const DockerReply& reply) {
  // The engine understood and will say the same again, or is in trouble itself.
  const Code code = reply.status >= 500 ? Code::kUnavailable : Code::kInvalidArgument;
  return {code, fmt::format("{}: {}", what, DockerMessage(reply))};
}

std::string Filter(const DockerEngine::Labels& labels) {
  rapidjson::StringBuffer text;
  rapidjson::Writer<rapidjson::StringBuffer> json(text);
  json.StartObject();
  json.Key("label");
  json.StartArray();
  for (const auto& [key, value] : labels) json.String(fmt::format("{}={}", key, value).c_str());
  json.EndArray();
  json.EndObject();
  return "filters=" + UrlEscape(text.GetString());
}

// A network or a volume that is asked for: its name and labels, and for a network the subnet, if it is known.
std::string NamedBody(const std::string& name, const DockerEngine::Labels& labels, const std::string& subnet) {
  rapidjson::StringBuffer text;
  rapidjson::Writer<rapidjson::StringBuffer> json(text);
  json.StartObject();
  json.Key("Name");
  json.String(name.c_str());
  json.Key("Labels");
  json.StartObject();
  for (const auto& [key, value] : labels) {
    json.Key(key.c_str());
    json.String(value.c_str());
  }
  json.EndObject();
  if (!subnet.empty()) {
    json.Key("IPAM");
    json.StartObject();
    json.Key("Config");
    json.StartArray();
    json.StartObject();
    json.Key("Subnet");
    json.String(subnet.c_str());
    json.EndObject();
    json.EndArray();
    json.EndObject();
  }
  json.EndObject();
  return text.GetString();
}

// Podman answers 500 for a container that is removed while it is looked up.
bool IsGone(const DockerReply& reply) {
  return reply.status == 404 || (reply.status == 500 && reply.body.contains("no such container"));
}

constexpr int kMostLooks = 20;
constexpr Duration kLookAgainAfter = 100ms;

std::set<std::string> VolumesOf(const Json& container) {
  std::set<std::string> names;
  const Json& mounts = At(container, "Mounts");
  if (!mounts.IsArray()) return names;
  for (const Json& mount : mounts.GetArray()) {
    if (TextAt(mount, "Type") == "volume") names.insert(TextAt(mount, "Name"));
  }
  return names;
}

ContainerState StateOf(const Json& container) {
  const Json& state = At(container, "State");
  const Json& config = At(container, "Config");
  const Json& host = At(container, "HostConfig");
  const Json& policy = At(host, "RestartPolicy");
  return {.id = TextAt(container, "Id"),
          .image = TextAt(config, "Image"),
          .labels = TextsAt(config, "Labels"),
          .volumes = VolumesOf(container),
          .running = At(state, "Running").IsTrue(),
          .restarting = At(state, "Restarting").IsTrue(),
          .started_at = TimeAt(state, "StartedAt"),
          .finished_at = TimeAt(state, "FinishedAt"),
          .exit_code = static_cast<int32_t>(NumberAt(state, "ExitCode")),
          .oom_killed = At(state, "OOMKilled").IsTrue(),
          .limited = NumberAt(host, "Memory") > 0,
          .error = TextAt(state, "Error"),
          .restart = TextAt(policy, "Name"),
          .max_restarts = NumberAt(policy, "MaximumRetryCount"),
          .restarts = NumberAt(container, "RestartCount")};
}

}  // namespace

std::string ContainerState::Label(const char* name) const {
  const auto found = labels.find(name);
  return found == labels.end() ? std::string() : found->second;
}

contract::Run NeverRan(const contract::StartRun& start, WallTime now, std::string why) {
  return {.workload = start.workload,
          .launch = start.launch,
          .revision = start.revision,
          .started_at = now,
          .ended_at = now,
          .message = std::move(why)};
}

std::string HowItEnded(const ContainerState& state, bool stopped) {
  std::string text =
      state.oom_killed ? "killed: it used more memory than its limit" : fmt::format("exit code {}", state.exit_code);
  const bool killed = !state.oom_killed && state.exit_code == kKilled && !stopped;
  if (killed && state.limited) text += ": killed, perhaps because it used more memory than its limit";
  if (!state.error.empty()) text += ": " + state.error;
  return text;
}

bool LogFrames::Add(std::string_view piece, const std::function<bool(contract::LogStream, std::string_view)>& frame) {
  constexpr size_t kHeader = 8;
  constexpr size_t kLongest = 4 << 20;
  rest_.append(piece);
  size_t at = 0;
  while (rest_.size() - at >= kHeader) {
    const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(rest_[at + i])); };
    const size_t length = byte(4) << 24 | byte(5) << 16 | byte(6) << 8 | byte(7);
    if (byte(0) > 2 || length > kLongest) return false;
    if (rest_.size() - at - kHeader < length) break;
    const auto stream = byte(0) == 2 ? contract::LogStream::kStderr : contract::LogStream::kStdout;
    if (!frame(stream, std::string_view(rest_).substr(at + kHeader, length))) return false;
    at += kHeader + length;
  }
  rest_.erase(0, at);
  return true;
}

DockerEngine::DockerEngine(const ContainerOptions& options)
    : api_(options.socket), timeout_(options.timeout), pull_timeout_(options.pull_timeout) {}

// --- containers

Result<std::optional<ContainerState>> DockerEngine::Inspect(const std::string& container) const {
  for (int looks = 1;; ++looks) {
    MUSTER_ASSIGN_OR_RETURN(const DockerReply reply,
                            api_.Get(fmt::format("/containers/{}/json", UrlEscape(container)), timeout_));
    if (IsGone(reply)) return std::nullopt;
    if (reply.status != 200) return std::unexpected(Refused("inspect", reply));
    MUSTER_ASSIGN_OR_RETURN(const rapidjson::Document document, ParseJson(reply));
    ContainerState state = StateOf(document);
    // Podman says that a container does not run before it has written down how it ended, and its code may be 0 until
    // then.
    if (state.recorded() || looks == kMostLooks) return state;
    std::this_thread::sleep_for(kLookAgainAfter);
  }
}

Result<std::vector<std::string>> DockerEngine::List(const Labels& labels) const {
  MUSTER_ASSIGN_OR_RETURN(const DockerReply reply, api_.Get("/containers/json?all=1&" + Filter(labels), timeout_));
  if (reply.status != 200) return std::unexpected(Refused("list", reply));
  MUSTER_ASSIGN_OR_RETURN(const rapidjson::Document document, ParseJson(reply));
  std::vector<std::string> ids;
  if (!document.IsArray()) return ids;
  for (const Json& container : document.GetArray()) ids.push_back(TextAt(container, "Id"));
  return ids;
}

Result<DockerEngine::Refusal> DockerEngine::Pull(const std::string& image) const {
  MUSTER_ASSIGN_OR_RETURN(const DockerReply reply,
                          api_.Post("/images/create?fromImage=" + UrlEscape(image), "", pull_timeout_));
  // The answer is a list of steps, and an error may be the last of them.
  if (reply.status == 200 && !reply.body.contains("\"error\"")) return std::nullopt;
  return fmt::format("image {} cannot be pulled: {}", image,
                     reply.status == 200 ? reply.body.substr(reply.body.rfind('{'), 300) : DockerMessage(reply));
}

Result<DockerEngine::ImageUser> DockerEngine::UserOf(const std::string& image) const {
  const std::string path = fmt::format("/images/{}/json", UrlEscape(image));
  MUSTER_ASSIGN_OR_RETURN(DockerReply reply, api_.Get(path, timeout_));
  if (reply.status == 404) {
    MUSTER_ASSIGN_OR_RETURN(Refusal refusal, Pull(image));
    if (refusal) return ImageUser{.refusal = std::move(refusal), .user = {}};
    MUSTER_ASSIGN_OR_RETURN(reply, api_.Get(path, timeout_));
  }
  if (reply.status >= 500) return std::unexpected(Refused("image", reply));
  if (reply.status != 200) return ImageUser{.refusal = DockerMessage(reply), .user = {}};
  MUSTER_ASSIGN_OR_RETURN(const rapidjson::Document document, ParseJson(reply));
  return ImageUser{.refusal = {}, .user = TextAt(At(document, "Config"), "User")};
}

Result<DockerEngine::Refusal> DockerEngine::Create(const std::string& name, const std::string& image,
                                                   const std::string& body) const {
  const std::string path = "/containers/create?name=" + UrlEscape(name);
  MUSTER_ASSIGN_OR_RETURN(DockerReply reply, api_.Post(path, body, timeout_));
  if (reply.status == 404) {
    MUSTER_ASSIGN_OR_RETURN(Refusal refusal, Pull(image));
    if (refusal) return refusal;
    MUSTER_ASSIGN_OR_RETURN(reply, api_.Post(path, body, timeout_));
  }
  if (reply.status == 201) return std::nullopt;
  if (reply.status >= 500) return std::unexpected(Refused("create", reply));
  return DockerMessage(reply);
}

Result<DockerEngine::Refusal> DockerEngine::Start(const std::string& container) const {
  MUSTER_ASSIGN_OR_RETURN(const DockerReply reply,
                          api_.Post(fmt::format("/containers/{}/start", UrlEscape(container)), "", timeout_));
  if (reply.status == 204 || reply.status == 304) return std::nullopt;
  return DockerMessage(reply);
}

Status DockerEngine::Stop(const std::string& container, Duration grace) const {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(grace).count();
  const auto reply =
      api_.Post(fmt::format("/containers/{}/stop?t={}", UrlEscape(container), seconds), "", timeout_ + grace);
  if (!reply) return reply.error();
  if (reply->status != 204 && reply->status != 304 && !IsGone(*reply)) return Refused("stop", *reply);
  return {};
}

Status DockerEngine::Remove(const std::string& container) const {
  const auto reply = api_.Delete(fmt::format("/containers/{}?force=1&v=1", UrlEscape(container)), timeout_);
  if (!reply) return reply.error();
  if (reply->status != 204 && reply->status != 200 && !IsGone(*reply)) return Refused("remove", *reply);
  return {};
}

// --- logs and usage

std::string DockerEngine::LastLines(const std::string& container) const {
  std::string lines;
  LogFrames frames;
  const Status status = api_.Stream(
      fmt::format("/containers/{}/logs?stdout=1&stderr=1&tail={}", UrlEscape(container), kLastLines),
      [&](std::string_view piece) {
        return frames.Add(piece, [&](contract::LogStream, std::string_view text) {
          lines.append(text);
          return true;
        });
      },
      [this] { return closing_.load(); });
  if (!status.ok()) return {};
  if (lines.size() > kLastBytes) lines.erase(0, lines.size() - kLastBytes);
  return lines;
}

Status DockerEngine::ReadLogs(const std::string& container, const contract::ReadLogs& request,
                              const std::function<bool(contract::LogChunk)>& write,
                              const std::function<bool()>& closing) const {
  std::string path = fmt::format("/containers/{}/logs?stdout=1&stderr=1&timestamps=1&follow={}", UrlEscape(container),
                                 request.follow ? 1 : 0);
  if (request.tail) path += fmt::format("&tail={}", *request.tail);
  if (request.since) {
    path += fmt::format("&since={}",
                        std::chrono::duration_cast<std::chrono::seconds>(request.since->time_since_epoch()).count());
  }
  LogFrames frames;
  return api_.Stream(
      path,
      [&](std::string_view piece) {
        return frames.Add(piece, [&](contract::LogStream stream, std::string_view text) {
          // "<RFC 3339> line"
          contract::LogChunk chunk{.stream = stream, .data = std::string(text)};
          const size_t blank = text.find(' ');
          if (blank != std::string_view::npos) {
            if (const auto at = model::ParseWallTime(text.substr(0, blank))) {
              chunk.at = *at;
              chunk.data = std::string(text.substr(blank + 1));
            }
          }
          return write(std::move(chunk));
        });
      },
      [&] { return closing_.load() || closing(); });
}

Result<ContainerUsage> DockerEngine::Measure(const std::string& container) const {
  MUSTER_ASSIGN_OR_RETURN(
      const DockerReply reply,
      api_.Get(fmt::format("/containers/{}/stats?stream=0&one-shot=1", UrlEscape(container)), timeout_));
  if (reply.status != 200) return std::unexpected(Refused("stats", reply));
  MUSTER_ASSIGN_OR_RETURN(const rapidjson::Document document, ParseJson(reply));
  ContainerUsage usage{.cpu_ns = NumberAt(At(At(document, "cpu_stats"), "cpu_usage"), "total_usage"),
                       .usage = {.memory_bytes = NumberAt(At(document, "memory_stats"), "usage"), .source = "docker"}};
  const Json& networks = At(document, "networks");
  if (networks.IsObject()) {
    for (const auto& network : networks.GetObject()) {
      usage.usage.net_rx_bytes += NumberAt(network.value, "rx_bytes");
      usage.usage.net_tx_bytes += NumberAt(network.value, "tx_bytes");
    }
  }
  return usage;
}

// --- networks and volumes

Result<std::optional<std::string>> DockerEngine::SubnetOf(const std::string& network) const {
  MUSTER_ASSIGN_OR_RETURN(const DockerReply reply, api_.Get("/networks/" + UrlEscape(network), timeout_));
  if (reply.status == 404) return std::nullopt;
  if (reply.status != 200) return std::unexpected(Refused("network", reply));
  MUSTER_ASSIGN_OR_RETURN(const rapidjson::Document document, ParseJson(reply));
  const Json& config = At(At(document, "IPAM"), "Config");
  if (!config.IsArray() || config.Empty()) return Error(Code::kUnavailable, "the network has no subnet");
  return TextAt(config[0], "Subnet");
}

Result<std::string> DockerEngine::EnsureNetwork(const std::string& name, const Labels& labels) const {
  MUSTER_ASSIGN_OR_RETURN(std::optional<std::string> subnet, SubnetOf(name));
  if (subnet) {
    MUSTER_ASSIGN_OR_RETURN(const bool others, IsOthers("/networks/" + UrlEscape(name), labels));
    if (others) return InvalidArgument(fmt::format("the network \"{}\" is not this workload's", name));
    return *std::move(subnet);
  }
  // The engine knows which subnets are free, but dockerd gives out addresses that are asked for only in a subnet that
  // was asked for too: it chooses, and is asked for its choice.
  const auto create = [&](const std::string& in) -> Status {
    const auto reply = api_.Post("/networks/create", NamedBody(name, labels, in), timeout_);
    if (!reply) return reply.error();
    return reply->status == 201 ? Status() : Refused("network", *reply);
  };
  if (Status made = create(""); !made.ok()) return std::unexpected(std::move(made));
  MUSTER_ASSIGN_OR_RETURN(subnet, SubnetOf(name));
  if (!subnet) return Error(Code::kUnavailable, "the network went away as it was made");
  MUSTER_ASSIGN_OR_RETURN(const DockerReply gone, api_.Delete("/networks/" + UrlEscape(name), timeout_));
  if (gone.status != 204 && gone.status != 200) return std::unexpected(Refused("network", gone));
  if (Status made = create(*subnet); !made.ok()) return std::unexpected(std::move(made));
  return *std::move(subnet);
}

Result<bool> DockerEngine::IsOthers(const std::string& path, const Labels& labels) const {
  MUSTER_ASSIGN_OR_RETURN(const DockerReply reply, api_.Get(path, timeout_));
  if (reply.status != 200) return std::unexpected(Refused("labels", reply));
  MUSTER_ASSIGN_OR_RETURN(const rapidjson::Document document, ParseJson(reply));
  const Json& has = At(document, "Labels");
  if (!has.IsObject()) return false;
  return std::ranges::any_of(labels, [&](const auto& label) {
    return has.HasMember(label.first.c_str()) && TextAt(has, label.first.c_str()) != label.second;
  });
}

Result<bool> DockerEngine::HasVolume(const std::string& name) const {
  MUSTER_ASSIGN_OR_RETURN(const DockerReply reply, api_.Get("/volumes/" + UrlEscape(name), timeout_));
  if (reply.status == 200) return true;
  if (reply.status == 404) return false;
  return std::unexpected(Refused("volume", reply));
}

Result<DockerEngine::Refusal> DockerEngine::EnsureVolume(const std::string& name, const Labels& labels) const {
  MUSTER_ASSIGN_OR_RETURN(const bool known, HasVolume(name));
  if (known) {
    MUSTER_ASSIGN_OR_RETURN(const bool others, IsOthers("/volumes/" + UrlEscape(name), labels));
    if (others) return fmt::format("the volume \"{}\" is of another workload or tenant", name);
    return std::nullopt;
  }
  MUSTER_ASSIGN_OR_RETURN(const DockerReply reply, api_.Post("/volumes/create", NamedBody(name, labels, ""), timeout_));
  if (reply.status == 201) return std::nullopt;
  if (reply.status >= 500) return std::unexpected(Refused("volume", reply));
  return DockerMessage(reply);
}

Status DockerEngine::RemoveAll(const std::vector<std::string>& paths, const char* what) const {
  for (const std::string& path : paths) {
    const auto reply = api_.Delete(path, timeout_);
    if (!reply) return reply.error();
    if (reply->status != 204 && reply->status != 200 && reply->status != 404) return Refused(what, *reply);
  }
  return {};
}

Status DockerEngine::RemoveNetworks(const Labels& labels) const {
  const auto reply = api_.Get("/networks?" + Filter(labels), timeout_);
  if (!reply) return reply.error();
  if (reply->status != 200) return Refused("networks", *reply);
  const auto document = ParseJson(*reply);
  if (!document) return document.error();
  std::vector<std::string> paths;
  if (document->IsArray()) {
    for (const Json& network : document->GetArray()) paths.push_back("/networks/" + UrlEscape(TextAt(network, "Name")));
  }
  return RemoveAll(paths, "remove network");
}

Status DockerEngine::RemoveVolumes(const Labels& labels) const {
  const auto reply = api_.Get("/volumes?" + Filter(labels), timeout_);
  if (!reply) return reply.error();
  if (reply->status != 200) return Refused("volumes", *reply);
  const auto document = ParseJson(*reply);
  if (!document) return document.error();
  std::vector<std::string> paths;
  const Json& volumes = At(*document, "Volumes");
  if (volumes.IsArray()) {
    for (const Json& volume : volumes.GetArray()) paths.push_back("/volumes/" + UrlEscape(TextAt(volume, "Name")));
  }
  return RemoveAll(paths, "remove volume");
}

}  // namespace muster::runtime
