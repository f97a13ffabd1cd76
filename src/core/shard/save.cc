// The whole state as bytes, for journals: a core loaded from them goes on as the saved one would. The engine is built
// anew from what it was shown and what it remembers, which is all its decisions depend on; counters begin at zero.
#include "base/codec.h"
#include "core/shard/shard.h"

namespace muster::shard {

std::string Core::Save() const {
  return codec::ToBytes(std::pair<const Kept&, engine::Memory>(*this, engine_->ExportMemory()));
}

std::optional<Core> Core::Load(std::string_view bytes) {
  auto saved = codec::FromBytes<std::pair<Kept, engine::Memory>>(bytes);
  if (!saved) return std::nullopt;
  Core core(saved->first.config_, nullptr);
  static_cast<Kept&>(core) = std::move(saved->first);
  core.engine_->Restore(core.restored_);
  core.engine_->Restore(saved->second);
  core.RebuildDerived();
  return core;
}

// Everything that follows from the rest.
void Core::RebuildDerived() {
  for (auto& [name, cluster] : clusters_) {
    if (!cluster.accepted) continue;
    engine_->ReplaceNeeds(name, {.rows = cluster.rows, .digests = cluster.digests}, std::nullopt);
  }
  for (const auto& [id, tracked] : machines_) {
    Count(id, tracked, 1);
    Show(id, tracked);
  }
  for (const auto& [id, operation] : operations_) {
    if (operation.deadline) deadlines_.emplace(*operation.deadline, id);
  }
  for (const auto& [id, repair] : repairs_) {
    if (repair.due) repairs_due_.emplace(*repair.due, id);
  }
  CountShort();
}

}  // namespace muster::shard
