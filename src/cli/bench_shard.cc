// `muster bench shard`: a whole shard in a process of its own, over real gRPC: every machine of the uber-50k shape
// behind a provider, every cluster with a session that sends its roll-up each second.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "bench/rollups.h"
#include "bench/shape_provider.h"
#include "cli/bench.h"
#include "contract/session.h"
#include "engine/shapes/shapes.h"
#include "host/json_object.h"
#include "host/log_backend.h"
#include "host/system_clock.h"
#include "role/shard/shard_role.h"
#include "rpc/provider_service.h"
#include "rpc/server.h"
#include "rpc/session_client.h"

namespace muster::cli {
namespace {

struct Flags {
  double scale = 1;
  double seconds = 300;
  double warm_up = 30;
  uint64_t workers = 1;
  std::string data_dir;
  bool json = false;
};

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

// --- the shard's process. It hears three lines: where the provider is, "measure", "stop"; and says where it listens,
// how long its first sight of the machines took, and at the end what it measured.

struct Line {
  std::FILE* file;
  std::string Read() const {
    char text[256] = {};
    if (std::fgets(text, sizeof text, file) == nullptr) return {};
    std::string line = text;
    while (!line.empty() && line.back() == '\n') line.pop_back();
    return line;
  }
};

double ProcessorSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double ResidentMegabytes() {
  std::ifstream file("/proc/self/statm");
  double pages = 0;
  file >> pages >> pages;
  return pages * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

size_t OpenFiles() {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) count += entry.is_symlink() ? 1 : 0;
  return count;
}

int RunShard(const Flags& flags, std::FILE* in, std::FILE* out) {
  const Line lines{in};
  const std::string provider = lines.Read();
  host::InstallLogBackend(log::Level::kError);
  std::mutex mu;
  std::vector<double> samples;
  shard::RoleOptions options{.server = {.listen = {"127.0.0.1", 0},
                                        .metrics_addr = {"127.0.0.1", 0},
                                        .data_dir = std::filesystem::path(flags.data_dir) / "shard"},
                             .provider_addr = provider,
                             .workers = flags.workers};
  options.audit.path = std::filesystem::path(flags.data_dir) / "audit.log";
  options.cycle_ended = [&](Duration took) {
    const std::lock_guard lock(mu);
    samples.push_back(Seconds(took) * 1e3);
  };
  const host::SystemClock clock;
  const MonoTime began = clock.Read().mono;
  shard::ShardRole role(std::move(options));
  if (const Status status = role.Start({}); !status.ok()) {
    fmt::print(out, "{}\n", status.message());
    std::fflush(out);
    return 1;
  }
  while (!role.View()->ready) std::this_thread::sleep_for(1ms);
  fmt::print(out, "ok\n{}\n{}\n", role.listen_address().ToString(), Seconds(clock.Read().mono - began));
  std::fflush(out);
  if (lines.Read() != "measure") return 1;
  {
    const std::lock_guard lock(mu);
    samples.clear();
  }
  const double processor = ProcessorSeconds();
  const double resident = ResidentMegabytes();
  const size_t files = OpenFiles();
  lines.Read();
  const std::lock_guard lock(mu);
  const auto view = role.View();
  fmt::print(out, "{} {} {} {} {} {} {}\n", ProcessorSeconds() - processor, resident, ResidentMegabytes(), files,
             OpenFiles(), view->shortfalls, samples.size());
  for (const double sample : samples) fmt::print(out, "{}\n", sample);
  std::fflush(out);
  return 0;
}

// --- this process: the provider and the clusters

class Cluster final : rpc::SessionHandler {
 public:
  static Result<std::unique_ptr<Cluster>> Connect(const std::string& target, const std::string& id) {
    auto cluster = std::unique_ptr<Cluster>(new Cluster);
    MUSTER_ASSIGN_OR_RETURN(
        cluster->client_,
        rpc::OpenSession(target, {.cluster_id = id, .protocol_version = std::string(contract::kProtocolVersion)},
                         *cluster));
    cluster->ready_ = true;
    return cluster;
  }
  void Send(contract::OperatorMessage message) { client_->Send(std::move(message)); }
  static std::atomic<uint64_t> acknowledged;
  static std::atomic<uint64_t> ended;

 private:
  void Received(contract::ShardMessage message) override {
    if (!ready_) return;
    if (const auto* request = std::get_if<contract::BootstrapRequest>(&message)) {
      client_->Send(contract::BootstrapResponse{.request_id = request->request_id, .user_data = "join"});
    } else if (const auto* instruction = std::get_if<contract::ReclaimInstruction>(&message)) {
      client_->Send(contract::ReclaimAck{.instruction_id = instruction->instruction_id, .nodes_started = 1});
    } else if (const auto* ack = std::get_if<contract::Acknowledgement>(&message)) {
      acknowledged += ack->echo == "rollup" ? 1 : 0;
    }
  }
  void Unreadable(Status) override { ++ended; }
  void Ended(Status status) override { ended += status.ok() ? 0 : 1; }

  std::atomic<bool> ready_ = false;
  std::unique_ptr<rpc::SessionClient> client_;
};
std::atomic<uint64_t> Cluster::acknowledged = 0;
std::atomic<uint64_t> Cluster::ended = 0;

struct Measured {
  double first_list = 0;
  double processor = 0;
  double resident_before = 0;
  double resident_after = 0;
  size_t files_before = 0;
  size_t files_after = 0;
  size_t shortfalls = 0;
  std::vector<double> cycles;  // ms
  size_t machines = 0;
  size_t clusters = 0;
  size_t needs = 0;
  uint64_t rollups = 0;
  uint64_t transitions = 0;
  double seconds = 0;

  double At(double share) const {
    if (cycles.empty()) return 0;
    return cycles[static_cast<size_t>(std::llround(share * static_cast<double>(cycles.size() - 1)))];
  }
};

// A roll-up of every cluster each second, until `seconds` have passed.
void Drive(std::vector<std::unique_ptr<Cluster>>& clusters, bench::Rollups& rollups, Rng& rng, double seconds,
           const Clock& clock) {
  const MonoTime began = clock.Read().mono;
  for (int second = 0; second < seconds; ++second) {
    rollups.Breathe(rng);
    const WallTime wall = clock.Read().wall;
    for (size_t i = 0; i < clusters.size(); ++i) {
      // Spread over the second, as clusters that know nothing of each other are.
      const Duration at = std::chrono::seconds(second) + 1s * i / clusters.size();
      if (const Duration left = began + at - clock.Read().mono; left > 1ms) std::this_thread::sleep_for(left);
      const bench::Rollup& rollup = rollups.all()[i];
      clusters[i]->Send(
          contract::Rollup{.cluster_id = rollup.cluster, .timestamp = wall, .rows = contract::NeedRows(rollup.rows)});
    }
  }
}

Result<Measured> Measure(const Flags& flags, std::FILE* to_shard, std::FILE* from_shard) {
  host::InstallLogBackend(log::Level::kError);
  const host::SystemClock clock;
  engine::World world = engine::Uber50k({.times = static_cast<int64_t>(flags.scale * 1000), .parts = 1000});
  Measured measured{.machines = world.machines.size(), .needs = world.needs.size()};
  bench::Rollups rollups(world);
  measured.clusters = rollups.all().size();
  bench::ShapeProvider provider(std::move(world.machines), clock);
  const auto service = rpc::MakeProviderService(provider);
  rpc::Server server({.address = {"127.0.0.1", 0},
                      .max_message_bytes = rpc::kLargeMessageBytes,
                      .max_request_bytes = rpc::kSessionMessageBytes});
  const std::array<grpc::Service*, 1> services = {service.get()};
  if (Status status = server.Start(services); !status.ok()) return std::unexpected(std::move(status));
  fmt::print(to_shard, "{}\n", server.address().ToString());
  std::fflush(to_shard);
  const Line lines{from_shard};
  if (const std::string first = lines.Read(); first != "ok") {
    return Error(Code::kUnavailable, fmt::format("the shard does not start: {}", first));
  }
  const std::string target = lines.Read();
  measured.first_list = std::stod(lines.Read());

  std::vector<std::unique_ptr<Cluster>> clusters;
  for (const bench::Rollup& rollup : rollups.all()) {
    MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<Cluster> cluster, Cluster::Connect(target, rollup.cluster));
    clusters.push_back(std::move(cluster));
  }
  Rng rng(1);
  Drive(clusters, rollups, rng, flags.warm_up, clock);
  const uint64_t acknowledged = Cluster::acknowledged;
  const uint64_t transitions = provider.transitions();
  fmt::print(to_shard, "measure\n");
  std::fflush(to_shard);
  const MonoTime began = clock.Read().mono;
  Drive(clusters, rollups, rng, flags.seconds, clock);
  measured.seconds = Seconds(clock.Read().mono - began);
  measured.rollups = Cluster::acknowledged - acknowledged;
  measured.transitions = provider.transitions() - transitions;
  if (Cluster::ended > 0) return Error(Code::kUnavailable, fmt::format("{} sessions ended", Cluster::ended.load()));
  fmt::print(to_shard, "stop\n");
  std::fflush(to_shard);
  size_t count = 0;
  const std::string numbers = lines.Read();
  std::sscanf(numbers.c_str(), "%lf %lf %lf %zu %zu %zu %zu", &measured.processor, &measured.resident_before,
              &measured.resident_after, &measured.files_before, &measured.files_after, &measured.shortfalls, &count);
  while (measured.cycles.size() < count) measured.cycles.push_back(std::stod(lines.Read()));
  std::ranges::sort(measured.cycles);
  return measured;
}

void Report(const Flags& flags, const Measured& m) {
  const std::vector<std::pair<std::string, double>> numbers = {
      {"machines", static_cast<double>(m.machines)},
      {"sessions", static_cast<double>(m.clusters)},
      {"needs", static_cast<double>(m.needs)},
      {"seconds", m.seconds},
      {"cycles", static_cast<double>(m.cycles.size())},
      {"cycle_p50_ms", m.At(0.5)},
      {"cycle_p90_ms", m.At(0.9)},
      {"cycle_p99_ms", m.At(0.99)},
      {"cycle_max_ms", m.At(1)},
      {"first_list_s", m.first_list},
      {"rollups_a_second", static_cast<double>(m.rollups) / m.seconds},
      {"transitions_a_second", static_cast<double>(m.transitions) / m.seconds},
      {"cpu_cores", m.processor / m.seconds},
      {"rss_before_mb", m.resident_before},
      {"rss_after_mb", m.resident_after},
      {"fds_before", static_cast<double>(m.files_before)},
      {"fds_after", static_cast<double>(m.files_after)},
      {"shortfalls", static_cast<double>(m.shortfalls)}};
  if (flags.json) {
    host::JsonObject json;
    json.Add("shape", "uber-50k").Add("kind", "end-to-end").Add("workers", flags.workers);
    for (const auto& [name, value] : numbers) json.Add(name, value);
    return Print(json.Take() + "\n");
  }
  for (const auto& [name, value] : numbers) Print(fmt::format("{:<22} {:>12.3f}\n", name, value));
}

Result<int> BenchShard(const Flags& flags) {
  if (flags.data_dir.empty()) return InvalidArgument("--data-dir is missing; name an empty directory");
  if (!(flags.scale >= 0.001 && flags.scale <= 10)) return InvalidArgument("--scale must be from 0.001 to 10");
  if (flags.workers < 1 || flags.workers > 256) return InvalidArgument("--workers must be from 1 to 256");
  std::error_code error;
  std::filesystem::create_directories(flags.data_dir, error);
  if (error) return InvalidArgument(fmt::format("--data-dir: {}", error.message()));
  int to_shard[2];
  int from_shard[2];
  if (pipe2(to_shard, O_CLOEXEC) != 0 || pipe2(from_shard, O_CLOEXEC) != 0) {
    return Error(Code::kUnavailable, "cannot make a pipe");
  }
  // The shard's process is a copy of this one, made before there is any thread.
  const pid_t pid = fork();
  if (pid < 0) return Error(Code::kUnavailable, "cannot start a second process");
  if (pid == 0) {
    close(to_shard[1]);
    close(from_shard[0]);
    const int code = RunShard(flags, fdopen(to_shard[0], "r"), fdopen(from_shard[1], "w"));
    std::fflush(nullptr);
    _exit(code);
  }
  close(to_shard[0]);
  close(from_shard[1]);
  const auto out = std::unique_ptr<std::FILE, int (*)(std::FILE*)>(fdopen(to_shard[1], "w"), std::fclose);
  const auto in = std::unique_ptr<std::FILE, int (*)(std::FILE*)>(fdopen(from_shard[0], "r"), std::fclose);
  auto measured = Measure(flags, out.get(), in.get());
  if (!measured) kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  if (!measured) return std::unexpected(measured.error());
  Report(flags, *measured);
  return kOk;
}

}  // namespace

void AddBenchShard(Verb& bench) {
  const auto flags = std::make_shared<Flags>();
  bench.AddVerb("shard", "A whole shard over gRPC: the uber-50k fleet, every cluster connected, roll-ups each second")
      .Option("--seconds", flags->seconds, "How long to take samples")
      .Option("--warm-up", flags->warm_up, "How long before that")
      .Option("--scale", flags->scale, "Multiplies machines and clusters")
      .Option("--workers", flags->workers, "Threads that decide")
      .Path("--data-dir", flags->data_dir, "An empty directory on the disk to measure with")
      .Flag("--json", flags->json, "One JSON object instead of a table")
      .Example("muster bench shard --data-dir /var/tmp/bench --seconds 300")
      .Run([flags] { return BenchShard(*flags); });
}

}  // namespace muster::cli
