#include "model/requirement.h"

#include <gtest/gtest.h>

#include <array>

namespace muster::model {
namespace {

using enum Operator;
using Values = std::vector<std::string>;

constexpr std::optional<std::string_view> kAbsent;

TEST(Requirement, MatchesByOperatorAndPresence) {
  struct Row {
    Operator op;
    bool absent;
    bool listed;      // the attribute is one of the values
    bool not_listed;  // it is another
    bool no_values;   // the attribute is there and the requirement has no values
  };
  for (const Row& row : std::to_array<Row>({{kIn, false, true, false, false},
                                            {kNotIn, true, false, true, true},
                                            {kExists, false, true, true, true},
                                            {kDoesNotExist, true, false, false, false},
                                            {kSame, false, true, false, true},
                                            {kGt, false, false, false, false},
                                            {kLt, false, false, false, false},
                                            {kUnspecified, false, false, false, false},
                                            {static_cast<Operator>(99), false, false, false, false}})) {
    SCOPED_TRACE(OperatorName(row.op));
    const Requirement requirement{"zone", row.op, {"a", "b"}};
    EXPECT_EQ(Matches(requirement, kAbsent), row.absent);
    EXPECT_EQ(Matches(requirement, "a"), row.listed);
    EXPECT_EQ(Matches(requirement, "b"), row.listed);
    EXPECT_EQ(Matches(requirement, "c"), row.not_listed);
    EXPECT_EQ(Matches(requirement, ""), row.not_listed);
    EXPECT_EQ(Matches({"zone", row.op, {}}, "a"), row.no_values);
  }
  EXPECT_TRUE(Matches({"zone", kIn, {""}}, ""));
  EXPECT_FALSE(Matches({"zone", kIn, {""}}, kAbsent));
}

TEST(Requirement, GtAndLtCompareIntegers) {
  struct Row {
    std::string_view attribute;
    std::string bound;
    bool greater;
    bool less;
  };
  for (const Row& row : std::to_array<Row>({{"6", "5", true, false},
                                            {"5", "5", false, false},
                                            {"4", "5", false, true},
                                            {"10", "9", true, false},  // numbers, not text
                                            {"-6", "-5", false, true},
                                            {"-4", "-5", true, false},
                                            {"0", "-1", true, false},
                                            {"-0", "0", false, false},
                                            {"+6", "5", true, false},
                                            {"006", "5", true, false},
                                            {"9223372036854775807", "9223372036854775806", true, false},
                                            {"-9223372036854775808", "-9223372036854775807", false, true},
                                            {"9223372036854775808", "5", false, false},
                                            {"-9223372036854775809", "5", false, false},
                                            {"5", "9223372036854775808", false, false},
                                            {"5.5", "5", false, false},
                                            {"6 ", "5", false, false},
                                            {" 6", "5", false, false},
                                            {"", "5", false, false},
                                            {"+", "5", false, false},
                                            {"+-6", "5", false, false},
                                            {"0x10", "5", false, false},
                                            {"1e3", "5", false, false},
                                            {"many", "5", false, false},
                                            {"6", "", false, false},
                                            {"6", "few", false, false}})) {
    EXPECT_EQ(Matches({"generation", kGt, {row.bound}}, row.attribute), row.greater)
        << row.attribute << " " << row.bound;
    EXPECT_EQ(Matches({"generation", kLt, {row.bound}}, row.attribute), row.less) << row.attribute << " " << row.bound;
  }
  EXPECT_FALSE(Matches({"generation", kGt, {"1", "2"}}, "3"));
  EXPECT_FALSE(Matches({"generation", kLt, {}}, "3"));
}

TEST(Requirement, NamesOfOperators) {
  for (const Operator op : {kIn, kNotIn, kExists, kDoesNotExist, kSame, kGt, kLt}) {
    EXPECT_EQ(ParseOperator(OperatorName(op)), op);
  }
  EXPECT_EQ(OperatorName(kUnspecified), "Unspecified");
  EXPECT_EQ(OperatorName(static_cast<Operator>(99)), "invalid");
  for (const std::string_view name : {"", "in", "Unspecified", "invalid", "Equals"}) {
    const auto op = ParseOperator(name);
    ASSERT_FALSE(op) << name;
    EXPECT_NE(op.error().message().find("use one of In, NotIn, Exists, DoesNotExist, Same, Gt, Lt"), std::string::npos);
  }
}

TEST(Requirement, ValidateNamesThePart) {
  struct Row {
    Requirement requirement;
    std::string_view message;
  };
  for (const Row& row : std::vector<Row>{{{"zone", kIn, {"a"}}, ""},
                                         {{"zone", kNotIn, {"a", "b"}}, ""},
                                         {{"gpu", kExists, {}}, ""},
                                         {{"gpu", kDoesNotExist, {}}, ""},
                                         {{"rack", kSame, {}}, ""},
                                         {{"rack", kSame, {"r1"}}, ""},
                                         {{"generation", kGt, {"-5"}}, ""},
                                         {{"generation", kLt, {"5"}}, ""},
                                         {{"", kIn, {"a"}}, "key: "},
                                         {{"zone", kUnspecified, {}}, "operator: "},
                                         {{"zone", static_cast<Operator>(99), {}}, "operator: "},
                                         {{"zone", kIn, {}}, "values: In needs at least one"},
                                         {{"zone", kNotIn, {}}, "values: NotIn needs at least one"},
                                         {{"gpu", kExists, {"a"}}, "values: Exists takes none"},
                                         {{"gpu", kDoesNotExist, {"a"}}, "values: DoesNotExist takes none"},
                                         {{"generation", kGt, {}}, "values: Gt takes exactly one, not 0"},
                                         {{"generation", kLt, {"1", "2"}}, "values: Lt takes exactly one, not 2"},
                                         {{"generation", kGt, {"many"}}, "values[0]: \"many\" is not a 64-bit integer"},
                                         {{"generation", kGt, {"9223372036854775808"}}, "values[0]: "}}) {
    const Status status = Validate(row.requirement);
    EXPECT_EQ(status.ok(), row.message.empty()) << status.ToString();
    EXPECT_TRUE(status.message().starts_with(row.message)) << status.ToString();
  }
}

TEST(Requirement, ToString) {
  EXPECT_EQ(ToString(Requirement{"zone", kIn, {"a", "b"}}), "zone In [a, b]");
  EXPECT_EQ(ToString(Requirement{"gpu", kExists, {}}), "gpu Exists");
}

TEST(Spread, ValidateNamesThePart) {
  EXPECT_TRUE(Validate(Spread{.topology_key = "zone"}).ok());
  EXPECT_TRUE(Validate(Spread{.topology_key = "zone", .max_skew = -1}).ok());
  EXPECT_TRUE(Validate(Spread{}).message().starts_with("topologyKey: "));
  for (const auto when : {WhenUnsatisfiable::kUnspecified, static_cast<WhenUnsatisfiable>(9)}) {
    const Status status = Validate(Spread{.topology_key = "zone", .when = when});
    EXPECT_TRUE(status.message().starts_with("whenUnsatisfiable: ")) << status.ToString();
  }
}

TEST(Spread, NamesOfWhen) {
  for (const auto when : {WhenUnsatisfiable::kDoNotSchedule, WhenUnsatisfiable::kScheduleAnyway}) {
    EXPECT_EQ(ParseWhenUnsatisfiable(WhenUnsatisfiableName(when)), when);
  }
  EXPECT_EQ(WhenUnsatisfiableName(WhenUnsatisfiable::kUnspecified), "Unspecified");
  EXPECT_FALSE(ParseWhenUnsatisfiable("Unspecified"));
}

}  // namespace
}  // namespace muster::model
