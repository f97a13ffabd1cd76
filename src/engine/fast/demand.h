// Demand: every cluster's needs as last accepted, normalised and in the order of decision.
//
// A roll-up replaces what its cluster said before. Rows carry a digest made when they were decoded, so a row that did
// not change costs a comparison. Gangs that fit one machine are folded; the folded list is kept and made anew only when
// the cluster's rows changed, or something that folding depends on did.
//
// Invariants (Verify), from BeginCycle on: 1. every need is at its place in the order, which is that of docs/engine.md.
// 2. Every row of a roll-up is in exactly one need, under the key that normalising gave it. 3. A need has the stamp of
// its own profile and group. 4. A key counts the rows that list it.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"
#include "engine/fast/inventory.h"
#include "engine/fast/rollup.h"
#include "model/need.h"

namespace muster::engine::fast {

// What is known of a profile once a need has shown it.
struct ProfileInfo {
  model::Profile profile;
  FilterId filter = kNoId;
  bool is_gang = false;
  bool spreads = false;
  uint64_t precedence = 0;   // larger goes first
  ProfileId folded = kNoId;  // gangs: the profile of the plain need it folds into
};

// What a need took of its own groups. While every machine of its own adds to all it wants, it takes the fewest in keep
// order that cover it: the same when it wants more or less, as long as `taken` covers that and, less `least`, would
// not.
struct LastTake {
  bool in_order = false;  // every machine of its own adds to all it wants
  Amounts taken;
  Amounts least;  // at most what any machine taken has
};

// A need of the normalised list.
struct NeedRow {
  NeedId id = kNoId;    // its place in this cycle's order
  GangId gang = kNoId;  // gangs: its place among this cycle's
  KeyId key = kNoId;
  ClusterId cluster = kNoId;
  ProfileId profile = kNoId;
  FitId fit = kNoId;
  StampId stamp = kNoStamp;  // what its claims are stamped with
  bool is_gang = false;
  bool spreads = false;
  uint64_t precedence = 0;
  int64_t arrival = 0;
  Amounts aggregate;                    // its min_unit is that of its fit
  uint32_t row = 0;                     // position in the cluster's roll-up; of a folded need, the first of RowsOf
  uint32_t last_row = 0;                // of a folded need, the last of them
  std::unique_ptr<LastTake> last_take;  // when it last took all it wanted of its own groups (KeyState::may_settle)
};

class Demand {
 public:
  explicit Demand(Inventory& inventory) : inventory_(inventory) {}

  // Arrivals are stamped with `now`, or taken as the rows give them if it is not given.
  void Replace(ClusterId cluster, const Rollup& rollup, std::optional<WallTime> now);

  // Normalises what changed and puts all needs in order. After Inventory::BeginCycle.
  void BeginCycle();
  const Rows<NeedId, NeedRow*>& order() const { return order_; }
  const Rows<NeedId, KeyId>& keys() const { return keys_; }  // of order()
  // Counts changes of the list beyond the amounts of plain needs.
  uint64_t version() const { return listing_; }
  uint64_t fits_version() const { return fits_version_; }  // a need uses another fit than before
  // Under which key a gang's pledge made in another cycle is decided in this one; the key itself if nothing is known.
  KeyId CurrentKeyOf(KeyId key) const;
  // Positions in the roll-up of the rows that the need stands for: one, or all gangs that were folded into it.
  std::vector<size_t> RowsOf(const NeedRow& need) const;
  bool IsListed(KeyId key) const;
  // What the need wants or lacks (a machine's unit of it), with names that no machine knows.
  model::Resources NamedAmounts(const NeedRow& need, const Amounts& amounts, bool of_unit) const;

  // Between cycles: forgets those of the clusters that no need of the last cycles, no machine and no hold names, and
  // strikes out the others. Costs a walk over machines and keys.
  void ForgetClusters(Rows<ClusterId, bool>& unused);

  const std::vector<NeedRow>& NeedsOf(ClusterId cluster) const {
    static const std::vector<NeedRow> none;
    return clusters_.Has(cluster) ? clusters_[cluster].needs : none;
  }
  uint64_t ListedIn(ClusterId cluster) const { return clusters_[cluster].listed; }  // version() when it was normalised
  bool HasEqualRows(ClusterId cluster) const { return clusters_[cluster].has_equal_rows; }
  size_t gangs() const { return gangs_; }
  const std::vector<ClusterId>& normalised() const { return normalised_; }  // in this cycle
  const ProfileInfo& info(ProfileId id) const { return infos_[id]; }
  size_t rows() const;

  // The first invariant that does not hold; empty if all do. After a cycle.
  std::string Verify() const;

 private:
  struct Row {
    KeyId key = kNoId;  // as listed; gangs of equal key are told apart when normalised
    ProfileId profile = kNoId;
    int64_t arrival = 0;
    Amounts aggregate;  // its min_unit is that of its fit
    FitId fit = kNoId;
    uint32_t need = kNoId;          // plain: its place in ClusterDemand::needs
    StampId stamp = kNoStamp;       // if it has no group
    StampId fold_stamp = kNoStamp;  // gangs
    KeyId fold_key = kNoId;         // gangs
    FitId fold_fit = kNoId;         // gangs
    KeyId gang_key = kNoId;         // gangs: told apart from others of its key
    uint32_t next = kNoId;          // gangs that are folded: the next row of the same fold
    bool folded = false;            // gangs: in the normalised list
  };
  struct ClusterDemand {
    std::vector<Row> rows;
    std::vector<uint64_t> digests;        // of rows
    std::vector<NeedRow> needs;           // normalised, in order
    std::map<uint32_t, model::Need> odd;  // rows, by position, that ask for what no machine has
    bool changed = true;                  // needs must be made anew
    bool has_equal_rows = false;
    bool has_gangs = false;
    uint64_t listed = 0;
    uint64_t replaced = 0;      // the cycle before its rows became others
    uint64_t seen_version = 0;  // of Cluster::version
    uint64_t seen_folding = 0;
  };
  struct Listing {
    uint32_t rows = 0;
    bool is_gone = false;    // in gone_
    uint64_t forget_at = 0;  // while it is: the cycle in which it may be forgotten
    int64_t arrival = 0;
  };

  struct KeyNotes {           // scratch of Normalise
    uint64_t turn = 0;        // for which the rest holds
    uint32_t seen = 0;        // rows of the key so far
    bool listed = false;      // in the new list
    uint32_t slot = kNoId;    // of a fold: its place in the new list
    uint32_t before = kNoId;  // its place in the old list
  };

  ProfileId ProfileOf(const model::Profile& profile);
  ProfileId InternProfile(const model::Profile& profile);
  const std::string& FoldNameOf(const Amounts& aggregate);
  static std::string FoldNameOf(const model::Resources& aggregate);
  Row Read(ClusterId cluster, const model::Need& from);
  void NoteOdd(ClusterDemand& demand, uint32_t position, const model::Need& from);
  void ReadEvicted();
  void ReadAgain(ClusterId cluster, uint32_t position, const model::Need& from);
  void ReadOddAgain();
  bool IsOdd(const NeedRow& need) const {
    return !clusters_[need.cluster].odd.empty() && clusters_[need.cluster].odd.contains(need.row);
  }
  bool IsAmountOnly(const Row& row, const model::Need& from, bool stamped) const;
  void UpdateAmounts(Row& row, const model::Need& from);
  void Patch(ClusterDemand& demand, const Row& row);
  bool TakesTheSame(const NeedRow& need, const Amounts& aggregate) const;
  void InheritLastTake(NeedRow& need);
  KeyNotes& NotesOf(KeyId key);
  bool FoldingStays(ClusterId cluster);
  void Normalise(ClusterId cluster);
  NeedRow Plain(ClusterId cluster, const Row& row, uint32_t position);
  void DraftGang(ClusterId cluster, std::vector<Row>& rows, uint32_t position);
  StampId StampOf(ProfileId profile, std::string_view group);
  void SortDrafts();
  void MergeSorted();
  void NumberNeeds();
  bool IsAssembled(KeyId key, FitId fit, const Amounts& aggregate);
  bool HasHost(ClusterId cluster, FitId fit);
  bool FreeHost(FitId fit);
  void RefreshHosts();
  // What decides the order of two needs mostly, in one place, so that sorting does not walk through memory.
  struct SortKey {
    uint64_t precedence = 0;
    int64_t arrival = 0;
    ClusterId cluster = kNoId;
    uint32_t cluster_rank = 0;
    uint32_t profile_rank = 0;
    KeyId key = kNoId;
    GangId gang = kNoId;
    NeedRow* need = nullptr;
  };
  SortKey SortKeyOf(NeedRow& need) const;
  bool SameKeyLess(const NeedRow& a, const NeedRow& b) const;
  Listing& ListingOf(KeyId key);
  void Unlist(KeyId key);
  void ForgetKeys();
  void SweepStamps();
  void SweepStampsNow();
  void SweepProfiles();
  void ForgetMadeKeys();
  void ForgetUnusedProfiles();
  size_t KnownNames() const;

  Inventory& inventory_;
  Rows<ClusterId, ClusterDemand> clusters_;
  Rows<ProfileId, ProfileInfo> infos_;  // filter == kNoId: not known yet
  Rows<KeyId, Listing> listings_;
  std::vector<KeyId> gone_;  // keys that are no longer listed
  uint64_t cycle_ = 0;
  Rows<NeedId, NeedRow*> order_;
  Rows<NeedId, KeyId> keys_;
  std::vector<SortKey> sorted_;  // parallel to order_
  // Profiles by the address of what they share: a decoder gives equal rows one profile. Known to be the same while the
  // roll-up is read that showed it, or if it is the one that is kept.
  struct Seen {
    uint64_t rollup = 0;
    const std::string* shared = nullptr;
    const std::string* kept = nullptr;  // what ProfileInfo keeps, so that it stays where it is
    ProfileId profile = kNoId;
  };
  std::array<Seen, 256> profiles_seen_;
  uint64_t rollups_ = 0;
  // What follows from these three in whatever cluster, of rows read lately: rows are many and their kinds few.
  struct Terms {
    ProfileId profile = kNoId;
    Amounts aggregate;
    Amounts min_unit;
    FitId fit = kNoId;
    StampId stamp = kNoStamp;  // without a group
    FitId fold_fit = kNoId;    // gangs, as all that follows
    StampId fold_stamp = kNoStamp;
    const std::string* fold_name = nullptr;
    uint64_t rollup = 0;  // the one that showed it last
    KeyId fold_key = kNoId;
  };
  Terms& TermsOf(ProfileId profile, const Amounts& aggregate, const Amounts& min_unit);
  std::vector<Terms> terms_ = std::vector<Terms>(256);
  using FoldNameId = Index<struct FoldNameTag>;
  std::deque<std::pair<Amounts, std::string>> fold_names_;  // by what is folded; by FoldNameId
  Lookup<FoldNameId> fold_name_lookup_;
  std::vector<ClusterId> normalised_;
  Rows<ClusterId, uint8_t> is_normalised_;
  struct Host {
    uint64_t version = 0;  // Inventory::supply_version it holds for; 0: never asked
    bool exists = false;
  };
  Rows<FitId, Host> hosts_;  // whether a free machine could host the fold
  std::vector<FitId> asked_;
  uint64_t folding_ = 1;  // counts changes of hosts_
  uint64_t hosts_version_ = 0;
  Rows<KeyId, StampId> stamp_of_;    // kNoStamp: not made yet
  Rows<KeyId, uint64_t> listed_in_;  // version() when it was last listed
  uint64_t listing_ = 0;
  size_t gangs_ = 0;
  uint64_t ranked_clusters_ = 0;  // Names::clusters_version when `sorted_` was made
  uint64_t ranked_profiles_ = 0;  // Names::profiles_version then
  uint64_t interned_ = 0;         // Catalogue::interned when rows were read
  size_t kept_names_ = 0;         // by the last sweep
  uint64_t sweep_at_ = 0;         // the cycle in which one that has begun ends; 0: none
  Rows<KeyId, uint64_t> unused_;  // made keys when it began: 0 if in use, otherwise 1 + listed_in_
  Rows<KeyId, KeyNotes> notes_;
  uint64_t normalisations_ = 0;
  std::vector<std::unique_ptr<LastTake>> spare_takes_;  // of needs that are gone
  int64_t latest_ = 0;
  uint64_t fits_version_ = 0;

  // Scratch, so that a steady cycle allocates nothing.
  std::vector<Row> fresh_;
  std::vector<uint32_t> where_;
  std::vector<NeedRow> drafts_;  // of the cluster that is normalised
  std::vector<NeedRow> before_;  // its list before
  std::vector<SortKey> draft_keys_;
  std::vector<SortKey> fresh_keys_;  // of clusters that were normalised
  std::vector<SortKey> merged_;
  std::vector<size_t> run_ends_;
  std::vector<std::pair<DomainId, Amounts>> missing_;
  Stamp stamp_;
  std::string name_;
};

}  // namespace muster::engine::fast
