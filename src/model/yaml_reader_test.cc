#include "model/yaml_reader.h"

#include <gtest/gtest.h>

#include <string>

namespace muster::model {
namespace {

std::string ErrorOf(std::string_view text) {
  const auto value = ReadYamlDocument(text, "f.yaml");
  return value ? "accepted" : value.error().message();
}

std::string Repeat(std::string_view unit, size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += unit;
  return text;
}

std::string BlockNested(int depth) {
  std::string text;
  for (int i = 0; i < depth; ++i) text += "- ";
  return text + "x";
}

TEST(ReadYaml, KeepsTextAndPlace) {
  const auto value =
      ReadYamlDocument("# a fleet\nzone: no\nlist: [010, '7', ~]\ntext: |\n  two\n  lines\nnothing:\n", "f.yaml");
  ASSERT_TRUE(value) << value.error().message();
  const TextValue& zone = value->Find("zone")->value;
  EXPECT_EQ(zone.scalar, "no");
  EXPECT_FALSE(zone.quoted);
  EXPECT_EQ(zone.position.line, 2);
  EXPECT_EQ(zone.position.column, 7);
  EXPECT_EQ(value->Find("zone")->position.column, 1);
  const TextValue& list = value->Find("list")->value;
  ASSERT_EQ(list.items.size(), 3u);
  EXPECT_EQ(list.items[0].scalar, "010");
  EXPECT_EQ(list.items[1].scalar, "7");
  EXPECT_TRUE(list.items[1].quoted);
  EXPECT_EQ(list.items[2].kind, TextValue::Kind::kNull);
  EXPECT_EQ(value->Find("text")->value.scalar, "two\nlines\n");
  EXPECT_TRUE(value->Find("text")->value.quoted);
  EXPECT_EQ(value->Find("nothing")->value.kind, TextValue::Kind::kNull);
}

TEST(ReadYaml, NullOnlyWhenUnquoted) {
  const auto value = ReadYamlDocument("[~, null, Null, NULL, , '~', \"null\", '', !!str null, nil]", "f");
  ASSERT_TRUE(value) << value.error().message();
  std::string kinds;
  for (const TextValue& item : value->items) kinds += item.kind == TextValue::Kind::kNull ? '0' : 's';
  EXPECT_EQ(kinds, "00000sssss");
}

TEST(ReadYaml, TagsOfTheThreeShapes) {
  const auto value = ReadYamlDocument("a: !!str 5\nb: !!map {c: 1}\nd: !!seq [1]\n", "f");
  ASSERT_TRUE(value) << value.error().message();
  EXPECT_TRUE(value->Find("a")->value.quoted);
}

TEST(ReadYaml, Documents) {
  const auto three = ReadYaml("a: 1\n---\n---\nb: 2\n--- [c]\n---\n# nothing\n", "f");
  ASSERT_TRUE(three) << three.error().message();
  EXPECT_EQ(three->size(), 3u);
  for (const char* text : {"", "\n\n", "# only words\n", "---\n", "~"}) {
    const auto none = ReadYaml(text, "f");
    ASSERT_TRUE(none) << text << none.error().message();
    EXPECT_TRUE(none->empty()) << text;
  }
}

TEST(ReadYaml, AcceptsByteOrderMarkAndCrLf) {
  const auto value = ReadYamlDocument(
      "\xEF\xBB\xBF"
      "a: 1\r\nb: 2\r\n",
      "f");
  ASSERT_TRUE(value) << value.error().message();
  EXPECT_EQ(value->Find("a")->position.column, 1);
  EXPECT_EQ(value->Find("b")->value.scalar, "2");
}

TEST(ReadYaml, ReadsJson) {
  // A surrogate pair is JSON only, so this shows which reader took it.
  const auto value = ReadYamlDocument("\n {\"a\": [1e400, \"\\ud83d\\ude00\"]}\n", "f");
  ASSERT_TRUE(value) << value.error().message();
  EXPECT_EQ(value->position.line, 2);
  EXPECT_EQ(value->Find("a")->value.items[0].scalar, "1e400");
  EXPECT_EQ(value->Find("a")->value.items[1].scalar, "😀");
  EXPECT_EQ(ErrorOf("{a: [1, two], b: {c: d}}"), "accepted");  // flow style, but not JSON
}

TEST(ReadYaml, SaysWhatIsWrong) {
  constexpr std::string_view kAlias = "anchors (&) and aliases (*) are not supported; write the value out";
  constexpr std::string_view kStray =
      "this does not belong to the document above it; indent it like the lines before, or begin a document with ---";
  const std::pair<std::string, std::string> cases[] = {
      {"", "f.yaml: the file is empty; expected one document"},
      {"a: 1\n---\nb: 2\n", "f.yaml:3:1: a second document begins here; expected one, found 2"},
      {"clusters:\n- name: a\n  zone: x\n  name: b\n",
       "f.yaml:4:3: clusters[0].name: this key is given twice, first at line 2, column 3; keep one of them"},
      {"{a: {b: 1, b: 2}}", "f.yaml:1:12: a.b: this key is given twice, first at line 1, column 6; keep one of them"},
      {"a: 1\n'a': 2\n", "f.yaml:2:1: a: this key is given twice, first at line 1, column 1; keep one of them"},
      {"base: &b {cpu: 1}\n", "f.yaml:1:7: base: " + std::string(kAlias)},
      {"x:\n  - y: *b\n", "f.yaml:2:8: x[0].y: " + std::string(kAlias)},
      {"&k key: 1\n", "f.yaml:1:1: " + std::string(kAlias)},
      {"*k : 1\n", "f.yaml:1:1: " + std::string(kAlias)},
      {"a:\n  <<: {b: 1}\n", "f.yaml:2:3: a: merge keys (<<) are not supported; write the fields out"},
      {"? [a, b]\n: c\n", "f.yaml:1:3: a key must be a scalar, not a list; is a ] missing?"},
      {"z:\n  ? {a: b}\n  : c\n", "f.yaml:2:5: z: a key must be a scalar, not a map; is a } missing?"},
      {"z:\n  ~: c\n", "f.yaml:2:3: z: a key is missing or null; name it, in quotes if it is really called that"},
      {": c\n", "f.yaml:1:1: a key is missing or null; name it, in quotes if it is really called that"},
      {"a: !secret x\n", "f.yaml:1:4: a: the tag \"!secret\" is not supported; remove it"},
      {"a: !!int 5\n", "f.yaml:1:4: a: the tag \"tag:yaml.org,2002:int\" is not supported; remove it"},
      {"a: !!map [b]\n", "f.yaml:1:4: a: the tag \"tag:yaml.org,2002:map\" is not supported; remove it"},
      {"- a\nb: c\n", "f.yaml:2:1: " + std::string(kStray)},
      {"{a: 1} rest\n", "f.yaml:1:8: " + std::string(kStray)},
      {",\n", "f.yaml:1:1: " + std::string(kStray)},
      {"{a: b}, c\n", "f.yaml:1:7: " + std::string(kStray)},
      {"a: 1\n  b: 2\n", "f.yaml:2:4: not valid YAML: illegal map value"},
      {"a: [1, 2\nb: 3\n", "f.yaml:2:2: a[2]: not valid YAML: end of sequence flow not found"},
      {"a: 'x\n", "f.yaml:2:1: a: a quoted text is not closed before the document ends"},
      {"a: \"x", "f.yaml:2:1: a: a quoted text is not closed before the document ends"},
      {"[a, [b", "f.yaml:1:1: a key must be a scalar, not a list; is a ] missing?"},
      {"a: {b: c", "f.yaml:2:1: a: not valid YAML: end of map flow not found"},
      {"a: @x\n", "f.yaml:1:4: a: not valid YAML: unknown token"},
      {"a: \"\\ud800\"\n", "f.yaml:1:11: a: not valid YAML: invalid unicode: 55296"},
      {"a: b\xC3\n", "f.yaml:1:5: byte 0xc3 is not UTF-8; save the file as UTF-8"},
      {"ok: 1\nü: \x01\n", "f.yaml:2:5: the control character 0x01 is not allowed; remove it or write it as an escape"},
      {std::string("a: \0b", 5),
       "f.yaml:1:4: the control character 0x00 is not allowed; remove it or write it as an escape"},
      {"a: 1\rb: 2\n", "f.yaml:1:5: a carriage return without a line feed; end lines with LF or CRLF"},
      {"a: \"x\\0y\"\n", "f.yaml:1:4: a: the character NUL is not allowed"},
  };
  for (const auto& [text, message] : cases) EXPECT_EQ(ErrorOf(text), message) << text;
}

TEST(ReadYaml, BombIsRefusedAtItsFirstAnchor) {
  EXPECT_EQ(ErrorOf("lol: 1\na: &a [x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]\n"
                    "c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b]\nd: [*c, *c, *c, *c, *c, *c, *c, *c, *c]\n"),
            "f.yaml:2:4: a: anchors (&) and aliases (*) are not supported; write the value out");
  EXPECT_EQ(ErrorOf("loop: &l\n  self: *l\n"),
            "f.yaml:1:7: loop: anchors (&) and aliases (*) are not supported; write the value out");
}

TEST(ReadYaml, DepthIsLimited) {
  EXPECT_EQ(ErrorOf(BlockNested(64)), "accepted");
  const std::string path = Repeat("[0]", 64 * 3);
  EXPECT_EQ(ErrorOf(BlockNested(65)), "f.yaml:1:129: " + path + ": nested deeper than 64 levels; flatten it");
  EXPECT_EQ(ErrorOf(Repeat("[", 65) + Repeat("]", 65)),
            "f.yaml:1:65: " + path + ": nested deeper than 64 levels; flatten it");
  EXPECT_EQ(ErrorOf(Repeat("[", 100'000) + Repeat("]", 100'000)),
            "f.yaml:1:65: " + path + ": nested deeper than 64 levels; flatten it");
  EXPECT_EQ(ErrorOf(BlockNested(1'000'000)), "f.yaml:1:129: " + path + ": nested deeper than 64 levels; flatten it");
}

TEST(ReadYaml, LongFlowCollectionIsRefusedBeforeItFillsMemory) {
  constexpr std::string_view kLong =
      ": more than 1 MiB follows without a value; write long lists and maps in block style (no [] or {}), or the whole "
      "file as JSON";
  constexpr size_t kBytes = (1u << 20) + 100'000;
  EXPECT_EQ(ErrorOf("a:\n  b: " + Repeat("[", kBytes)), "f.yaml:2:7: a.b[0]" + std::string(kLong));
  EXPECT_EQ(ErrorOf("[" + Repeat("x, ", kBytes) + "x]"), "f.yaml:1:1" + std::string(kLong));
  EXPECT_EQ(ErrorOf("a: '" + Repeat("x", kBytes)), "f.yaml:1:1: a" + std::string(kLong));
  EXPECT_EQ(ErrorOf("a: 1\n" + Repeat("# more\n", kBytes) + "b: 2\n"), "f.yaml:1:4" + std::string(kLong));
  EXPECT_EQ(ErrorOf(Repeat("\n", kBytes) + "a: 1"), "f.yaml" + std::string(kLong));
  EXPECT_EQ(ErrorOf("[" + Repeat("1, ", kBytes) + "1]"), "accepted");     // JSON
  EXPECT_EQ(ErrorOf("a:\n" + Repeat("- [x, y]\n", kBytes)), "accepted");  // many short ones
}

TEST(ReadYaml, SizeIsLimited) {
  EXPECT_EQ(ErrorOf(std::string((16u << 20) + 1, 'x')),
            "f.yaml: 16777217 bytes are more than the limit of 16777216; split the file, or use JSON lines for large "
            "fleets");
}

}  // namespace
}  // namespace muster::model
