// `muster events` and `muster logs`: what happened to workloads and nodes, and what workloads wrote.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/cluster.h"
#include "cli/cluster_documents.h"
#include "cli/cluster_logs.h"
#include "cli/cluster_names.h"
#include "cli/cluster_tables.h"
#include "cli/cluster_watch.h"
#include "cli/printable_lines.h"
#include "model/text_scalars.h"

namespace muster::cli {
namespace {

struct EventFlags {
  ClusterFlags cluster;
  std::vector<std::string> words;
  std::string output = "table";
  int64_t limit = 50;
  bool watch = false;
};

// What is asked about: a workload, a node, or everything.
Result<contract::ListEvents> QuestionOf(const EventFlags& flags) {
  if (flags.limit < 0 || flags.limit > INT32_MAX) return InvalidArgument("--limit must not be below 0; 0 shows all");
  contract::ListEvents question{.limit = static_cast<int32_t>(flags.limit)};
  if (flags.words.empty()) return question;
  // A name alone is that of a workload.
  const bool bare = flags.words.size() == 1 && !flags.words[0].contains('/');
  const std::vector<std::string> words = bare ? std::vector<std::string>{"workload/" + flags.words[0]} : flags.words;
  MUSTER_ASSIGN_OR_RETURN(const std::vector<ClusterTarget> targets, ParseNamedTargets(words));
  if (targets.size() != 1) return InvalidArgument("events are shown of one workload or node at a time");
  if (targets[0].kind == ClusterKind::kWorkload) {
    question.workload = targets[0].name;
  } else if (targets[0].kind == ClusterKind::kNode) {
    question.node = targets[0].name;
  } else {
    return InvalidArgument("events are of workloads and nodes: write workload/NAME or node/NAME");
  }
  return question;
}

class EventPrinter {
 public:
  EventPrinter(const ClusterSession& session, const std::string& output)
      : session_(session), output_(output), documents_(output == "yaml") {}

  template <class Event>
  void PrintAll(const std::vector<Event>& events) {
    if (output_ == "json" || output_ == "yaml") {
      for (const Event& event : events) Print(documents_.Add(DocumentFor(event)));
      std::fflush(stdout);
      return;
    }
    const bool wide = output_ == "wide";
    Rows rows;
    if (!std::exchange(headed_, true)) rows.push_back(HeadOf(ClusterKind::kEvent, wide));
    for (const Event& event : events) rows.push_back(RowOf(event, {.now = session_.now().wall, .wide = wide}));
    Print(table_.AddAll(rows));
    std::fflush(stdout);
  }

 private:
  static Document DocumentFor(const contract::EventView& event) { return EventDocument(event); }
  static Document DocumentFor(const contract::Decision& decision) { return DecisionDocument(decision); }

  const ClusterSession& session_;
  const std::string& output_;
  DocumentStream documents_;
  TableStream table_;
  bool headed_ = false;
};

Result<int> Events(const ClusterAccess& access, const EventFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const contract::ListEvents question, QuestionOf(flags));
  MUSTER_ASSIGN_OR_RETURN(ClusterSession session, ClusterSession::Open(access, flags.cluster));
  MUSTER_ASSIGN_OR_RETURN(contract::EventsListed listed, session.Ask<contract::EventsListed>(question));
  ChangeQueue decisions(session.client());
  if (flags.watch) {
    // The first question found a scheduler that answers. Decisions have no revision: what happens between the list and
    // the watch is in a list that is made after it.
    decisions.Watch({.decisions = true});
    MUSTER_ASSIGN_OR_RETURN(listed, session.Ask<contract::EventsListed>(question));
  }
  EventPrinter printer(session, flags.output);
  std::ranges::reverse(listed.events);  // the latest last, where the eye is
  if (listed.events.empty() && !flags.watch) fmt::print(stderr, "no events\n");
  if (!listed.events.empty() || flags.watch) printer.PrintAll(listed.events);
  while (flags.watch) {
    const Result<contract::ClusterChange> change = decisions.Next();
    if (!change && change.error().code() == Code::kUnavailable) {
      PrintError(session.Explained(change.error()));
      session.Pause(1s);
      decisions.Watch({.decisions = true});
      continue;
    }
    if (!change) return std::unexpected(session.Explained(change.error()));
    const auto* decision = std::get_if<contract::Decision>(&*change);
    const bool asked = decision != nullptr && (question.workload.empty() || decision->workload == question.workload) &&
                       (question.node.empty() || decision->node == question.node);
    if (asked) printer.PrintAll(std::vector{*decision});
  }
  return kOk;
}

struct LogFlags {
  ClusterFlags cluster;
  std::vector<std::string> words;
  bool follow = false;
  int64_t tail = -1;
  std::string since;
  bool raw = false;
};

// Writes one of the two outputs of a workload. To a terminal its control characters are shown, not sent: a workload is
// not to steer the screen of who reads its log. A file or a pipe gets the bytes as they are.
class LogWriter {
 public:
  LogWriter(std::FILE* out, bool shows) : out_(out), shows_(shows) {}

  void Write(std::string_view bytes) {
    if (!shows_) return Put(bytes);
    held_ += bytes;
    const size_t whole = held_.size() - UnfinishedAtEnd(held_);
    Put(PrintableLines(std::string_view(held_).substr(0, whole)));
    held_.erase(0, whole);
  }
  // There is no more: a character that was begun is shown as the bytes it has.
  void Finish() { Put(PrintableLines(std::exchange(held_, {}))); }

 private:
  // How many bytes at the end begin a character of UTF-8 that the next part may complete.
  static size_t UnfinishedAtEnd(std::string_view text) {
    for (size_t back = 1; back <= std::min<size_t>(3, text.size()); ++back) {
      const auto byte = static_cast<unsigned char>(text[text.size() - back]);
      if ((byte & 0xc0) == 0x80) continue;  // not its first
      const size_t length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
      return length > back ? back : 0;
    }
    return 0;
  }
  void Put(std::string_view bytes) {
    std::fwrite(bytes.data(), 1, bytes.size(), out_);
    std::fflush(out_);
  }

  std::FILE* const out_;
  const bool shows_;
  std::string held_;  // the beginning of a character
};

Result<int> Logs(const ClusterAccess& access, const LogFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> names, ParseNames(flags.words, ClusterKind::kWorkload));
  if (names.size() != 1) return InvalidArgument("logs are read of one workload at a time");
  contract::ReadLogs question{.workload = names[0], .follow = flags.follow};
  if (flags.tail >= 0) question.tail = static_cast<int32_t>(std::min<int64_t>(flags.tail, INT32_MAX));
  MUSTER_ASSIGN_OR_RETURN(ClusterSession session, ClusterSession::Open(access, flags.cluster));
  if (!flags.since.empty()) {
    const auto since = model::ParseDuration(flags.since);
    if (!since) return InvalidArgument(fmt::format("--since: {}", since.error().message()));
    question.since = session.now().wall - *since;
  }
  LogWriter out(stdout, !flags.raw && access.is_terminal(STDOUT_FILENO));
  LogWriter err(stderr, !flags.raw && access.is_terminal(STDERR_FILENO));
  const Status ended = ReadLogs(session.client(), question, std::nullopt, [&](const contract::LogChunk& chunk) {
    (chunk.stream == contract::LogStream::kStderr ? err : out).Write(chunk.data);
  });
  out.Finish();
  err.Finish();
  if (!ended.ok()) return std::unexpected(NamedNotFound(session.Explained(ended), "workload", names[0]));
  return kOk;
}

}  // namespace

void AddEvents(CommandLine& app, const ClusterAccess& access) {
  const auto flags = std::make_shared<EventFlags>();
  Verb verb = app.AddVerb("events", "Show what happened to workloads and nodes, the latest last");
  verb.Arguments("TYPE/NAME", flags->words,
                 "Only of this workload or node: workload/NAME, node/NAME, or a workload's name")
      .NamesOf("targets")
      .Option("--limit", flags->limit, "The latest so many; 0 shows all that is kept")
      .Flag("-w,--watch,--follow", flags->watch, "Go on with the scheduler's decisions as it makes them")
      .Choice("-o,--output", flags->output, {"table", "wide", "json", "yaml"}, "Form; json is one line for each event");
  AddSchedulerFlags(verb, flags->cluster);
  verb.Example("muster events workload/web-0").Example("muster events --follow").Run([access, flags] {
    return Events(access, *flags);
  });
}

void AddLogs(CommandLine& app, const ClusterAccess& access) {
  const auto flags = std::make_shared<LogFlags>();
  Verb verb = app.AddVerb("logs", "Print what a workload wrote to its standard output and error");
  verb.Arguments("NAME", flags->words, "The workload")
      .NamesOf("workload")
      .Flag("-f,--follow", flags->follow, "Go on with what it writes")
      .Option("--tail", flags->tail, "The last so many lines; -1 shows all that is kept")
      .Option("--since", flags->since, "Nothing older than this, such as 10m")
      .Flag("--raw", flags->raw, "Send control characters to a terminal too, not shown as \\x1b");
  AddSchedulerFlags(verb, flags->cluster);
  verb.Example("muster logs web-0 --tail 20").Example("muster logs -f web-0").Run([access, flags] {
    return Logs(access, *flags);
  });
}

}  // namespace muster::cli
