#include "role/scheduler/secret_texts.h"

#include <fmt/format.h>

#include <utility>
#include <variant>

#include "base/log.h"

namespace muster::scheduler {
namespace {

using model::WorkloadTemplate;
using rpc::SecretSeal;

Status Named(const std::string& variable, const Status& status) {
  return {status.code(), fmt::format("spec.secretEnv.{}: {}", variable, status.message())};
}

const Status& NoSeal() {
  static const Status status(Code::kFailedPrecondition,
                             "this scheduler has no key for secrets; start it with --secret-key");
  return status;
}

Status Seal(const SecretSeal* seal, const std::string& tenant, const std::string& name, WorkloadTemplate& spec) {
  for (auto& [variable, value] : spec.secret_env) {
    if (seal == nullptr) return Named(variable, NoSeal());
    if (value.empty()) continue;  // the core names it
    const std::string owner = fmt::format("{}/{}/{}", tenant, name, variable);
    if (!SecretSeal::IsSealed(value)) {
      value = seal->Seal(owner, value);
    } else if (const auto opened = seal->OpenFor(owner, value); !opened) {
      return Named(variable, opened.error());
    }
  }
  return {};
}

Status Open(const SecretSeal* seal, WorkloadTemplate& spec) {
  Status first;
  for (auto& [variable, value] : spec.secret_env) {
    auto opened = seal != nullptr ? seal->Open(value) : Result<std::string>(std::unexpected(NoSeal()));
    if (!opened && first.ok()) first = Named(variable, opened.error());
    value = opened ? *std::move(opened) : std::string();
  }
  return first;
}

}  // namespace

Status SealSecrets(const SecretSeal* seal, const std::string& tenant, contract::ClusterRequest& request) {
  const auto of = [&tenant](const std::string& named) { return named.empty() ? tenant : named; };
  if (auto* apply = std::get_if<contract::ApplyWorkload>(&request); apply != nullptr && apply->spec) {
    return Seal(seal, of(apply->tenant), apply->workload, *apply->spec);
  }
  if (auto* apply = std::get_if<contract::ApplySpec>(&request)) {
    return Seal(seal, of(apply->spec.tenant), apply->spec.name, apply->spec.spec);
  }
  return {};
}

Status OpenSecrets(const SecretSeal* seal, contract::AgentRequest& request) {
  auto* const apply = std::get_if<contract::ApplyOnAgent>(&request);
  if (apply == nullptr) return {};
  const Status opened = Open(seal, apply->spec);
  // Not FAILED_PRECONDITION, by which agents tell of a later stamp: it is an attempt that failed, and says why.
  return opened.ok() ? Status() : Status(Code::kInvalidArgument, opened.message());
}

void OpenSecrets(const SecretSeal* seal, contract::FullState& state) {
  for (contract::ApplyOnAgent& apply : state.workloads) {
    if (const Status opened = Open(seal, apply.spec); !opened.ok()) {
      log::Warn("a secret cannot be opened", {{"workload", apply.workload}, {"why", opened.message()}});
    }
  }
}

}  // namespace muster::scheduler
