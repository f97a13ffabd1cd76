#include "model/json_reader.h"

#include <gtest/gtest.h>

#include <sstream>
#include <streambuf>
#include <string>

namespace muster::model {
namespace {

std::string ErrorOf(std::string_view text) {
  const auto value = ReadJson(text, "f");
  return value ? "accepted" : value.error().message();
}

std::string Nested(int depth) {
  return std::string(static_cast<size_t>(depth), '[') + std::string(static_cast<size_t>(depth), ']');
}

TEST(ReadJson, KeepsTextAndPlace) {
  const auto value = ReadJson("{\"a\": [1, \"x\",\n  null], \"b\": true}", "f", 10);
  ASSERT_TRUE(value) << value.error().message();
  ASSERT_EQ(value->fields.size(), 2u);
  const TextField& a = value->fields[0];
  EXPECT_EQ(a.key, "a");
  EXPECT_EQ(a.position.column, 2);
  ASSERT_EQ(a.value.items.size(), 3u);
  EXPECT_FALSE(a.value.items[0].quoted);
  EXPECT_TRUE(a.value.items[1].quoted);
  EXPECT_EQ(a.value.items[1].scalar, "x");
  EXPECT_EQ(a.value.items[2].kind, TextValue::Kind::kNull);
  EXPECT_EQ(a.value.items[2].position.line, 11);
  EXPECT_EQ(a.value.items[2].position.column, 3);
  EXPECT_EQ(value->fields[1].value.scalar, "true");
  EXPECT_FALSE(value->fields[1].value.quoted);
}

TEST(ReadJson, NumbersKeepTheirText) {
  for (const std::string text : {"0", "-0", "0.1", "1e400", "12345678901234567890", "-1.50E+07", "1e-3"}) {
    const auto value = ReadJson(text, "f");
    ASSERT_TRUE(value) << value.error().message();
    EXPECT_EQ(value->scalar, text);
    EXPECT_FALSE(value->quoted);
  }
}

TEST(ReadJson, Strings) {
  const auto value = ReadJson(R"("\"\\\/\b\f\n\r\t \u0041\u00fc\u20AC\ud83d\ude00 ü")", "f");
  ASSERT_TRUE(value) << value.error().message();
  EXPECT_EQ(value->scalar, "\"\\/\b\f\n\r\t Aü€😀 ü");
}

TEST(ReadJson, SaysWhatIsWrong) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "f:1:1: expected a JSON value but found the end"},
      {"{", "f:1:2: expected a key in quotes but found the end"},
      {"{a: 1}", "f:1:2: expected a key in quotes but found 'a'"},
      {R"({"a" 1})", "f:1:6: a: expected ':' after the key but found '1'"},
      {R"({"a": })", "f:1:7: a: expected a JSON value but found '}'"},
      {R"({"a": 1,})", "f:1:9: expected a key in quotes but found '}'"},
      {R"({"a": 1 "b": 2})", "f:1:9: expected ',' or '}' but found '\"'"},
      {R"({"a": [1, 2})", "f:1:12: a[2]: expected ',' or ']' but found '}'"},
      {"[1,]", "f:1:4: [1]: expected a JSON value but found ']'"},
      {"[01]", "f:1:3: [0]: a number must not begin with 0; quote it if it is text"},
      {"[-]", "f:1:3: [0]: expected a digit after '-' but found ']'"},
      {"[1.]", "f:1:4: [0]: expected a digit after '.' but found ']'"},
      {"[1e+]", "f:1:5: [0]: expected a digit of the exponent but found ']'"},
      {"+1", "f:1:1: expected a JSON value but found '+'"},
      {"NaN", "f:1:1: expected a JSON value but found 'N'"},
      {"nul", "f:1:1: expected a JSON value but found 'n'"},
      {"truex", "f:1:5: expected nothing more but found 'x'"},
      {"{} {}", "f:1:4: expected nothing more but found '{'"},
      {"\"a", "f:1:3: a string has no closing quote"},
      {"\"a\tb\"", "f:1:3: byte 0x09 inside a string; write it as an escape"},
      {R"("\x41")", R"(f:1:3: expected one of " \ / b f n r t u after '\' but found 'x')"},
      {R"("\u12g4")", R"(f:1:6: expected four hexadecimal digits after '\u' but found 'g')"},
      {R"("\ud800")", "f:1:8: half of a surrogate pair alone; write both halves"},
      {R"("\ud800\u0041")", "f:1:14: half of a surrogate pair alone; write both halves"},
      {R"("\udc00")", "f:1:8: half of a surrogate pair alone; write both halves"},
      {R"({"a":"\u0000"})", "f:1:6: a: the character NUL is not allowed"},
      {R"({"\u0000":1})", R"(f:1:2: ["\x00"]: the character NUL is not allowed)"},
      {std::string("\0", 1), "f:1:1: expected a JSON value but found byte 0x00"},
      {"{\n\"a\": \"\xFF\"}", "f:2:7: byte 0xff is not UTF-8"},
      {"{\"a\": {\"b\": 1,\n \"b\": 2}}",
       "f:2:2: a.b: this key is given twice, first at line 1, column 8; keep one of them"},
  };
  for (const auto& [text, message] : cases) EXPECT_EQ(ErrorOf(text), message) << text;
}

TEST(ReadJson, DepthIsLimited) {
  EXPECT_EQ(ErrorOf(Nested(64)), "accepted");
  EXPECT_TRUE(ErrorOf(Nested(65)).ends_with("nested deeper than 64 levels; flatten it")) << ErrorOf(Nested(65));
  EXPECT_TRUE(ErrorOf(std::string(1'000'000, '[')).starts_with("f:1:65: [0][0]"));
}

TEST(ReadJson, ManyKeysAreCheckedToo) {
  std::string text = "{";
  for (int i = 0; i < 50'000; ++i) text += "\"k" + std::to_string(i) + "\":0,\n";
  EXPECT_EQ(ErrorOf(text + "\"last\":0}"), "accepted");
  EXPECT_EQ(ErrorOf(text + "\"k7\":0}"),
            "f:50001:1: k7: this key is given twice, first at line 8, column 1; keep one of them");
}

TEST(ReadJsonLines, SkipsEmptyLinesAndNumbersTheRest) {
  std::istringstream in("{\"a\":1}\r\n\n  \n{\"a\":2}\n{\"a\":3}");
  std::string seen;
  const Status status = ReadJsonLines(in, "f", [&](const TextValue& row) {
    seen += row.Find("a")->value.scalar + "@" + std::to_string(row.position.line) + " ";
    return Status();
  });
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(seen, "1@1 2@4 3@5 ");
}

TEST(ReadJsonLines, StopsAtTheFirstError) {
  const auto read = [](std::string text, Status of_row = Status()) {
    std::istringstream in(std::move(text));
    return ReadJsonLines(in, "f", [&](const TextValue&) { return of_row; });
  };
  EXPECT_EQ(read("{}\n[1]\n").message(), "f:2:1: expected an object on each line but found a list");
  EXPECT_EQ(read("{}\n{}{}\n").message(), "f:2:3: expected nothing more but found '{'");
  EXPECT_EQ(read("{\n}\n").message(), "f:1:2: expected a key in quotes but found the end");
  EXPECT_EQ(read("{}", Status(Code::kAborted, "enough")), Status(Code::kAborted, "enough"));
}

// Endless 'x': a reader that wants the whole line never returns.
class Endless : public std::streambuf {
 public:
  size_t served() const { return served_; }

 protected:
  int_type underflow() override {
    served_ += sizeof chunk_;
    std::fill(std::begin(chunk_), std::end(chunk_), 'x');
    setg(chunk_, chunk_, chunk_ + sizeof chunk_);
    return traits_type::to_int_type('x');
  }

 private:
  char chunk_[4096];
  size_t served_ = 0;
};

TEST(ReadJsonLines, LongLineIsRefusedUnread) {
  Endless endless;
  std::istream in(&endless);
  const Status status = ReadJsonLines(in, "f", [](const TextValue&) { return Status(); });
  EXPECT_EQ(status.message(), "f:1:1048577: the line is longer than 1048576 bytes");
  EXPECT_LT(endless.served(), size_t{2} << 20);
}

TEST(ReadJsonLines, LimitIsExact) {
  const auto read = [](size_t limit) {
    std::istringstream in("{\"a\":1}\n{\"bb\":1}\n");
    return ReadJsonLines(in, "f", [](const TextValue&) { return Status(); }, {.max_line_bytes = limit});
  };
  EXPECT_TRUE(read(8).ok());
  EXPECT_EQ(read(7).message(), "f:2:8: the line is longer than 7 bytes");
}

TEST(ReadJsonLines, LinesAcrossChunks) {
  std::string text;
  for (int i = 0; i < 3000; ++i)
    text += "{\"id\":\"m-" + std::to_string(i) + "\",\"pad\":\"" + std::string(97, 'p') + "\"}\n";
  std::istringstream in(text);
  int next = 0;
  const Status status = ReadJsonLines(in, "f", [&](const TextValue& row) {
    EXPECT_EQ(row.Find("id")->value.scalar, "m-" + std::to_string(next++));
    return Status();
  });
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(next, 3000);
}

class Broken : public std::streambuf {
 protected:
  int_type underflow() override { throw std::runtime_error("disk gone"); }
};

TEST(ReadJsonLines, BrokenStreamIsNotTheEnd) {
  Broken broken;
  std::istream in(&broken);
  const Status status = ReadJsonLines(in, "f", [](const TextValue&) { return Status(); });
  EXPECT_EQ(status, Status(Code::kUnavailable, "f: reading failed after line 0"));
}

}  // namespace
}  // namespace muster::model
