// Ask and wait: the ports answer on other threads, a command has one.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/status.h"
#include "cli/command_line.h"
#include "cli/tls_flags.h"
#include "contract/shard.h"

namespace muster::cli {

// Runs `ask` with a function to call once with the answer, and waits for that.
template <class Reply>
Result<Reply> WaitFor(const std::function<void(std::function<void(Result<Reply>)>)>& ask) {
  std::mutex mu;
  std::condition_variable answered;
  std::optional<Result<Reply>> result;
  ask([&](Result<Reply> reply) {
    const std::lock_guard lock(mu);
    result = std::move(reply);
    answered.notify_all();
  });
  std::unique_lock lock(mu);
  answered.wait(lock, [&] { return result.has_value(); });
  return *std::move(result);
}

// --shard, --output and the TLS files of every verb that asks a running shard.
struct ShardFlags {
  std::string shard = "127.0.0.1:7780";
  std::string output = "table";
  TlsFlags tls;
};
void AddShardFlags(Verb& verb, ShardFlags& flags);
// Whether --output is for programs.
inline bool IsDocument(std::string_view output) { return output == "json" || output == "yaml"; }
std::string DefaultShard();
// --shard alone: MUSTER_SHARD if it is not given, and then 127.0.0.1:7780.
void AddShardAddress(Verb& verb, ShardFlags& flags);
// The same without --output, for orders.
void AddOrderFlags(Verb& verb, ShardFlags& flags);

Result<contract::ShardReply> AskShard(contract::ShardPort& shard, contract::ShardRequest request);
Result<contract::ShardReply> AskShard(const ShardFlags& flags, contract::ShardRequest request);

// The reply that belongs to the request, as AskShard brings it.
template <class Reply, class Request>
Result<Reply> AskShardFor(const ShardFlags& flags, Request request) {
  MUSTER_ASSIGN_OR_RETURN(contract::ShardReply reply, AskShard(flags, std::move(request)));
  auto* typed = std::get_if<Reply>(&reply);
  MUSTER_CHECK(typed != nullptr, "the port answered with the reply of another request");
  return std::move(*typed);
}

}  // namespace muster::cli
