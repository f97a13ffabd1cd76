// Names: the clusters, fingerprints, needs and attributions that machines and roll-ups speak of, as numbers.
//
// A key (cluster, fingerprint, group) that no roll-up lists and no machine refers to is forgotten, and so are an
// attribution that nothing has and a fingerprint that is in none of them: others take their rows. A cluster is
// forgotten when the engine is told to, if nothing refers to it.
//
// Invariants (Verify): 1. every name in use is found by what it is, and is not spare. 2. Ranks follow names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/fast/blocks.h"
#include "engine/fast/id_texts.h"
#include "engine/fast/ids.h"
#include "engine/fast/lookup.h"
#include "engine/types.h"
#include "model/penalty.h"

namespace muster::engine::fast {

struct Stamp {  // an attribution
  ProfileId profile = kNoId;
  std::string group;
  int32_t priority = 0;
  model::Penalty interruption;
  model::Penalty reclamation;

  bool operator==(const Stamp&) const = default;
};
inline constexpr StampId kNoStamp(0);  // of machines that no need claimed yet, with the defaults that stand for it

struct Key {  // (cluster, fingerprint, group): whom machines, pledges and parking belong to
  ClusterId cluster = kNoId;
  ProfileId profile = kNoId;
  std::vector<GroupId> own;       // bound groups that are its own, in keep order
  std::vector<GroupId> creating;  // being made for it, cheapest first
  std::vector<GroupId> idle;      // pledged to it
  std::vector<GroupId> draining;  // pledged to it
  bool is_dirty = false;
  bool is_made = false;  // by normalising: of a fold, or of a gang told apart from others of its key
  bool is_spare = false;

  bool has_pledges() const { return !idle.empty() || !draining.empty(); }
  template <class Visit>
  void ForEachPledged(const Visit& visit) const {  // Idle ones first
    for (const GroupId g : idle) visit(g);
    for (const GroupId g : draining) visit(g);
  }
};

// What is read of a key for every need in every cycle, kept apart from its row.
struct KeyState {
  uint32_t opened = 0;      // the cycle in which one of these groups was first opened
  uint32_t settled = 0;     // the cycle in which its need took what it took before (Group::settled)
  bool may_settle = false;  // its need, its groups and their machines are as they were when it took that
  bool has_pledges = false;
  bool has_own = false;  // bound or Creating
  bool has_creating = false;
};

struct Cluster {
  std::string name;
  ClusterState state{.session = false, .gate_open = false};
  std::vector<GroupId> bound;      // Configured and Configuring, in keep order
  std::vector<GroupId> in_flight;  // Creating and Draining, pledged to a need of the cluster
  uint64_t version = 0;            // counts changes to the two, of all clusters that had this row
  bool is_dirty = false;
  bool is_spare = false;
};

class Names {
 public:
  Names();

  ClusterId ClusterOf(std::string_view name) {
    if (clusters_.Has(last_cluster_) && clusters_[last_cluster_].name == name) return last_cluster_;
    return InternCluster(name);
  }
  ClusterId FindCluster(std::string_view name) const;  // kNoId if it is not known
  Cluster& cluster(ClusterId id) { return clusters_[id]; }
  const Cluster& cluster(ClusterId id) const { return clusters_[id]; }
  size_t clusters() const { return clusters_.size(); }             // rows, spare ones among them
  uint64_t clusters_version() const { return clusters_version_; }  // counts those that came and went
  // Nothing refers to the cluster any more: its row will be another's.
  void Forget(ClusterId id);
  // Clusters by name; the order is made anew when one came or went.
  const std::vector<ClusterId>& ClustersByName();
  uint32_t cluster_rank(ClusterId id) const { return cluster_rank_[id]; }

  ProfileId ProfileOf(std::string_view fingerprint);
  const std::string& fingerprint(ProfileId id) const { return fingerprints_[id]; }
  size_t profiles() const { return fingerprints_.size() - spare_profiles_.size(); }
  uint64_t profiles_version() const { return profiles_version_; }  // counts those that came and went
  // Forgets fingerprints but those of keys, attributions and `used`, which is then all that stay.
  void ForgetProfilesBut(Rows<ProfileId, bool>& used);
  // Ranks of fingerprints by name, made anew when one came.
  void RankProfiles();
  uint32_t profile_rank(ProfileId id) const { return profile_rank_[id]; }
  KeyId KeyOf(ClusterId cluster, ProfileId profile, std::string_view group);  // not a key_group()
  KeyId KeyOf(const NeedKey& key);
  KeyId MadeKeyOf(ClusterId cluster, ProfileId profile, std::string_view group);  // Key::is_made from now on
  Key& key(KeyId id) { return keys_[id]; }
  const Key& key(KeyId id) const { return keys_[id]; }
  std::string_view key_group(KeyId id) const { return key_groups_[id]; }  // good until the next KeyOf
  const KeyState& key_state(KeyId id) const { return key_states_[id]; }
  NeedKey NameOf(KeyId id) const;
  size_t keys() const { return keys_.size(); }
  size_t keys_in_use() const { return keys_.size() - spare_keys_.size(); }
  // Whether no machine is its own, made for it or pledged to it: as of BeginCycle.
  bool IsBare(KeyId id) const;
  // Nothing refers to the key any more: its row will be another's.
  void Forget(KeyId id);
  StampId StampOf(const Stamp& stamp);
  const Stamp& stamp(StampId id) const { return stamps_[id]; }
  size_t stamps() const { return stamps_.size() - spare_stamps_.size(); }

  // The first invariant that does not hold; empty if all do.
  std::string Verify() const;

 protected:
  ClusterId InternCluster(std::string_view name);
  void ForgetStampsBut(const Rows<StampId, bool>& used);

  Rows<ClusterId, Cluster> clusters_;
  std::vector<ClusterId> clusters_by_name_;
  Rows<ClusterId, uint32_t> cluster_rank_;
  Lookup<ClusterId> cluster_lookup_;
  ClusterId last_cluster_ = kNoId;  // asked for
  std::vector<ClusterId> spare_clusters_;
  uint64_t clusters_version_ = 0;
  uint64_t listed_version_ = 0;  // clusters_version_ for which clusters_by_name_ holds
  Rows<ProfileId, std::string> fingerprints_;
  Rows<ProfileId, uint32_t> profile_rank_;
  Lookup<ProfileId> fingerprint_lookup_;
  std::vector<ProfileId> spare_profiles_;
  uint64_t profiles_version_ = 0;
  uint64_t ranked_version_ = 0;  // profiles_version_ for which ranks hold
  Blocks<KeyId, Key> keys_;      // rows are large
  Rows<KeyId, KeyState> key_states_;
  IdTexts<KeyId> key_groups_;
  Lookup<KeyId> key_lookup_;
  std::vector<KeyId> spare_keys_;
  Rows<StampId, Stamp> stamps_;
  std::vector<StampId> spare_stamps_;
  size_t kept_stamps_ = 0;  // by the last sweep
  Lookup<StampId> stamp_lookup_;
};

}  // namespace muster::engine::fast
