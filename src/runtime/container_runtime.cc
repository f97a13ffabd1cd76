#include "runtime/container_runtime.h"

#include <fmt/format.h>
#include <rapidjson/document.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/log.h"
#include "model/text_scalars.h"

namespace muster::runtime {
namespace {

using contract::Run;

constexpr size_t kWorkers = 4;
constexpr size_t kLastBytes = 2048;
constexpr int32_t kKilled = 128 + 9;
constexpr std::string_view kLastLines = "20";

using Json = rapidjson::Value;

// A member of an object, or null.
const Json& At(const Json& value, const char* key) {
  static const Json null;
  if (!value.IsObject()) return null;
  const auto member = value.FindMember(key);
  return member == value.MemberEnd() ? null : member->value;
}
std::string TextAt(const Json& value, const char* key) {
  const Json& text = At(value, key);
  return text.IsString() ? std::string(text.GetString(), text.GetStringLength()) : std::string();
}
int64_t NumberAt(const Json& value, const char* key) {
  const Json& number = At(value, key);
  return number.IsInt64() ? number.GetInt64() : number.IsUint64() ? INT64_MAX : 0;
}

Result<rapidjson::Document> Parse(const DockerReply& reply) {
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(reply.body.data(), reply.body.size());
  if (document.HasParseError())
    return Error(Code::kUnavailable, "the container engine answered with text that is no JSON");
  return document;
}

WallTime TimeAt(const Json& value, const char* key) {
  const auto time = model::ParseWallTime(TextAt(value, key));
  return time && time->time_since_epoch().count() > 0 ? *time : WallTime{};
}

// What GET /containers/NAME/json says.
// `stopped`: it was asked to end.
Run RunOf(const Json& container, bool stopped) {
  const Json& state = At(container, "State");
  const Json& labels = At(At(container, "Config"), "Labels");
  Run run{.workload = TextAt(labels, "muster.workload"),
          .launch = static_cast<uint64_t>(std::strtoull(TextAt(labels, "muster.launch").c_str(), nullptr, 10)),
          .revision = TextAt(labels, "muster.revision"),
          .running = At(state, "Running").IsTrue(),
          .started_at = TimeAt(state, "StartedAt"),
          .metadata = {{"container.id", TextAt(container, "Id").substr(0, 12)},
                       {"container.image", TextAt(At(container, "Config"), "Image")}}};
  if (run.running) return run;
  run.ended_at = TimeAt(state, "FinishedAt");
  run.exit_code = static_cast<int32_t>(NumberAt(state, "ExitCode"));
  // Engines on the first version of control groups do not say what killed it: a kill that nobody asked for, of a
  // container with a limit, is taken for that.
  const bool limited = NumberAt(At(container, "HostConfig"), "Memory") > 0;
  run.oom_killed = At(state, "OOMKilled").IsTrue() || (limited && run.exit_code == kKilled && !stopped);
  run.message =
      run.oom_killed ? "killed: it used more memory than its limit" : fmt::format("exit code {}", *run.exit_code);
  if (const std::string error = TextAt(state, "Error"); !error.empty()) run.message += ": " + error;
  return run;
}

// The launch could not begin.
Run NeverRan(const contract::StartRun& start, WallTime now, std::string why) {
  return {.workload = start.workload,
          .launch = start.launch,
          .revision = start.revision,
          .started_at = now,
          .ended_at = now,
          .message = std::move(why)};
}

Status Refused(const std::string& what, const DockerReply& reply) {
  // The engine understood and will say the same again, or is in trouble itself.
  const Code code = reply.status >= 500 ? Code::kUnavailable : Code::kInvalidArgument;
  return {code, fmt::format("{}: {}", what, DockerMessage(reply))};
}

}  // namespace

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

Result<std::unique_ptr<ContainerRuntime>> ContainerRuntime::Open(ContainerOptions options, const Clock& clock,
                                                                 Ended ended) {
  const DockerApi api(options.socket);
  auto answer = api.Get("/_ping", options.timeout);
  if (!answer) return std::unexpected(answer.error());
  if (answer->status != 200) return std::unexpected(Refused("the container engine is not ready", *answer));
  return std::unique_ptr<ContainerRuntime>(new ContainerRuntime(std::move(options), clock, std::move(ended)));
}

ContainerRuntime::ContainerRuntime(ContainerOptions options, const Clock& clock, Ended ended)
    : options_(std::move(options)),
      clock_(clock),
      ended_(std::move(ended)),
      api_(options_.socket),
      watcher_([this] { Watch(); }),
      workers_(kWorkers) {}

ContainerRuntime::~ContainerRuntime() { Close(); }

void ContainerRuntime::Close() {
  closing_ = true;
  wakes_.notify_all();
  workers_.Stop();
  if (watcher_.joinable()) watcher_.join();
}

std::string ContainerRuntime::NameOf(const std::string& workload) const {
  return fmt::format("muster-{}-{}", options_.name, workload);
}

void ContainerRuntime::Ask(contract::RuntimeRequest request, Done done) {
  const auto task = [this, request = std::move(request), done] { done(Carry(request)); };
  if (!workers_.Post(task)) done(Error(Code::kUnavailable, "the container runtime is closing"));
}

ContainerRuntime::Reply ContainerRuntime::Carry(const contract::RuntimeRequest& request) {
  if (const auto* start = std::get_if<contract::StartRun>(&request)) return Start(*start);
  if (const auto* stop = std::get_if<contract::StopRun>(&request)) return Stop(*stop);
  if (const auto* remove = std::get_if<contract::RemoveRun>(&request)) return Remove(*remove);
  return List();
}

Result<std::optional<Run>> ContainerRuntime::Inspect(const std::string& container) {
  MUSTER_ASSIGN_OR_RETURN(const DockerReply reply,
                          api_.Get(fmt::format("/containers/{}/json", UrlEscape(container)), options_.timeout));
  if (reply.status == 404) return std::nullopt;
  if (reply.status != 200) return std::unexpected(Refused("inspect", reply));
  MUSTER_ASSIGN_OR_RETURN(const rapidjson::Document document, Parse(reply));
  Run run = RunOf(document, WasStopped(TextAt(At(At(document, "Config"), "Labels"), "muster.workload")));
  const bool bad = !run.running && (run.oom_killed || run.exit_code != 0);
  if (bad) run.output = LastLines(container);
  return run;
}

std::string ContainerRuntime::LastLines(const std::string& container) const {
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

Status ContainerRuntime::Pull(const std::string& image) {
  auto reply = api_.Post("/images/create?fromImage=" + UrlEscape(image), "", options_.pull_timeout);
  if (!reply) return reply.error();
  // The answer is a list of steps, and an error may be the last of them.
  if (reply->status == 200 && !reply->body.contains("\"error\"")) return {};
  return {Code::kNotFound,
          fmt::format("image {} cannot be pulled: {}", image,
                      reply->status == 200 ? reply->body.substr(reply->body.rfind('{'), 300) : DockerMessage(*reply))};
}

Result<std::optional<Run>> ContainerRuntime::Create(const contract::StartRun& start) {
  MUSTER_ASSIGN_OR_RETURN(const std::string body, CreateBody(start, options_.name));
  const std::string path = "/containers/create?name=" + UrlEscape(NameOf(start.workload));
  MUSTER_ASSIGN_OR_RETURN(DockerReply reply, api_.Post(path, body, options_.timeout));
  if (reply.status == 404) {
    if (const Status pulled = Pull(start.spec.image); !pulled.ok()) {
      if (pulled.code() == Code::kUnavailable || pulled.code() == Code::kDeadlineExceeded)
        return std::unexpected(pulled);
      return NeverRan(start, clock_.Read().wall, pulled.message());
    }
    MUSTER_ASSIGN_OR_RETURN(reply, api_.Post(path, body, options_.timeout));
  }
  if (reply.status == 201) return std::nullopt;
  if (reply.status >= 500) return std::unexpected(Refused("create", reply));
  return NeverRan(start, clock_.Read().wall, DockerMessage(reply));
}

ContainerRuntime::Reply ContainerRuntime::Start(const contract::StartRun& start) {
  const std::string name = NameOf(start.workload);
  MUSTER_ASSIGN_OR_RETURN(std::optional<Run> known, Inspect(name));
  const bool same = known && known->launch == start.launch;
  // A container that was made and never started has no time of its start.
  const bool begun = same && (known->running || known->started_at != WallTime{});
  if (begun) {
    Follow(*known);
    return contract::RuntimeReply{.runs = {*std::move(known)}};
  }
  if (known && !same) {
    MUSTER_ASSIGN_OR_RETURN(const contract::RuntimeReply gone, Remove({.workload = start.workload}));
    static_cast<void>(gone);
  }
  if (!same) {
    MUSTER_ASSIGN_OR_RETURN(std::optional<Run> failed, Create(start));
    if (failed) return contract::RuntimeReply{.runs = {*std::move(failed)}};
  }
  MUSTER_ASSIGN_OR_RETURN(const DockerReply started,
                          api_.Post(fmt::format("/containers/{}/start", UrlEscape(name)), "", options_.timeout));
  if (started.status != 204 && started.status != 304) {
    // The container stays made and not started: it must go, or the next look takes it for a launch that is coming.
    MUSTER_ASSIGN_OR_RETURN(const contract::RuntimeReply gone, Remove({.workload = start.workload}));
    static_cast<void>(gone);
    return contract::RuntimeReply{.runs = {NeverRan(start, clock_.Read().wall, DockerMessage(started))}};
  }
  MUSTER_ASSIGN_OR_RETURN(std::optional<Run> run, Inspect(name));
  if (!run) return Error(Code::kUnavailable, "the container went away as it was started");
  Follow(*run);
  return contract::RuntimeReply{.runs = {*std::move(run)}};
}

bool ContainerRuntime::WasStopped(const std::string& workload) {
  const std::lock_guard lock(mu_);
  return stopped_.contains(workload);
}

ContainerRuntime::Reply ContainerRuntime::Stop(const contract::StopRun& stop) {
  {
    const std::lock_guard lock(mu_);
    stopped_.insert(stop.workload);
  }
  const std::string name = NameOf(stop.workload);
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(stop.grace).count();
  MUSTER_ASSIGN_OR_RETURN(
      const DockerReply reply,
      api_.Post(fmt::format("/containers/{}/stop?t={}", UrlEscape(name), seconds), "", options_.timeout + stop.grace));
  if (reply.status == 404) return contract::RuntimeReply{};
  if (reply.status != 204 && reply.status != 304) return std::unexpected(Refused("stop", reply));
  MUSTER_ASSIGN_OR_RETURN(std::optional<Run> run, Inspect(name));
  contract::RuntimeReply done;
  if (run) done.runs.push_back(*std::move(run));
  return done;
}

ContainerRuntime::Reply ContainerRuntime::Remove(const contract::RemoveRun& remove) {
  {
    const std::lock_guard lock(mu_);
    running_.erase(remove.workload);
    stopped_.erase(remove.workload);
    cpu_.erase(remove.workload);
  }
  MUSTER_ASSIGN_OR_RETURN(
      const DockerReply reply,
      api_.Delete(fmt::format("/containers/{}?force=1&v=1", UrlEscape(NameOf(remove.workload))), options_.timeout));
  if (reply.status != 204 && reply.status != 200 && reply.status != 404)
    return std::unexpected(Refused("remove", reply));
  return contract::RuntimeReply{};
}

ContainerRuntime::Reply ContainerRuntime::List() {
  const std::string filter = UrlEscape(fmt::format(R"({{"label":["muster.agent={}"]}})", options_.name));
  MUSTER_ASSIGN_OR_RETURN(const DockerReply reply,
                          api_.Get("/containers/json?all=1&filters=" + filter, options_.timeout));
  if (reply.status != 200) return std::unexpected(Refused("list", reply));
  MUSTER_ASSIGN_OR_RETURN(const rapidjson::Document document, Parse(reply));
  contract::RuntimeReply found;
  if (!document.IsArray()) return found;
  for (const Json& container : document.GetArray()) {
    MUSTER_ASSIGN_OR_RETURN(std::optional<Run> run, Inspect(TextAt(container, "Id")));
    if (!run || run->workload.empty()) continue;
    Follow(*run);
    found.runs.push_back(*std::move(run));
  }
  std::ranges::sort(found.runs, {}, &Run::workload);
  return found;
}

// --- ends

void ContainerRuntime::Follow(const Run& run) {
  if (!run.running) return;
  const std::lock_guard lock(mu_);
  running_[run.workload] = run.launch;
}

void ContainerRuntime::Watch() {
  std::unique_lock lock(mu_);
  while (!closing_) {
    wakes_.wait_for(lock, options_.poll, [this] { return closing_.load(); });
    if (closing_ || running_.empty()) continue;
    lock.unlock();
    LookForEnds();
    lock.lock();
  }
}

void ContainerRuntime::LookForEnds() {
  std::map<std::string, uint64_t> running;
  {
    const std::lock_guard lock(mu_);
    running = running_;
  }
  for (const auto& [workload, launch] : running) {
    if (closing_) return;
    auto run = Inspect(NameOf(workload));
    if (!run) return;  // the engine is away: the next look tells
    if (*run && (*run)->running && (*run)->launch == launch) continue;
    {
      // Whoever takes the row out tells of the end.
      const std::lock_guard lock(mu_);
      const auto at = running_.find(workload);
      if (at == running_.end() || at->second != launch) continue;
      running_.erase(at);
    }
    if (*run && (*run)->launch == launch) {
      ended_(**std::move(run));
    } else if (!*run) {
      ended_({.workload = workload,
              .launch = launch,
              .ended_at = clock_.Read().wall,
              .message = "its container was removed"});
    }
  }
}

// --- logs and usage

void ContainerRuntime::ReadLogs(const contract::ReadLogs& request, contract::LogsSink& sink) {
  std::string path = fmt::format("/containers/{}/logs?stdout=1&stderr=1&timestamps=1&follow={}",
                                 UrlEscape(NameOf(request.workload)), request.follow ? 1 : 0);
  if (request.tail) path += fmt::format("&tail={}", *request.tail);
  if (request.since) {
    path += fmt::format("&since={}",
                        std::chrono::duration_cast<std::chrono::seconds>(request.since->time_since_epoch()).count());
  }
  LogFrames frames;
  const Status status = api_.Stream(
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
          return sink.Write(std::move(chunk));
        });
      },
      [&] { return closing_.load() || sink.Gone(); });
  sink.End(status);
}

std::vector<Usage> ContainerRuntime::Measure() {
  std::map<std::string, uint64_t> running;
  {
    const std::lock_guard lock(mu_);
    running = running_;
  }
  std::vector<Usage> all;
  for (const auto& [workload, launch] : running) {
    auto reply = api_.Get(fmt::format("/containers/{}/stats?stream=0&one-shot=1", UrlEscape(NameOf(workload))),
                          options_.timeout);
    if (!reply || reply->status != 200) continue;
    const auto document = Parse(*reply);
    if (!document) continue;
    const Now now = clock_.Read();
    contract::WorkloadUsage usage{
        .memory_bytes = NumberAt(At(*document, "memory_stats"), "usage"), .collected_at = now.wall, .source = "docker"};
    const int64_t cpu_ns = NumberAt(At(At(*document, "cpu_stats"), "cpu_usage"), "total_usage");
    {
      const std::lock_guard lock(mu_);
      auto& [before, at] = cpu_[workload];
      const auto elapsed = (now.mono - at).count();
      if (at != MonoTime{} && elapsed > 0 && cpu_ns >= before) {
        usage.cpu_milli =
            static_cast<int64_t>(static_cast<double>(cpu_ns - before) * 1000 / static_cast<double>(elapsed));
      }
      before = cpu_ns;
      at = now.mono;
    }
    const Json& networks = At(*document, "networks");
    if (networks.IsObject()) {
      for (const auto& network : networks.GetObject()) {
        usage.net_rx_bytes += NumberAt(network.value, "rx_bytes");
        usage.net_tx_bytes += NumberAt(network.value, "tx_bytes");
      }
    }
    all.emplace_back(workload, std::move(usage));
  }
  return all;
}

}  // namespace muster::runtime
