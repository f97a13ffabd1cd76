#include "kube/item_stream.h"

#include <gtest/gtest.h>

#include "kube/dump_for_test.h"

namespace muster::kube {
namespace {

struct Seen {
  std::vector<std::string> names;  // metadata.name of every object
  std::vector<std::string> wheres;
  std::vector<std::string> list_kinds;
};

Result<Seen> ReadAll(std::string text, size_t piece = 1u << 16, const StreamLimits& limits = {}) {
  Seen seen;
  const Status status = ReadItems(
      BytesOf(std::move(text), piece), "d.json",
      [&](const Item& item, Item::Place place, const ItemPlace& where) -> Status {
        seen.names.emplace_back(item.Root(place)["metadata"]["name"].Text());
        seen.wheres.push_back(where.where);
        seen.list_kinds.emplace_back(where.list_kind);
        return {};
      },
      {}, limits);
  if (!status.ok()) return std::unexpected(status);
  return seen;
}

std::string ErrorOf(std::string text, const StreamLimits& limits = {}) {
  const auto seen = ReadAll(std::move(text), 1u << 16, limits);
  return seen ? "ok" : seen.error().message();
}

TEST(ItemStream, ListsObjectsAndSeveralDocuments) {
  const std::string text =
      "{\"kind\": \"PodList\", \"items\": [\n  {\"metadata\": {\"name\": \"a\"}},\n"
      "  {\"metadata\": {\"name\": \"b\"}}]}\n{\"kind\": \"Node\", \"metadata\": {\"name\": \"c\"}}";
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{1} << 16}) {
    const auto seen = ReadAll(text, piece);
    ASSERT_TRUE(seen) << seen.error().message();
    EXPECT_EQ(seen->names, (std::vector<std::string>{"a", "b", "c"}));
    EXPECT_EQ(seen->wheres, (std::vector<std::string>{"d.json:2:3: items[0]", "d.json:3:3: items[1]", "d.json:4:1"}));
    EXPECT_EQ(seen->list_kinds, (std::vector<std::string>{"PodList", "PodList", ""}));
  }
}

TEST(ItemStream, SkipsBallastButNotLabelsOfTheSameName) {
  const std::string text = R"({"items":[{"metadata":{"managedFields":[{"x":1}],"name":"a","labels":{"env":"prod"}},)"
                           R"("env":[{"name":"A"}],"nothing":null}]})";
  int seen = 0;
  const Status status =
      ReadItems(BytesOf(text), "d.json", [&](const Item& item, Item::Place place, const ItemPlace&) -> Status {
        ++seen;
        const ItemView root = item.Root(place);
        EXPECT_FALSE(root["metadata"]["managedFields"].present());
        EXPECT_FALSE(root["env"].present());
        EXPECT_FALSE(root["nothing"].present());
        EXPECT_EQ(root["metadata"]["labels"]["env"].Text(), "prod");
        return {};
      });
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(seen, 1);
}

TEST(ItemStream, AnErrorSaysWhere) {
  EXPECT_EQ(ErrorOf(""), "d.json: the file is empty");
  EXPECT_EQ(ErrorOf("  \n "), "d.json: the file is empty");
  EXPECT_EQ(ErrorOf("items: []"), "d.json:1:1: expected { : a dump is JSON, as kubectl get -o json prints it");
  EXPECT_EQ(ErrorOf(R"({"items":[{"a":1},)"),
            "d.json:1:19: items[1]: the text ends here, in the middle of an object: the dump is cut off");
  EXPECT_EQ(ErrorOf("{\"items\":[{\"a\":\n \"b"),
            "d.json:2:4: items[0].a: the text ends here, in the middle of an object: the dump is cut off");
  EXPECT_TRUE(ErrorOf(R"({"items":[{"a":NaN}]})").starts_with("d.json:1:16: items[0].a: not JSON: "));
  EXPECT_TRUE(ErrorOf(R"({"items":[{"a":Infinity}]})").starts_with("d.json:1:16: items[0].a: not JSON: "));
  EXPECT_TRUE(ErrorOf(R"({"items":[{"a":1,}]})").starts_with("d.json:1:18: items[0]: not JSON: "));
  EXPECT_EQ(ErrorOf(R"({"items":[{"a":1,"a":2}]})"),
            "d.json:1:21: items[0].a: this key is given twice; keep one of them");
  EXPECT_EQ(ErrorOf(R"({"items":[{"a":null,"b":[1,2,{"c":1,"c":1}]}]})"),
            "d.json:1:40: items[0].b[2].c: this key is given twice; keep one of them");
  EXPECT_EQ(ErrorOf("{\"items\":[{\"a\":\"\xff\"}]}"), "d.json:1:19: items[0].a: the text is not UTF-8");
  EXPECT_EQ(ErrorOf("\xEF\xBB\xBF{\"items\":[{\"a\":\"\xff\"}]}"), "d.json:1:22: items[0].a: the text is not UTF-8");
  EXPECT_TRUE(ErrorOf("\xEF\xBB{}").contains("expected { "));
  EXPECT_EQ(ErrorOf(R"({"items":[{"a":"\u0000"}]})"), "d.json:1:24: items[0].a: the text holds the character NUL");
  EXPECT_EQ(ErrorOf(R"({"items":[1]})"), "d.json:1:12: items[0]: expected an object");
  EXPECT_EQ(ErrorOf(R"({"items":[[]]})"), "d.json:1:11: items[0]: expected an object");
  EXPECT_TRUE(ErrorOf(R"({"items":[{"a":1}]} x)").starts_with("d.json:1:21: not JSON: "));
}

TEST(ItemStream, ALargeMapWithAKeyTwice) {
  std::string fields;
  for (int i = 0; i < 5000; ++i) fields += fmt::format(R"("k{}":1,)", i);
  EXPECT_EQ(ErrorOf(R"({"items":[{)" + fields + R"("last":1}]})"), "ok");
  EXPECT_TRUE(ErrorOf(R"({"items":[{)" + fields + R"("k7":1}]})")
                  .ends_with("items[0].k7: this key is given twice; keep one of them"));
}

TEST(ItemStream, LimitsHold) {
  const std::string deep(200, '[');
  EXPECT_TRUE(ErrorOf(R"({"items":[{"a":)" + deep).ends_with("nested deeper than 100 levels"))
      << ErrorOf("{\"a\":" + deep);
  // Also inside what is skipped.
  EXPECT_TRUE(ErrorOf(R"({"items":[{"managedFields":)" + deep).ends_with("nested deeper than 100 levels"));
  const std::string long_text(6u << 20, 'x');
  EXPECT_TRUE(ErrorOf(R"({"items":[{"a":")" + long_text + R"("}]})")
                  .ends_with("items[0].a: no value in 4 MiB of text: a string is too long"));
  EXPECT_EQ(ErrorOf(std::string(6u << 20, ' ')), "d.json: nothing but white space");
  std::string wide = R"({"items":[{"a":[)";
  for (int i = 0; i < 2000; ++i) wide += "\"0123456789\",";
  EXPECT_TRUE(ErrorOf(wide + "1]}]}", {.max_item_bytes = 10'000}).contains("one object of more than 0 MiB"));
}

TEST(ItemStream, AFailedReadIsPassedOn) {
  const Status status =
      ReadItems([](std::span<char>) -> Result<size_t> { return Error(Code::kUnavailable, "no disk"); }, "d.json",
                [](const Item&, Item::Place, const ItemPlace&) -> Status { return {}; });
  EXPECT_EQ(status, Status(Code::kUnavailable, "no disk"));
}

}  // namespace
}  // namespace muster::kube
