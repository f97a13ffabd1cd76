// The verbs of a cluster: apply, delete, get, describe, events and so on. One file each; they share what is here.
//
// A verb reaches the scheduler through ClusterAccess, which a test replaces: the whole grammar runs against a fake.
// Every answer comes from the scheduler's last durable state; a scheduler that has lost its store says since when, and
// the verbs pass that on to standard error.
//
// Thread-safety: one thread.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/clock.h"
#include "base/codec.h"
#include "base/status.h"
#include "cli/ask.h"
#include "cli/command_line.h"
#include "cli/tls_flags.h"
#include "contract/cluster.h"
#include "contract/page.h"
#include "rpc/cluster_client.h"

namespace muster::cli {

// --scheduler and the TLS files of every verb that asks a scheduler.
struct ClusterFlags {
  std::string scheduler;  // HOST:PORT, or several with commas
  TlsFlags tls;
};
std::string DefaultScheduler();
// --scheduler is MUSTER_SCHEDULER if it is not given, and then 127.0.0.1:8085.
void AddSchedulerFlags(Verb& verb, ClusterFlags& flags);

// How a verb reaches a scheduler, what time it is, and how it waits before it asks again.
struct ClusterAccess {
  std::function<Result<std::unique_ptr<rpc::ClusterClient>>(const ClusterFlags&)> connect;
  std::shared_ptr<const Clock> clock;
  std::function<void(Duration)> pause;
  // The fleet's shard, for the verbs that ask both halves. Empty: there is none.
  std::function<Result<std::unique_ptr<contract::ShardPort>>(const ShardFlags&)> shard = {};
  // Whether the descriptor is a terminal, which control characters steer.
  std::function<bool(int fd)> is_terminal = [](int fd) { return isatty(fd) == 1; };
};
// A scheduler over the network, and the machine's time.
ClusterAccess RealCluster();

// A scheduler that is being asked. An error that has to do with reaching it says which address was tried.
class ClusterSession {
 public:
  static Result<ClusterSession> Open(const ClusterAccess& access, const ClusterFlags& flags);

  Result<contract::ClusterReply> AskAny(contract::ClusterRequest request);
  // The reply that belongs to the request.
  template <class Reply, class Request>
  Result<Reply> Ask(Request request) {
    MUSTER_ASSIGN_OR_RETURN(contract::ClusterReply reply, AskAny(std::move(request)));
    auto* typed = std::get_if<Reply>(&reply);
    MUSTER_CHECK(typed != nullptr, "the port answered with the reply of another request");
    return std::move(*typed);
  }
  // The status with what to do about it: which scheduler was asked.
  Status Explained(Status status) const;

  Now now() const { return access_.clock->Read(); }
  void Pause(Duration how_long) const { access_.pause(how_long); }
  // Answers of a scheduler that has lost its store are not noted on standard error, which is done once otherwise.
  void NoteNothing() { noted_stale_ = true; }
  rpc::ClusterClient& client() { return *client_; }

 private:
  ClusterSession(std::unique_ptr<rpc::ClusterClient> client, ClusterAccess access, std::string target)
      : client_(std::move(client)), access_(std::move(access)), target_(std::move(target)) {}

  std::unique_ptr<rpc::ClusterClient> client_;
  ClusterAccess access_;
  std::string target_;
  bool noted_stale_ = false;
};

// How many objects, and bytes of them, a list may have that is kept as a whole; and how many objects one page of it,
// which the scheduler ends sooner where they are large.
inline constexpr size_t kMostObjects = 1'000'000;
inline constexpr size_t kMostObjectBytes = 256 << 20;
inline constexpr int32_t kPageObjects = 250;

// How many bytes the objects are, about: as they would be saved.
template <class Objects>
size_t BytesOf(const Objects& objects) {
  size_t bytes = 0;
  std::string saved;
  for (const auto& object : objects) {
    saved.clear();
    codec::Writer writer(saved);
    codec::Encode(writer, object);
    bytes += saved.size();
  }
  return bytes;
}

// Asks for page after page and appends to the first; a page that is too large is asked for in parts. A scheduler that
// goes on beyond kMostObjects or kMostObjectBytes, or gives nothing and says that there is more, is INTERNAL.
template <class Listed, class Request, class Items, class Ask>
Result<Listed> AllPages(Ask ask, Request what, Items items) {
  what.page.limit = kPageObjects;
  MUSTER_ASSIGN_OR_RETURN(Listed all, contract::AskPage(ask, what));
  size_t bytes = BytesOf(all.*items);
  while (!all.next.empty()) {
    what.page.token = all.next;
    MUSTER_ASSIGN_OR_RETURN(Listed page, contract::AskPage(ask, what));
    if (page.next == all.next) return Error(Code::kInternal, "the scheduler gives the same page again and again");
    if ((page.*items).empty() && !page.next.empty()) {
      return Error(Code::kInternal, "the scheduler gives an empty page and says that there is more");
    }
    if ((all.*items).size() + (page.*items).size() > kMostObjects) {
      return Error(Code::kInternal, fmt::format("the scheduler lists more than {} objects", kMostObjects));
    }
    bytes += BytesOf(page.*items);
    if (bytes > kMostObjectBytes) {
      return Error(Code::kInternal, fmt::format("the scheduler lists more than {} bytes of objects", kMostObjectBytes));
    }
    for (auto& item : page.*items) (all.*items).push_back(std::move(item));
    all.next = page.next;
  }
  return all;
}
// Every object of a list, page by page. `revision` and `stale_since` are those of the first page.
Result<contract::WorkloadsListed> ListAll(ClusterSession& session, contract::ListWorkloads what);
Result<contract::NodesListed> ListAll(ClusterSession& session, contract::ListNodes what);
Result<contract::SetsListed> ListAll(ClusterSession& session, contract::ListSets what);
// The set of this name; NOT_FOUND says so.
Result<contract::SetView> FindSet(ClusterSession& session, const std::string& name);

// "muster: ..." on standard error, after what was printed so far.
void PrintError(const Status& status);

// Does something for each of several objects. One that fails does not stop the others: its error goes to standard
// error, and the result is 1. The error of a single object is returned.
template <class Items, class Do>
Result<int> ForEachObject(const Items& items, Do each) {
  int code = kOk;
  for (const auto& item : items) {
    const Status status = each(item);
    if (status.ok()) continue;
    if (items.size() == 1) return std::unexpected(status);
    PrintError(status);
    code = kFailed;
  }
  return code;
}
// NOT_FOUND becomes a sentence that names the object and where those that there are can be seen.
Status NamedNotFound(Status status, std::string_view kind, std::string_view name);

void AddApply(CommandLine& app, const ClusterAccess& access);
void AddDelete(CommandLine& app, const ClusterAccess& access);
void AddDiff(CommandLine& app, const ClusterAccess& access);
void AddGet(CommandLine& app, const ClusterAccess& access);
void AddDescribe(CommandLine& app, const ClusterAccess& access);
void AddEvents(CommandLine& app, const ClusterAccess& access);
void AddLogs(CommandLine& app, const ClusterAccess& access);
void AddScale(CommandLine& app, const ClusterAccess& access);
void AddRollout(CommandLine& app, const ClusterAccess& access);  // status, restart
void AddQuota(CommandLine& app, const ClusterAccess& access);
void AddClusterOrders(CommandLine& app, const ClusterAccess& access);  // retry, cordon, uncordon, drain, accept
// Adds what can be explained below `muster explain`; what is returned explains the TYPE/NAME behind the verb itself.
std::function<Result<int>()> AddExplainSubjects(Verb& explain, const ClusterAccess& access);

// All of them but the last, which stands below `muster explain`.
inline void AddClusterVerbs(CommandLine& app, const ClusterAccess& access) {
  AddApply(app, access);
  AddDiff(app, access);
  AddDelete(app, access);
  AddGet(app, access);
  AddDescribe(app, access);
  AddEvents(app, access);
  AddLogs(app, access);
  AddScale(app, access);
  AddRollout(app, access);
  AddClusterOrders(app, access);
  AddQuota(app, access);
}

}  // namespace muster::cli
