#include "model/text_reader.h"

#include <gtest/gtest.h>

#include <functional>

#include "model/yaml_reader.h"

namespace muster::model {
namespace {

using Reading = std::function<void(TextReader&)>;

std::string ErrorOf(std::string_view yaml, const Reading& read) {
  const auto value = ReadYamlDocument(yaml, "f.yaml");
  if (!value) return value.error().message();
  TextErrors errors("f.yaml");
  TextReader root(errors, *value);
  read(root);
  return errors.ok() ? "ok" : errors.status().message();
}

template <class T>
Reading Into(T& out) {
  return [&out](TextReader& root) { root.Field("x").Read(out); };
}

TEST(TextReader, ReadsEveryType) {
  std::string text;
  bool flag = false;
  int32_t small = 0;
  int64_t large = 0;
  uint64_t unsigned_value = 0;
  Duration duration{};
  WallTime time;
  Resources resources;
  std::vector<std::string> list;
  std::map<std::string, std::string> map;
  EXPECT_EQ(ErrorOf("text: no\nflag: true\nsmall: -5\nlarge: -9223372036854775808\nunsigned: 18446744073709551615\n"
                    "duration: 1h30m\ntime: 5\nresources: {cpu: 1500m, memory: '2'}\nlist: [a, 1, '']\n"
                    "map: {b: true, a: 010}\n",
                    [&](TextReader& root) {
                      root.Field("text").Read(text);
                      root.Field("flag").Read(flag);
                      root.Field("small").Read(small);
                      root.Field("large").Read(large);
                      root.Field("unsigned").Read(unsigned_value);
                      root.Field("duration").Read(duration);
                      root.Field("time").Read(time);
                      root.Field("resources").Read(resources);
                      root.Field("list").Read(list);
                      root.Field("map").Read(map);
                      root.RefuseUnknown();
                    }),
            "ok");
  EXPECT_EQ(text, "no");
  EXPECT_TRUE(flag);
  EXPECT_EQ(small, -5);
  EXPECT_EQ(large, INT64_MIN);
  EXPECT_EQ(unsigned_value, UINT64_MAX);
  EXPECT_EQ(duration, Duration(90min));
  EXPECT_EQ(time, WallTime(5s));
  EXPECT_EQ(resources, (Resources{{"cpu", 1500}, {"memory", 2000}}));
  EXPECT_EQ(list, (std::vector<std::string>{"a", "1", ""}));
  EXPECT_EQ(map, (std::map<std::string, std::string>{{"a", "010"}, {"b", "true"}}));
}

TEST(TextReader, AbsentAndNullLeaveTheValueAlone) {
  int32_t number = 7;
  std::vector<std::string> list = {"kept"};
  Resources resources{{"cpu", 1}};
  EXPECT_EQ(ErrorOf("number:\nlist: ~\n",
                    [&](TextReader& root) {
                      root.Field("number").Read(number);
                      root.Field("list").Read(list);
                      root.Field("resources").Read(resources);
                      EXPECT_FALSE(root.Field("list").present());
                      EXPECT_TRUE(root.Field("list").List().empty());
                      EXPECT_TRUE(root.Field("resources").Field("cpu").Entries().empty());
                      root.RefuseUnknown();
                    }),
            "ok");
  EXPECT_EQ(number, 7);
  EXPECT_EQ(list, std::vector<std::string>{"kept"});
  EXPECT_EQ(resources, (Resources{{"cpu", 1}}));
}

TEST(TextReader, WrongLeavesTheValueAlone) {
  std::vector<std::string> list = {"kept"};
  EXPECT_EQ(ErrorOf("x: [a, [b]]", Into(list)), "f.yaml:1:8: x[1]: expected a single value but found a list");
  EXPECT_EQ(list, std::vector<std::string>{"kept"});
}

TEST(TextReader, SaysWhatIsWrong) {
  std::string text;
  bool flag = false;
  int32_t small = 0;
  int64_t large = 0;
  uint64_t natural = 0;
  Duration duration{};
  WallTime time;
  Resources resources;
  std::vector<std::string> list;
  std::map<std::string, std::string> map;
  const Reading required = [](TextReader& root) { root.Field("a").Field("b.c").Require(); };
  struct Case {
    std::string yaml;
    Reading read;
    std::string message;
  };
  const Case cases[] = {
      {"x: {a: 1}", Into(text), "f.yaml:1:4: x: expected a single value but found a map"},
      {"[x]", Into(text), "f.yaml:1:1: expected a map but found a list"},
      {"word", Into(text), R"(f.yaml:1:1: expected a map but found "word")"},
      {"x: yes", Into(flag), R"(f.yaml:1:4: x: expected true or false but found "yes")"},
      {"x: 'true'", Into(flag), "f.yaml:1:4: x: expected true or false but found a string; write true without quotes"},
      {"x: four", Into(small), R"(f.yaml:1:4: x: expected a whole number but found "four")"},
      {"x: 1.0", Into(small), R"(f.yaml:1:4: x: expected a whole number but found "1.0")"},
      {"x: '4'", Into(small), "f.yaml:1:4: x: expected a whole number but found a string; write 4 without quotes"},
      {"x: 010", Into(small), R"(f.yaml:1:4: x: "010" is ambiguous; write the number without leading zeros)"},
      {"x:\n- 1", Into(small), "f.yaml:2:1: x: expected a single value but found a list"},
      {"x: 2147483648", Into(small),
       R"(f.yaml:1:4: x: "2147483648" is out of range; expected a whole number from -2147483648 to 2147483647)"},
      {"x: 99999999999999999999", Into(large),
       R"(f.yaml:1:4: x: "99999999999999999999" is out of range; expected a whole number from -9223372036854775808 to )"
       R"(9223372036854775807)"},
      {"x: -1", Into(natural),
       R"(f.yaml:1:4: x: "-1" is out of range; expected a whole number from 0 to 18446744073709551615)"},
      {"x: 90", Into(duration), R"(f.yaml:1:4: x: duration "90": the unit is missing; did you mean 90s?)"},
      {"x: noon", Into(time),
       R"(f.yaml:1:4: x: time "noon": write it as 2026-01-31T08:00:00Z or as whole seconds since 1970)"},
      {"x: 4", Into(resources), R"(f.yaml:1:4: x: expected a map but found "4")"},
      {"x:\n  cpu:\n", Into(resources), "f.yaml:2:3: x.cpu: expected a single value but found null"},
      {"x:\n  nvidia.com/gpu: [1]\n", Into(resources),
       R"(f.yaml:2:19: x["nvidia.com/gpu"]: expected a single value but found a list)"},
      {"x: a", Into(list), R"(f.yaml:1:4: x: expected a list but found "a")"},
      {"x: {a: 1}", Into(list), "f.yaml:1:4: x: expected a list but found a map"},
      {"x: {a: b, c: {}}", Into(map), "f.yaml:1:14: x.c: expected a single value but found a map"},
      {"x: [a]", Into(map), "f.yaml:1:4: x: expected a map but found a list"},
      {"z: 1\na: {c: 1}\n", required, R"(f.yaml:2:4: a["b.c"]: this field is required)"},
      {"z: 1\na:\n", required, R"(f.yaml:2:1: a["b.c"]: this field is required)"},
      {"a:\n  bbc: 1\n  b,c: 2\n", required,
       R"(f.yaml:2:3: a["b.c"]: this field is required; is "bbc" meant to be it?)"},
      {"z: 1\n", required, R"(f.yaml:1:1: a["b.c"]: this field is required)"},
  };
  for (const Case& c : cases) EXPECT_EQ(ErrorOf(c.yaml, c.read), c.message) << c.yaml;
}

TEST(TextReader, UnknownFieldsAreErrorsWithAHint) {
  const Reading read = [](TextReader& root) {
    std::string text;
    for (TextReader& item : root.Field("machines").List()) {
      for (const char* key : {"id", "price", "zone"}) item.Field(key).Read(text);
      item.RefuseUnknown();
    }
    root.RefuseUnknown();
  };
  EXPECT_EQ(ErrorOf("machines:\n- id: a\n- id: b\n  prise: 3\n", read),
            R"(f.yaml:4:3: machines[1].prise: unknown field; did you mean "price"?)");
  EXPECT_EQ(ErrorOf("machines:\n- id: a\n  colour: red\n", read),
            "f.yaml:3:3: machines[0].colour: unknown field; known here: id, price, zone");
  EXPECT_EQ(ErrorOf("machines: []\na/b: 1\n", read), R"(f.yaml:2:1: ["a/b"]: unknown field; known here: machines)");
}

TEST(TextReader, CopiesShareWhatWasAskedFor) {
  EXPECT_EQ(ErrorOf("a: 1",
                    [](TextReader& root) {
                      TextReader copy = root;
                      copy.Field("a");
                      root.RefuseUnknown();
                    }),
            "ok");
}

TEST(TextReader, TheFirstErrorWinsAndStopsTheRest) {
  int32_t a = 0;
  int32_t b = 0;
  EXPECT_EQ(ErrorOf("a: x\nb: 2\nlist: [1]\n",
                    [&](TextReader& root) {
                      root.Field("a").Read(a);
                      root.Field("b").Read(b);
                      EXPECT_TRUE(root.Field("list").List().empty());
                      root.Field("c").Require();
                      root.RefuseUnknown();
                    }),
            R"(f.yaml:1:4: a: expected a whole number but found "x")");
  EXPECT_EQ(b, 0);
}

TEST(TextReader, PathsReachDeep) {
  EXPECT_EQ(ErrorOf("clusters:\n- {}\n- {}\n- needs:\n  - minUnit:\n      cpu: 1\n      memory: [4]\n",
                    [](TextReader& root) {
                      Resources resources;
                      for (TextReader& cluster : root.Field("clusters").List()) {
                        for (TextReader& need : cluster.Field("needs").List()) need.Field("minUnit").Read(resources);
                      }
                    }),
            "f.yaml:7:15: clusters[2].needs[0].minUnit.memory: expected a single value but found a list");
}

}  // namespace
}  // namespace muster::model
