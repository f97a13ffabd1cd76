#include "model/reason.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace muster::model {
namespace {

// Dashboards rely on these. A name may be added, never changed.
TEST(Reason, NamesAreStable) {
  std::vector<std::string_view> names;
  for (const ReasonRow& row : ReasonTable()) names.push_back(row.name);
  EXPECT_EQ(names, (std::vector<std::string_view>{
                       "none",           "phase1.bootstrap", "phase1.provision", "phase2.inversion",
                       "phase2.surplus", "phase2.reclaim",   "phase3.reclaim",   "phase3.release",
                       "short.priority", "short.supply",     "short.topology",   "short.preemption",
                       "short.session",  "short.draining",   "hold.claimed",     "hold.transition",
                       "hold.failed",    "hold.surplus",     "hold.gate",        "hold.session",
                       "hold.limit",     "hold.release",     "hold.permanent",   "hold.pledge",
                       "hold.unneeded",  "repair.policy",    "repair.order",     "note.adopted",
                       "note.vanished",  "note.not-owned",   "note.forgotten",   "note.edge",
                       "note.record",    "note.provider",    "note.rollup-held", "note.rollup-refused",
                       "note.mode",      "phase2.instead",   "short.stock",      "short.paused",
                       "short.held",     "short.resource",   "short.budget",     "hold.stock",
                       "hold.paused",    "hold.gang",        "note.hold",        "hold.missing",
                       "hold.fenced",    "hold.refused",     "note.returned",    "note.losses",
                       "note.halted",    "note.epoch"}));
}

TEST(Reason, EveryValueHasItsOwnRow) {
  std::set<std::string_view> names;
  std::set<std::string_view> sentences;
  size_t number = 0;
  for (const ReasonRow& row : ReasonTable()) {
    EXPECT_EQ(static_cast<size_t>(row.reason), number++);
    EXPECT_FALSE(row.sentence.empty()) << row.name;
    EXPECT_EQ(ReasonName(row.reason), row.name);
    EXPECT_EQ(ReasonSentence(row.reason), row.sentence);
    EXPECT_EQ(FindReason(row.name), row.reason);
    names.insert(row.name);
    sentences.insert(row.sentence);
  }
  EXPECT_EQ(number, static_cast<size_t>(Reason::kEpochFound) + 1);
  EXPECT_EQ(names.size(), number);
  EXPECT_EQ(sentences.size(), number);
}

TEST(Reason, NumbersAndNamesOutsideTheTable) {
  const auto beyond = static_cast<Reason>(ReasonTable().size());
  EXPECT_EQ(ReasonName(beyond), "invalid");
  EXPECT_EQ(ReasonSentence(beyond), "not a reason this version knows");
  EXPECT_EQ(FindReason("invalid"), std::nullopt);
  EXPECT_EQ(FindReason(""), std::nullopt);
}

}  // namespace
}  // namespace muster::model
