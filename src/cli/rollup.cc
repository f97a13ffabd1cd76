// `muster rollup`: plays a cluster towards a shard, with its needs in a file.
#include <fmt/format.h>
#include <sys/stat.h>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>

#include "cli/table.h"
#include "cli/tls_flags.h"
#include "cli/verbs.h"
#include "contract/session.h"
#include "host/signals.h"
#include "host/system_clock.h"
#include "host/text_file.h"
#include "model/decode.h"
#include "model/money.h"
#include "model/text_reader.h"
#include "model/text_scalars.h"
#include "model/yaml_reader.h"
#include "rpc/session_client.h"

namespace muster::cli {
namespace {

using contract::OperatorMessage;
using contract::ShardMessage;

struct Flags {
  std::string shard = "127.0.0.1:7780";
  std::string cluster;
  std::string file;
  std::string every = "10s";
  bool follow = false;
  TlsFlags tls;
};

constexpr Duration kAckTimeout = 10s;
constexpr Duration kFilePoll = 500ms;
constexpr Duration kFirstPause = 500ms;  // before connecting again; doubles
constexpr Duration kLongestPause = 10s;

// A penalty that the file does not give is sent as unspecified, as operators of this protocol do.
model::Need NeedToSend(model::TextReader& item, const std::string& cluster) {
  model::Need need = model::ReadNeed(item, cluster);
  model::ProfileParts parts = need.profile.parts();
  if (!item.Field("interruptionPenalty").present()) parts.interruption = model::PenaltyBucket::kUnspecified;
  if (!item.Field("reclamationPenalty").present()) parts.reclamation = model::PenaltyBucket::kUnspecified;
  need.profile = model::Profile(std::move(parts));
  return need;
}

// A list of needs, or a map whose `needs` is one.
Result<std::vector<model::Need>> ReadNeeds(const std::string& path, const std::string& cluster) {
  const auto text = host::ReadTextFile(path);
  if (!text) return InvalidArgument(text.error().message());
  const std::string source = host::SourceName(path);
  MUSTER_ASSIGN_OR_RETURN(const model::TextValue document, model::ReadYamlDocument(*text, source));
  model::TextErrors errors(source);
  model::TextReader root(errors, document);
  std::vector<model::Need> needs;
  model::TextReader list = root.is_map() ? root.Field("needs").Require() : root;
  for (model::TextReader item : list.List()) needs.push_back(NeedToSend(item, cluster));
  if (root.is_map()) root.RefuseUnknown();
  if (!errors.ok()) return std::unexpected(errors.status());
  return needs;
}

void Say(std::string_view line) {
  const host::SystemClock clock;
  Print(fmt::format("{} {}\n", model::FormatWallTime(clock.Read().wall), line));
  std::fflush(stdout);
}

std::string Describe(const ShardMessage& message) {
  struct {
    std::string operator()(const contract::Acknowledgement& ack) const {
      return fmt::format("acknowledged {} (shard epoch {})", ack.echo, ack.shard_epoch);
    }
    std::string operator()(const contract::BootstrapRequest& request) const {
      return fmt::format("asked for a bootstrap blob, {}: answered", request.request_id);
    }
    std::string operator()(const contract::ReclaimInstruction& instruction) const {
      std::string nodes;
      for (const std::string& node : instruction.nodes) nodes += (nodes.empty() ? "" : ", ") + node;
      return fmt::format(
          "must give up {} within {} s{}: acknowledged", nodes, instruction.grace_period_seconds,
          instruction.preemptor_priority == 0 ? "" : fmt::format(" to priority {}", instruction.preemptor_priority));
    }
    std::string operator()(const contract::NodeStateUpdate& update) const {
      return fmt::format("machine {} is {}{}", update.machine_id, model::StateName(update.state),
                         update.last_error.empty() ? "" : fmt::format(": {}", update.last_error));
    }
    std::string operator()(const contract::AvailableCapacity& capacity) const {
      constexpr std::string_view kNames[] = {"unspecified", "none", "low", "medium", "high"};
      return fmt::format("{} machines could serve {} (confidence {}, {}/h)", capacity.available_count,
                         capacity.supersedes_key, kNames[static_cast<size_t>(capacity.confidence) % 5],
                         model::FormatMoney(capacity.cost_per_hour));
    }
  } const words;
  return std::visit(words, message);
}

// What happened on the session, for the one thread that acts.
class Inbox final : public rpc::SessionHandler {
 public:
  struct Ending {
    Status status;
  };
  using Item = std::variant<ShardMessage, Ending, Status>;  // the last: a message that could not be read

  void Received(ShardMessage message) override { Put(std::move(message)); }
  void Unreadable(Status why) override { Put(std::move(why)); }
  void Ended(Status status) override { Put(Ending{std::move(status)}); }

  // The next item; nothing when the time is over or the stop was asked for.
  std::optional<Item> Take(const std::stop_token& stop, Duration patience) {
    std::unique_lock lock(mu_);
    came_.wait_for(lock, stop, patience, [this] { return !items_.empty(); });
    if (items_.empty()) return std::nullopt;
    Item item = std::move(items_.front());
    items_.pop_front();
    return item;
  }

 private:
  void Put(Item item) {
    {
      const std::lock_guard lock(mu_);
      items_.push_back(std::move(item));
    }
    came_.notify_one();
  }

  std::mutex mu_;
  std::condition_variable_any came_;
  std::deque<Item> items_;  // guarded by mu_
};

// When the file was last written; differs when it was replaced too.
struct Version {
  int64_t inode = 0;
  int64_t nanos = 0;
  int64_t size = 0;
  bool operator==(const Version&) const = default;

  static Version Of(const std::string& path) {
    struct stat info{};
    if (path == "-" || stat(path.c_str(), &info) != 0) return {};
    return {.inode = static_cast<int64_t>(info.st_ino),
            .nanos = info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec,
            .size = info.st_size};
  }
};

class Player {
 public:
  Player(const Flags& flags, rpc::TlsFiles tls, Duration every, std::vector<model::Need> needs, Version version)
      : flags_(flags), tls_(std::move(tls)), every_(every), needs_(std::move(needs)), version_(version) {}

  // Until the stop, or without --follow until the first roll-up is acknowledged.
  Result<int> Play(const std::stop_token& stop) {
    Duration pause = kFirstPause;
    while (!stop.stop_requested()) {
      MUSTER_ASSIGN_OR_RETURN(const bool heard, OneSession(stop));
      if (done_ || stop.stop_requested()) break;
      if (heard) pause = kFirstPause;
      Say(fmt::format("connecting again in {}", model::FormatDuration(pause)));
      inbox_.Take(stop, pause);
      pause = std::min(2 * pause, kLongestPause);
    }
    return kOk;
  }

 private:
  // Whether the shard said anything; an error if nothing will ever come of it.
  Result<bool> OneSession(const std::stop_token& stop) {
    MUSTER_ASSIGN_OR_RETURN(client_, rpc::OpenSession(flags_.shard,
                                                      {.cluster_id = flags_.cluster,
                                                       .protocol_version = std::string(contract::kProtocolVersion)},
                                                      inbox_, tls_));
    SendRollup();
    bool heard = false;
    while (!stop.stop_requested() && !done_) {
      const auto item = inbox_.Take(stop, kFilePoll);
      if (!item) {
        if (Status status = OnQuiet(); !status.ok()) return std::unexpected(std::move(status));
        continue;
      }
      if (const auto* ending = std::get_if<Inbox::Ending>(&*item)) {
        client_.reset();
        if (!flags_.follow) return std::unexpected(ending->status);
        Say(fmt::format("session ended: {}", Printable(ending->status.ToString())));
        return heard;
      }
      if (const auto* unreadable = std::get_if<Status>(&*item)) {
        Say(fmt::format("a message cannot be read: {}", Printable(unreadable->message())));
        continue;
      }
      heard = true;
      Act(std::get<ShardMessage>(*item));
    }
    client_->Close();
    client_.reset();
    return heard;
  }

  void Act(const ShardMessage& message) {
    if (const auto* request = std::get_if<contract::BootstrapRequest>(&message)) {
      client_->Send(contract::BootstrapResponse{.request_id = request->request_id,
                                                .user_data = fmt::format("#!/bin/sh\n# joins {}\n", flags_.cluster)});
    } else if (const auto* instruction = std::get_if<contract::ReclaimInstruction>(&message)) {
      client_->Send(contract::ReclaimAck{.instruction_id = instruction->instruction_id,
                                         .nodes_started = static_cast<int32_t>(instruction->nodes.size())});
    } else if (const auto* ack = std::get_if<contract::Acknowledgement>(&message); ack != nullptr) {
      const bool held = ack->echo.starts_with("rollup: ");
      const bool of_rollup = ack->echo == "rollup" || held;
      if (of_rollup) unanswered_since_.reset();
      const bool repeated = ack->echo == "rollup" && acknowledged_;
      acknowledged_ = acknowledged_ || of_rollup;
      if (!flags_.follow && of_rollup) done_ = true;
      if (repeated) return;
    }
    Say(Printable(Describe(message)));
  }

  // Nothing came for a while: is the file another one now, is it time to send again, was the last one ignored?
  Status OnQuiet() {
    const MonoTime now = clock_.Read().mono;
    if (unanswered_since_ && now - *unanswered_since_ > kAckTimeout) {
      unanswered_since_.reset();
      const std::string words = fmt::format("the roll-up was not acknowledged; muster fleet clusters says why");
      if (!flags_.follow) return {Code::kFailedPrecondition, words};
      Say(words);
    }
    if (const Version version = Version::Of(flags_.file); version != version_) {
      version_ = version;
      auto needs = ReadNeeds(flags_.file, flags_.cluster);
      if (needs) {
        needs_ = *std::move(needs);
        acknowledged_ = false;
        SendRollup();
      } else {
        Say(fmt::format("the file is left alone: {}", needs.error().message()));
      }
    } else if (now - last_sent_ >= every_) {
      SendRollup();
    }
    return {};
  }

  void SendRollup() {
    const Now now = clock_.Read();
    client_->Send(
        contract::Rollup{.cluster_id = flags_.cluster, .timestamp = now.wall, .rows = contract::NeedRows(needs_)});
    last_sent_ = now.mono;
    if (!unanswered_since_) unanswered_since_ = now.mono;
    if (!acknowledged_) Say(fmt::format("sent {} needs", needs_.size()));
  }

  const Flags& flags_;
  const rpc::TlsFiles tls_;
  const Duration every_;
  const host::SystemClock clock_;
  std::vector<model::Need> needs_;
  Version version_;
  Inbox inbox_;
  std::unique_ptr<rpc::SessionClient> client_;
  MonoTime last_sent_;
  std::optional<MonoTime> unanswered_since_;
  bool acknowledged_ = false;  // the needs as they are now
  bool done_ = false;
};

Result<int> Run(const Flags& flags) {
  if (flags.cluster.empty()) return InvalidArgument("--cluster is missing; name the cluster to speak for");
  if (flags.file.empty()) return InvalidArgument("say which needs with -f FILE; - is standard input");
  const auto every = model::ParseDuration(flags.every);
  if (!every || *every <= Duration::zero()) {
    return InvalidArgument(fmt::format("--every: {}", every ? "must be greater than zero" : every.error().message()));
  }
  MUSTER_ASSIGN_OR_RETURN(rpc::TlsFiles tls, flags.tls.Files());
  const Version version = Version::Of(flags.file);
  MUSTER_ASSIGN_OR_RETURN(std::vector<model::Need> needs, ReadNeeds(flags.file, flags.cluster));
  const host::Signals signals;
  Player player(flags, std::move(tls), *every, std::move(needs), version);
  return player.Play(signals.stop_token());
}

}  // namespace

void AddRollup(CommandLine& app) {
  const auto flags = std::make_shared<Flags>();
  Verb verb = app.AddVerb("rollup", "Play a cluster: send its needs to a shard, answer it, and print what it says");
  verb.Option("--shard", flags->shard, "HOST:PORT of the shard")
      .Option("--cluster", flags->cluster, "Id of the cluster to speak for")
      .Path("-f,--file", flags->file, "YAML file with a list of needs; - is standard input")
      .Flag("--follow", flags->follow, "Stay connected, send the file again when it changes; until Ctrl-C")
      .Option("--every", flags->every, "With --follow: send the needs again so often");
  AddTlsFlags(verb, flags->tls);
  verb.Example("muster rollup --cluster blue -f needs.yaml")
      .Example("muster rollup --shard 127.0.0.1:7780 --cluster blue -f needs.yaml --follow")
      .Run([flags] { return Run(*flags); });
}

}  // namespace muster::cli
