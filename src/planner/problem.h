// Problem: a request in dense integers, as the packing reads it. compile.h makes it.
//
// A **kind** is a set of units that no rule tells apart. A **choice** is something to buy; choices whose topology
// labels agree, as far as any unit asks for them, form a **cell**. Rules between units on one node become limits: while
// a unit with Limit{s, m} is on a node, at most m units that match selector s are on it. Exclusion, spread over hosts
// and host ports are all of that form. Rules over larger domains (zones) are carried out before packing, by giving
// units a cell (domains.h): a **lot** is a kind, a cell or none, and a count. Lots of equal request, mask and cell form
// a **group**.
//
// Amounts are whole numbers of each dimension's grain, the greatest common divisor of the requests: a sum of requests
// fits a capacity exactly if it fits the capacity's whole grains.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster::planner {

inline constexpr uint32_t kAnyCell = std::numeric_limits<uint32_t>::max();
inline constexpr std::string_view kHostnameKey = "kubernetes.io/hostname";
inline constexpr uint32_t kNoKey = std::numeric_limits<uint32_t>::max();
// A capacity that no sum of requests reaches.
inline constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max() / 4;

// At most `most` units that match `selector` on the node (or in the domain) while the holder is there.
struct Limit {
  uint32_t selector = 0;
  int64_t most = 0;
  bool both_ways = true;  // false: a scheduler lets later units break it (spread); a plan does not

  auto operator<=>(const Limit&) const = default;
};

enum class DomainRuleKind : uint8_t { kSpread, kLimit, kNear };

// A rule over the domains of one topology key.
struct DomainRule {
  DomainRuleKind kind = DomainRuleKind::kSpread;
  uint32_t key = 0;
  uint32_t selector = 0;
  int64_t most = 0;         // kSpread: the skew; kLimit: as Limit
  uint32_t cells = 0;       // kSpread: row of Problem::cell_sets, the cells whose domains count
  uint32_t classes = 0;     // kSpread: row of Problem::class_sets, the node classes whose units count
  int64_t min_domains = 1;  // kSpread: with fewer domains the least count is taken as 0

  auto operator<=>(const DomainRule&) const = default;
};

struct DenseKind {
  uint32_t request = 0;           // row of Problem::requests
  uint32_t mask = 0;              // of node classes
  std::vector<uint32_t> matches;  // selectors of limits, of `near` and of domain rules that count its units; sorted
  std::vector<Limit> limits;      // on its node
  std::vector<uint32_t> near;     // each must match a unit of the node, itself not counted
  std::vector<DomainRule> rules;  // over larger domains
  std::vector<uint32_t> units;    // positions in the list of units to place
  bool bundle = false;            // all units go to one node together: the request is that of all of them

  int64_t count() const { return bundle ? 1 : static_cast<int64_t>(units.size()); }
};

struct Lot {
  uint32_t kind = 0;
  uint32_t cell = kAnyCell;
  int64_t count = 0;
};

struct Choice {
  uint32_t candidate = 0;  // of the request
  uint32_t node_class = 0;
  int64_t price = 0;
};

struct Cell {
  std::vector<std::string> values;  // of each topology key
  std::vector<uint32_t> domains;    // id of the value for each key; kNoKey: the label is absent
  uint32_t first_choice = 0;        // choices of a cell follow each other, the cheapest first
  uint32_t end_choice = 0;
};

// What a node holds of one selector, and the least limit that a unit on it sets.
struct Tally {
  uint32_t selector = 0;
  int64_t count = 0;
  int64_t most = kUnlimited;
};

// A node that is there already.
struct FixedNode {
  uint32_t node = 0;  // in World::nodes
  uint32_t cell = 0;
  uint32_t node_class = 0;
  std::vector<int64_t> free;
  std::vector<Tally> tallies;      // of the units that stay on it
  std::vector<Tally> terminating;  // of those, the ones that spread does not count
};

// A unit that stays bars units that match `selector` from its domain.
struct FixedDomainLimit {
  uint32_t key = 0;
  uint32_t cell = 0;
  Limit limit;
};

struct Problem {
  std::vector<std::string> dimensions;
  std::vector<int64_t> grains;
  std::vector<std::string> topology_keys;  // hostname is not among them
  std::vector<std::vector<int64_t>> requests;
  std::vector<std::vector<bool>> masks;  // mask -> node class -> allowed
  std::vector<Choice> choices;
  std::vector<int64_t> capacities;  // row of dimensions for each choice
  std::vector<Cell> cells;
  std::vector<DenseKind> kinds;
  std::vector<FixedNode> fixed;
  std::vector<std::vector<bool>> cell_sets;
  std::vector<std::vector<bool>> class_sets;
  std::vector<std::vector<bool>> classes_in_cell;
  // Units that stay where they are: selector -> cell -> count.
  std::vector<std::vector<int64_t>> fixed_counts;
  std::vector<FixedDomainLimit> fixed_domain_limits;
  uint32_t selectors = 0;

  // Of a problem in which units that stay are protected too (compile.h).
  std::vector<bool> domain_selectors;     // by selector: a rule of some unit over larger domains has it
  std::vector<DomainRule> staying_rules;  // spread over larger domains of units that stay
  std::vector<Limit> staying_limits;      // their spread over hosts
  std::vector<uint32_t> looks;            // by node class: classes of equal labels and taints share a look

  size_t dims() const { return dimensions.size(); }
  std::span<const int64_t> CapacityOf(uint32_t choice) const {
    return std::span(capacities).subspan(choice * dims(), dims());
  }
};

}  // namespace muster::planner
