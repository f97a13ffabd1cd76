#include "engine/fast/names.h"

#include <algorithm>

#include "base/hash.h"
#include "base/probe.h"

namespace muster::engine::fast {
namespace {

uint64_t StampHash(const Stamp& stamp) {
  Hasher hasher;
  hasher.Add(stamp.group);
  hasher.Add((uint64_t{stamp.profile.value()} << 32) | static_cast<uint32_t>(stamp.priority));
  hasher.Add(static_cast<uint64_t>(stamp.interruption.finite.micros) * 2 + (stamp.interruption.pinned ? 1 : 0));
  hasher.Add(static_cast<uint64_t>(stamp.reclamation.finite.micros) * 2 + (stamp.reclamation.pinned ? 1 : 0));
  return hasher.value();
}

uint64_t KeyHash(ClusterId cluster, ProfileId profile, std::string_view group) {
  Hasher hasher;
  hasher.Add((uint64_t{cluster.value()} << 32) | profile.value());
  hasher.Add(group);
  return hasher.value();
}

}  // namespace

Names::Names() { stamps_.Add({}); }

ClusterId Names::FindCluster(std::string_view name) const {
  return cluster_lookup_.Find(Hash(name), [&](ClusterId i) { return clusters_[i].name == name; });
}

ClusterId Names::InternCluster(std::string_view name) {
  last_cluster_ = cluster_lookup_.FindOrAdd(
      Hash(name), [&](ClusterId i) { return clusters_[i].name == name; },
      [&] {
        ++clusters_version_;
        if (spare_clusters_.empty()) return clusters_.Add({.name = std::string(name)});
        const ClusterId id = spare_clusters_.back();
        spare_clusters_.pop_back();
        clusters_[id].name = name;
        clusters_[id].is_spare = false;
        return id;
      });
  return last_cluster_;
}

void Names::Forget(ClusterId id) {
  ++clusters_version_;
  cluster_lookup_.Erase(Hash(clusters_[id].name), id);
  clusters_[id] = {.name = {}, .version = clusters_[id].version, .is_spare = true};
  spare_clusters_.push_back(id);
  if (last_cluster_ == id) last_cluster_ = kNoId;
}

const std::vector<ClusterId>& Names::ClustersByName() {
  if (listed_version_ == clusters_version_) return clusters_by_name_;
  listed_version_ = clusters_version_;
  clusters_by_name_.clear();
  for (const ClusterId id : clusters_.ids()) {
    if (!clusters_[id].is_spare) clusters_by_name_.push_back(id);
  }
  const auto name = [&](ClusterId id) -> const std::string& { return clusters_[id].name; };
  if (!std::ranges::is_sorted(clusters_by_name_, {}, name)) std::ranges::sort(clusters_by_name_, {}, name);
  cluster_rank_.resize(clusters_.size());
  for (uint32_t i = 0; i < clusters_by_name_.size(); ++i) cluster_rank_[clusters_by_name_[i]] = i;
  return clusters_by_name_;
}

ProfileId Names::ProfileOf(std::string_view fingerprint) {
  return fingerprint_lookup_.FindOrAdd(
      Hash(fingerprint), [&](ProfileId i) { return fingerprints_[i] == fingerprint; },
      [&] {
        ++profiles_version_;
        if (spare_profiles_.empty()) return fingerprints_.Add(std::string(fingerprint));
        const ProfileId id = spare_profiles_.back();
        spare_profiles_.pop_back();
        fingerprints_[id] = fingerprint;
        return id;
      });
}

void Names::ForgetProfilesBut(Rows<ProfileId, bool>& used) {
  used.resize(fingerprints_.size(), false);
  const auto use = [&](ProfileId id) {
    if (id != kNoId) used[id] = true;  // an attribution may be of no profile
  };
  Rows<KeyId, bool> is_spare_key;
  is_spare_key.resize(keys_.size(), false);
  for (const KeyId id : spare_keys_) is_spare_key[id] = true;
  for (const KeyId id : is_spare_key.ids()) {
    if (!is_spare_key[id]) use(keys_[id].profile);
  }
  Rows<StampId, bool> is_spare_stamp;
  is_spare_stamp.resize(stamps_.size(), false);
  for (const StampId id : spare_stamps_) is_spare_stamp[id] = true;
  for (const StampId id : stamps_.ids()) {
    if (!is_spare_stamp[id]) use(stamps_[id].profile);
  }
  for (const ProfileId id : spare_profiles_) used[id] = true;  // forgotten already
  for (const ProfileId id : fingerprints_.ids()) {
    if (used[id]) continue;
    ++profiles_version_;
    fingerprint_lookup_.Erase(Hash(fingerprints_[id]), id);
    fingerprints_[id] = {};
    spare_profiles_.push_back(id);
  }
  for (const ProfileId id : spare_profiles_) used[id] = false;
}

void Names::RankProfiles() {
  if (ranked_version_ == profiles_version_) return;
  ranked_version_ = profiles_version_;
  std::vector<ProfileId> by_name;
  for (const ProfileId id : fingerprints_.ids()) by_name.push_back(id);
  std::ranges::sort(by_name, {}, [&](ProfileId id) -> const std::string& { return fingerprints_[id]; });
  profile_rank_.resize(by_name.size());
  for (uint32_t i = 0; i < by_name.size(); ++i) profile_rank_[by_name[i]] = i;
}

KeyId Names::KeyOf(ClusterId cluster, ProfileId profile, std::string_view group) {
  const auto is_it = [&](KeyId i) {
    return keys_[i].cluster == cluster && keys_[i].profile == profile && key_groups_[i] == group;
  };
  const auto make = [&] {
    KeyId id;
    if (spare_keys_.empty()) {
      id = keys_.Add();
      key_states_.Add({});
    } else {
      id = spare_keys_.back();
      spare_keys_.pop_back();
      key_states_[id] = {};
      keys_[id].is_spare = false;
    }
    keys_[id].cluster = cluster;
    keys_[id].profile = profile;
    key_groups_.Set(id, group);
    return id;
  };
  return key_lookup_.FindOrAdd(KeyHash(cluster, profile, group), is_it, make);
}

KeyId Names::MadeKeyOf(ClusterId cluster, ProfileId profile, std::string_view group) {
  const KeyId id = KeyOf(cluster, profile, group);
  keys_[id].is_made = true;
  return id;
}

bool Names::IsBare(KeyId id) const {
  const Key& key = keys_[id];
  return (key.own.empty() && key.creating.empty() && !key.has_pledges()) || MUTANT("fast.key_in_use");
}

void Names::Forget(KeyId id) {
  key_lookup_.Erase(KeyHash(keys_[id].cluster, keys_[id].profile, key_groups_[id]), id);
  keys_[id].is_made = false;
  keys_[id].is_spare = true;
  spare_keys_.push_back(id);
}

KeyId Names::KeyOf(const NeedKey& key) { return KeyOf(ClusterOf(key.cluster), ProfileOf(key.fingerprint), key.group); }

NeedKey Names::NameOf(KeyId id) const {
  const Key& key = keys_[id];
  return {.cluster = clusters_[key.cluster].name,
          .fingerprint = fingerprints_[key.profile],
          .group = std::string(key_groups_[id])};
}

StampId Names::StampOf(const Stamp& stamp) {
  const auto make = [&] {
    if (spare_stamps_.empty()) return stamps_.Add(stamp);
    const StampId id = spare_stamps_.back();
    spare_stamps_.pop_back();
    stamps_[id] = stamp;
    return id;
  };
  return stamp_lookup_.FindOrAdd(StampHash(stamp), [&](StampId i) { return stamps_[i] == stamp; }, make);
}

void Names::ForgetStampsBut(const Rows<StampId, bool>& used) {
  for (const StampId id : stamps_.ids()) {
    if (used[id]) continue;
    stamp_lookup_.Erase(StampHash(stamps_[id]), id);
    spare_stamps_.push_back(id);
  }
}

}  // namespace muster::engine::fast
