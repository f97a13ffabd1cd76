#include "cli/ask.h"

#include <cstdlib>
#include <memory>

#include "rpc/shard_client.h"

namespace muster::cli {

std::string DefaultShard() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing writes the environment
  const char* given = std::getenv("MUSTER_SHARD");
  return given != nullptr && *given != '\0' ? given : "127.0.0.1:7780";
}

void AddShardAddress(Verb& verb, ShardFlags& flags) {
  flags.shard = DefaultShard();
  verb.Option("--shard", flags.shard, "HOST:PORT of the shard (MUSTER_SHARD)");
}

void AddOrderFlags(Verb& verb, ShardFlags& flags) {
  AddShardAddress(verb, flags);
  AddTlsFlags(verb, flags.tls);
}

void AddShardFlags(Verb& verb, ShardFlags& flags) {
  AddOrderFlags(verb, flags);
  verb.Choice("-o,--output", flags.output, {"table", "wide", "json", "yaml"}, "Form; json is one line for each row");
}

Result<contract::ShardReply> AskShard(contract::ShardPort& shard, contract::ShardRequest request) {
  return WaitFor<contract::ShardReply>([&](auto done) { shard.Ask(std::move(request), std::move(done)); });
}

Result<contract::ShardReply> AskShard(const ShardFlags& flags, contract::ShardRequest request) {
  MUSTER_ASSIGN_OR_RETURN(const rpc::TlsFiles tls, flags.tls.Files());
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<contract::ShardPort> shard, rpc::MakeShardClient(flags.shard, tls));
  return AskShard(*shard, std::move(request));
}

}  // namespace muster::cli
