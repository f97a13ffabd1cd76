#include "contract/tables.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>

#include "contract/coordinator.h"

namespace muster::contract {
namespace {

constexpr Single<int64_t> kEpoch{"epoch"};
constexpr Table<std::string, std::pair<int32_t, bool>> kRepairs{"repair/"};
constexpr Table<std::pair<std::string, std::string>, int64_t> kMarks{"mark/"};
constexpr KeySet<std::string> kForgotten{.prefix = "forgotten/", .value = ""};
constexpr KeySet<Domain> kDomains{.prefix = "domain/", .value = "\x01"};

TEST(Tables, KeysAreNamesAndPrefixesAndValuesAreCodecBytes) {
  EXPECT_EQ(kEpoch.Put(7).key, "epoch");
  EXPECT_EQ(kEpoch.Put(7).value, codec::ToBytes(int64_t{7}));
  EXPECT_EQ(kEpoch.Erase().key, "epoch");
  EXPECT_EQ(kEpoch.Erase().value, std::nullopt);
  EXPECT_EQ(kRepairs.Put("m-1", {2, true}).key, "repair/m-1") << "text is not encoded";
  EXPECT_EQ(kRepairs.Put("m-1", {2, true}).value, codec::ToBytes(std::pair(int32_t{2}, true)));
  EXPECT_EQ(kMarks.Erase({"s", "m"}).key, "mark/" + codec::ToBytes(std::pair<std::string, std::string>("s", "m")));
  EXPECT_EQ(kForgotten.Put("m-1").value, "");
  EXPECT_EQ(kDomains.Put({"zone", "a"}).key, "domain/" + codec::ToBytes(Domain{"zone", "a"}));
  EXPECT_EQ(kDomains.Put({"zone", "a"}).value, "\x01");
  EXPECT_EQ(kMarks.KeyOf(kMarks.RowKey({"s", "m"})), (std::pair<std::string, std::string>("s", "m")));
  EXPECT_EQ(kMarks.KeyOf("mark/\xff"), std::nullopt);
  EXPECT_EQ(kMarks.KeyOf("epoch"), std::nullopt);
}

class RowReaderTest : public ::testing::Test {
 protected:
  RowReaderTest() {
    reader_.Format(3);
    reader_.On(kEpoch, [this](int64_t epoch) { epoch_ = epoch; });
    reader_.On(kRepairs, [this](std::string id, std::pair<int32_t, bool> repair) {
      repairs_.emplace(std::move(id), repair.first);
    });
    reader_.On(kMarks, [this](const std::pair<std::string, std::string>& whose, int64_t mark) {
      marks_.emplace(whose, mark);
      return mark > 0;
    });
    reader_.On(kDomains, [this](Domain domain) { domains_.insert(std::move(domain)); });
  }
  static void Store(Recovered& rows, const Write& write) { rows[write.key] = *write.value; }

  RowReader reader_{"clerk", "ask for help"};
  int64_t epoch_ = 0;
  std::map<std::string, int32_t> repairs_;
  std::map<std::pair<std::string, std::string>, int64_t> marks_;
  std::set<Domain> domains_;
};

TEST_F(RowReaderTest, GivesBackWhatWasStored) {
  Recovered rows;
  Store(rows, kFormatRow.Put(3));
  Store(rows, kEpoch.Put(7));
  Store(rows, kRepairs.Put("m-1", {2, true}));
  Store(rows, kMarks.Put({"s", "m"}, 5));
  Store(rows, kDomains.Put({"zone", "a"}));
  ASSERT_EQ(reader_.Read(rows).ToString(), "OK");
  EXPECT_EQ(epoch_, 7);
  EXPECT_EQ(repairs_, (std::map<std::string, int32_t>{{"m-1", 2}}));
  EXPECT_EQ(marks_.at({"s", "m"}), 5);
  EXPECT_EQ(domains_, (std::set<Domain>{{"zone", "a"}}));
}

TEST_F(RowReaderTest, NamesARowThatCannotBeRead) {
  const auto problem = [&](const Recovered& rows) { return reader_.Read(rows).ToString(); };
  EXPECT_EQ(problem({{"epoch", "\xff"}}), "DATA_LOSS: row epoch of the clerk's state cannot be read; ask for help");
  EXPECT_EQ(problem({{"epochs", codec::ToBytes(int64_t{1})}}),
            "DATA_LOSS: row epochs of the clerk's state cannot be read; ask for help")
      << "the name of a single row is no prefix";
  EXPECT_EQ(reader_.Read({{"mark/x", codec::ToBytes(int64_t{1})}}).code(), Code::kDataLoss) << "its key";
  Recovered rows;
  Store(rows, kMarks.Put({"s", "m"}, -1));
  EXPECT_EQ(reader_.Read(rows).code(), Code::kDataLoss) << "refused by its user";
}

TEST_F(RowReaderTest, RefusesTheStateOfANewerBuild) {
  const std::string newer = codec::ToBytes(uint64_t{4});
  EXPECT_EQ(reader_.Read({{"format", newer}}).ToString(),
            "FAILED_PRECONDITION: the clerk's state has format 4, this build knows up to 3; run the newer build");
  EXPECT_EQ(reader_.Read({{"a new table/x", ""}, {"format", newer}}).code(), Code::kFailedPrecondition)
      << "its rows need not be known";
  EXPECT_EQ(RowReader("clerk", "").Read({{"format", codec::ToBytes(uint64_t{1})}}).code(), Code::kDataLoss)
      << "a core without a format knows no such row";
}

TEST(StoredTimes, KeepAgesAndAreNeverInTheFuture) {
  const Now before{.mono = MonoTime(100s), .wall = WallTime(5000s)};
  const WallTime stored = StoredTime(MonoTime(40s), before);
  EXPECT_EQ(stored, WallTime(4940s));
  // Another life: its monotonic clock began elsewhere.
  EXPECT_EQ(TimeFromStored(stored, {.mono = MonoTime(200s), .wall = WallTime(5010s)}), MonoTime(130s));
  EXPECT_EQ(TimeFromStored(stored, {.mono = MonoTime(200s), .wall = WallTime(1000s)}), MonoTime(200s))
      << "the wall clock was set back";
  EXPECT_EQ(StoredTime(std::optional<MonoTime>(), before), std::nullopt);
  EXPECT_EQ(TimeFromStored(std::optional(stored), before), MonoTime(40s));
}

}  // namespace
}  // namespace muster::contract
