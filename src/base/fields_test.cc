#include "base/fields.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "base/codec.h"

namespace muster {
namespace {

struct Whole {
  int64_t amount = 0;
  std::optional<std::string> name;
  std::map<std::string, std::vector<int>> lists;
  std::variant<std::monostate, int64_t> choice;
  MUSTER_FIELDS(Whole, amount, name, lists, choice)
};
static_assert(internal::NamesEveryMember<Whole>());
static_assert(internal::NamedOnce<Whole>());

struct Empty {
  MUSTER_FIELDS(Empty)
};
static_assert(internal::NamesEveryMember<Empty>());

struct Forgetful {
  int64_t amount = 0;
  std::string name;
  MUSTER_FIELDS(Forgetful, amount)
};
static_assert(!internal::NamesEveryMember<Forgetful>());

struct Twice {
  int64_t amount = 0;
  std::string name;
  MUSTER_FIELDS(Twice, amount, amount)
};
static_assert(!internal::NamedOnce<Twice>());

struct Derives {
  std::vector<int> items;
  int sum = 0;
  MUSTER_SOME_FIELDS(Derives, items)
};
static_assert(internal::NamesEveryMember<Derives>());

class Private {
 public:
  explicit Private(int64_t amount) : amount_(amount) {}
  MUSTER_FIELDS(Private, amount_)

 private:
  int64_t amount_;
};

TEST(Fields, AreVisitedInTheirOrderUnderTheirNames) {
  const Whole whole{.amount = 3, .name = "x", .lists = {}, .choice = {}};
  std::vector<std::string> names;
  ForEachField<Whole>(whole, [&](std::string_view name, const auto&) { names.emplace_back(name); });
  EXPECT_EQ(names, (std::vector<std::string>{"amount", "name", "lists", "choice"}));
  EXPECT_EQ(codec::Describe(whole), "Whole{amount=3, name=x, lists=[], choice=none}");
}

TEST(Fields, AreATuple) {
  static_assert(std::tuple_size_v<decltype(Whole::Fields())> == 4);
  EXPECT_EQ(std::get<1>(Whole::Fields()).name, "name");
}

TEST(Fields, ThoseOfAClassLoseTheirUnderscore) { EXPECT_EQ(codec::Describe(Private(7)), "Private{amount=7}"); }

TEST(Fields, AStructMayHaveNone) { EXPECT_EQ(codec::ToBytes(Empty{}), ""); }

}  // namespace
}  // namespace muster
