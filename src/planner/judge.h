// Judge: nodes with units on them, in strings and plain sums, and which hard rules are broken there.
//
// The common half of the two checkers (checker.h, consolidation_checker.h). It shares no code with placement or with
// the packing: it reads labels, taints, terms and selectors with tests of its own, so that a mistake there cannot hide
// here. Units are newcomers, which an answer put where they are, or residents, which were there before. A rule between
// units holds for a newcomer if it could be put where it is with all others in place.
//
// Thread-safety: none.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "placement/types.h"
#include "planner/catalogue.h"

namespace muster::planner {

inline constexpr size_t kNowhere = SIZE_MAX;

// A node of the state that is judged.
struct Spot {
  std::string id;
  model::TextMap labels;
  std::vector<placement::Taint> taints;
  model::Resources total;
  std::vector<int32_t> devices;
  const placement::Node* kept = nullptr;  // a node that was there at first
  bool may_be_empty = false;
  bool gone = false;
  std::map<std::string, int64_t> taken;
  std::map<uint32_t, int64_t> newcomers;    // by kind
  std::map<uint32_t, int64_t> residents;    // by kind
  std::map<uint32_t, int64_t> terminating;  // of the residents, those that spread does not count
  std::vector<int64_t> device_taken;
};

class Judge {
 public:
  // The world outlives the judge.
  explicit Judge(const placement::World& world) : world_(world) {}

  // --- The state. What a node reserves is taken.
  void AddNode(const placement::Node& node);
  void AddMachine(const std::string& id, const Candidate& candidate, bool may_be_empty);
  std::vector<Spot>& spots() { return spots_; }
  size_t SpotOf(const std::string& id) const;  // kNowhere: there is none
  void AddResident(Spot& spot, uint32_t kind, bool terminating);
  void RemoveResident(Spot& spot, uint32_t kind);
  void AddNewcomer(Spot& spot, uint32_t kind);
  // After the last change, before rules between units are judged.
  void StateIsWhole();

  // --- Its breaches, as findings.
  void CheckRoom(const Spot& spot);
  void CheckAccess(const Spot& spot);
  void CheckPorts(const Spot& spot);
  // In sum only: which device a unit gets on a node that is there is decided when it comes.
  void CheckDevices(const Spot& spot);
  // Rules of newcomers about all others, and exclusion of newcomers by residents.
  void CheckBetweenUnits();
  // How far rules of residents are from holding, by rule and domain; those that hold are absent. Spread counts the
  // domains that there are and that there were at first: a machine that is bought does not break the spread of what is
  // there.
  std::map<std::string, int64_t> BreachesOfResidents();

  // Thousandths of devices of a spot: what its units ask for, and what there is.
  struct DeviceSum {
    int64_t asked = 0;
    int64_t has = 0;
    bool by_newcomers = false;
  };
  DeviceSum DevicesOf(const Spot& spot) const;

  template <class... Args>
  void Find(fmt::format_string<Args...> format, Args&&... args) {
    if (findings_.size() < kMostFindings) findings_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }
  std::vector<std::string> Take() { return std::move(findings_); }

 private:
  static constexpr size_t kMostFindings = 20;

  // The spots of one topology key that a rule counts, and their domains.
  struct Ground {
    std::vector<bool> spots;  // that count
    std::vector<bool> now;    // domains with such a spot
    std::vector<bool> first;  // those of them that had one at first
    int64_t domains_now = 0;
    int64_t domains_first = 0;
  };
  // Units by domain.
  struct Crowd {
    std::map<size_t, int64_t> all;
    std::map<size_t, int64_t> newcomers;

    int64_t In(size_t domain) const;
    // The least count of the other domains; `now` or `first` of a ground, and how many they are.
    int64_t LeastElsewhere(const std::vector<bool>& domains, int64_t count, size_t domain) const;
  };
  struct Included {  // by a selector
    std::vector<uint32_t> kinds;
    std::vector<bool> has;
  };
  using Places = std::map<uint32_t, std::vector<size_t>>;  // by kind

  void AddSpot(Spot spot);
  bool LabelsFit(const placement::Kind& kind, const Spot& spot) const;
  bool Counts(const placement::Kind& kind, const placement::SpreadConstraint& spread, const Spot& spot) const;
  template <class Selecting>
  const Included& IncludedBy(const Selecting& selecting);
  const std::vector<size_t>& DomainsOf(const std::string& key);
  template <class Accept>
  const Ground& GroundOf(const std::string& text, const std::string& key, Accept&& accept);
  const Crowd& CrowdOf(const std::string& text, const std::string& key, const std::vector<uint32_t>& kinds,
                       const Ground& ground, bool terminating);
  struct SpreadView {
    const Ground* ground = nullptr;
    const Crowd* crowd = nullptr;
    int64_t self = 0;
  };
  SpreadView ViewOf(uint32_t k, const placement::SpreadConstraint& spread);
  struct NearView {
    const Crowd* crowd = nullptr;
    int64_t self = 0;
    bool is_first = false;  // no other unit of the group is anywhere
  };
  std::vector<NearView> NearViewsOf(uint32_t k);
  void CheckSpread(uint32_t k, const placement::SpreadConstraint& spread, const std::vector<size_t>& where);
  void CheckColocation(uint32_t k, const std::vector<size_t>& where);
  void CheckExclusion(uint32_t k, const placement::UnitTerm& term, const std::vector<size_t>& where, bool newcomers);

  const placement::World& world_;
  std::vector<Spot> spots_;
  std::unordered_map<std::string, size_t> spot_of_;
  Places newcomers_at_;
  Places residents_at_;
  std::map<std::string, Included> included_;
  std::map<std::string, std::vector<size_t>> domains_;      // by key: the domain of every spot
  std::map<std::string, std::vector<std::string>> values_;  // by key: of every domain
  std::map<std::string, Ground> grounds_;
  std::map<std::string, Crowd> crowds_;
  std::vector<std::string> findings_;
};

}  // namespace muster::planner
