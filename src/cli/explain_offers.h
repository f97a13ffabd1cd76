// Which kinds of machines a need could be served by, what they cost in its eyes, and why those that cost less than the
// one that serves it do not.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "contract/shard.h"
#include "model/machine.h"
#include "model/money.h"
#include "model/need.h"

namespace muster::cli {

// Machines of one instance type and capacity type, which cost the same.
struct Offer {
  std::string type;
  model::CapacityType capacity = model::CapacityType::kUnspecified;
  model::Money price;
  bool pinned = false;   // it may be interrupted, and the need can never bear that
  model::Money cost;     // to the need: the price and what an interruption would cost it
  int64_t free = 0;      // not bought, nothing in their way
  int64_t idle = 0;      // bought, and nobody's
  int64_t serving = 0;   // those of this very need
  int64_t taken = 0;     // those of other needs, or between two states
  int64_t on_hold = 0;   // they could be bought, but for a hold
  std::string hold;      // why, of the first
  int64_t unfit = 0;     // something stands in their way
  std::string obstacle;  // what, of the first
  int64_t for_all = 0;   // so many would cover the whole need alone; 0: however many would not
};

// By cost, then type.
std::vector<Offer> OffersFor(const model::Need& need, const std::vector<contract::MachineView>& machines);

// The cheapest machines of one kind that would cover what a need is short of, whether or not they can be had now.
struct ResidualCost {
  std::string type;
  model::CapacityType capacity = model::CapacityType::kUnspecified;
  int64_t count = 0;
  model::Money price;  // of all of them, an hour
};
// Nothing for a need that is not short, and where no machine that is known could serve it.
std::optional<ResidualCost> CheapestFor(const contract::NeedView& need,
                                        const std::vector<contract::MachineView>& machines);
// The first machine of each kind that CheapestFor tells apart for these needs: the answers are the same as of all.
std::vector<contract::MachineView> OneOfEachKind(const std::vector<contract::MachineView>& machines,
                                                 const std::vector<contract::NeedView>& needs);
// "3 more large (on-demand) would cover that for $0.57/h"
std::string ResidualText(const ResidualCost& cost);

// "small (on-demand) at $0.05/h"
std::string OfferName(const Offer& offer);
// What keeps the need from this offer, or how it compares: one sentence without its offer's name.
std::string OfferVerdict(const Offer& offer);

}  // namespace muster::cli
