#include "model/yaml_reader.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <exception>
#include <istream>
#include <optional>
#include <streambuf>
#include <utility>

#include "model/json_reader.h"
#include "model/names.h"
#include "model/text_builder.h"
#include "model/utf8.h"

namespace muster::model {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kAliasRefused = "anchors (&) and aliases (*) are not supported; write the value out";
// yaml-cpp scans a flow collection to its end before it reports the first event, at 230 bytes of memory for each
// bracket. This much text without an event, and the input ends for it.
constexpr size_t kMaxSilentBytes = 1u << 20;
constexpr std::string_view kTooSilent =
    "more than 1 MiB follows without a value; write long lists and maps in block style (no [] or {}), or the whole "
    "file "
    "as JSON";

TextPosition ToPosition(const YAML::Mark& mark) { return {.line = mark.line + 1, .column = mark.column + 1}; }

TextPosition PositionOf(std::string_view text, size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return {.line = static_cast<int>(std::ranges::count(before, '\n')) + 1,
          .column = static_cast<int>(offset - line_start) + 1};
}

// How a refusal leaves yaml-cpp, which has no other way to be stopped. Caught in this file.
struct Refused {
  Status status;
};

// Feeds yaml-cpp and counts what it has taken since the last event. Ends the text with a document end: without one,
// yaml-cpp takes the end of the text for the missing end of a quoted scalar.
class MeteredInput : public std::streambuf {
 public:
  explicit MeteredInput(std::string_view text) : rest_(text), end_(text.ends_with('\n') ? "...\n" : "\n...\n") {}
  void OnEvent() { silent_ = 0; }
  bool exhausted() const { return exhausted_; }

 protected:
  int_type underflow() override {
    constexpr size_t kChunk = 4096;
    exhausted_ = exhausted_ || silent_ > kMaxSilentBytes;
    if (exhausted_) return traits_type::eof();
    if (rest_.empty()) rest_ = std::exchange(end_, {});
    if (rest_.empty()) return traits_type::eof();
    const std::string_view chunk = rest_.substr(0, kChunk);
    rest_.remove_prefix(chunk.size());
    silent_ += chunk.size();
    char* begin = const_cast<char*>(chunk.data());  // streambuf wants char*, and only reads
    setg(begin, begin, begin + chunk.size());
    return traits_type::to_int_type(*begin);
  }

 private:
  std::string_view rest_;
  std::string_view end_;
  size_t silent_ = 0;
  bool exhausted_ = false;
};

class Handler : public YAML::EventHandler {
 public:
  Handler(std::string_view text, MeteredInput& input, TextBuilder& builder)
      : text_(text), input_(input), builder_(builder) {}

  std::vector<TextValue> TakeDocuments() { return std::move(documents_); }
  TextPosition last_position() const { return last_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    At(mark);
    // yaml-cpp takes whatever it cannot fit into a document as the beginning of another, without end for a lone comma.
    const std::string_view here = text_.substr(std::min(text_.size(), static_cast<size_t>(mark.pos)));
    const bool announced = here.empty() || here.starts_with("---") || here.starts_with("...");
    if (std::exchange(started_, true) && !announced) {
      Refuse(
          "this does not belong to the document above it; indent it like the lines before, or begin a document with "
          "---");
    }
  }
  void OnDocumentEnd() override {
    TextValue document = builder_.Take();
    if (document.kind != TextValue::Kind::kNull) documents_.push_back(std::move(document));
  }
  void OnAnchor(const YAML::Mark& mark, const std::string& /*name*/) override {
    At(mark);
    Refuse(kAliasRefused);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    At(mark);
    Refuse(kAliasRefused);
  }
  void OnNull(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    At(mark);
    if (builder_.ExpectsKey()) Refuse("a key is missing or null; name it, in quotes if it is really called that");
    builder_.Null(last_);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t /*anchor*/,
                const std::string& value) override {
    At(mark);
    const bool quoted = CheckTag(tag, "tag:yaml.org,2002:str");
    if (!builder_.ExpectsKey()) return Check(builder_.Scalar(value, quoted, last_));
    if (!quoted && value == "<<") Refuse("merge keys (<<) are not supported; write the fields out");
    Check(builder_.Key(value, last_));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t /*anchor*/,
                       YAML::EmitterStyle::value /*style*/) override {
    At(mark);
    if (builder_.ExpectsKey()) Refuse("a key must be a scalar, not a list; is a ] missing?");
    CheckTag(tag, "tag:yaml.org,2002:seq");
    Check(builder_.BeginList(last_));
  }
  void OnSequenceEnd() override { builder_.End(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t /*anchor*/,
                  YAML::EmitterStyle::value /*style*/) override {
    At(mark);
    if (builder_.ExpectsKey()) Refuse("a key must be a scalar, not a map; is a } missing?");
    CheckTag(tag, "tag:yaml.org,2002:map");
    Check(builder_.BeginMap(last_));
  }
  void OnMapEnd() override { builder_.End(); }

 private:
  void At(const YAML::Mark& mark) {
    last_ = ToPosition(mark);
    if (input_.exhausted()) Refuse(kTooSilent);  // what yaml-cpp reports of a text cut short is not what it says
    input_.OnEvent();
  }
  [[noreturn]] void Refuse(std::string_view what) const { throw Refused{builder_.Fail(last_, what)}; }
  static void Check(Status status) {
    if (!status.ok()) throw Refused{std::move(status)};
  }
  // Whether the value is tagged at all; "!" is what yaml-cpp gives to scalars in quotes.
  bool CheckTag(const std::string& tag, std::string_view allowed) const {
    if (tag.empty() || tag == "?") return false;
    if (tag != "!" && tag != allowed) Refuse(fmt::format("the tag {} is not supported; remove it", Quoted(tag)));
    return true;
  }

  const std::string_view text_;
  MeteredInput& input_;
  TextBuilder& builder_;
  bool started_ = false;
  TextPosition last_;
  std::vector<TextValue> documents_;
};

// What no YAML text may hold; yaml-cpp would take some of it as the end of the file or as another encoding.
Status CheckCharacters(std::string_view text, std::string_view source) {
  const auto fail = [&](size_t offset, std::string_view what) {
    return TextError(source, PositionOf(text, offset), "", what);
  };
  if (const size_t bad = FindInvalidUtf8(text); bad != std::string_view::npos) {
    return fail(bad,
                fmt::format("byte 0x{:02x} is not UTF-8; save the file as UTF-8", static_cast<uint8_t>(text[bad])));
  }
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    if (byte >= 0x20 && byte != 0x7F) [[likely]]
      continue;
    if (byte == '\n' || byte == '\t') continue;
    if (byte == '\r') {
      if (i + 1 < text.size() && text[i + 1] == '\n') continue;
      return fail(i, "a carriage return without a line feed; end lines with LF or CRLF");
    }
    return fail(i, fmt::format("the control character 0x{:02x} is not allowed; remove it or write it as an escape",
                               static_cast<unsigned>(byte)));
  }
  return {};
}

std::string Explain(const YAML::Exception& error) {
  if (error.msg.starts_with(YAML::ErrorMsg::UNKNOWN_ANCHOR)) return std::string(kAliasRefused);
  if (error.msg.starts_with(YAML::ErrorMsg::TAB_IN_INDENTATION)) return "a tab in the indentation; use spaces";
  if (error.msg.starts_with(YAML::ErrorMsg::DOC_IN_SCALAR))
    return "a quoted text is not closed before the document ends";
  return fmt::format("not valid YAML: {}", error.msg);
}

Result<std::vector<TextValue>> Parse(std::string_view text, std::string_view source, const TextLimits& limits) {
  TextBuilder builder(source, limits.max_depth);
  MeteredInput input(text);
  Handler handler(text, input, builder);
  Status failure;
  try {
    std::istream stream(&input);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(handler)) {
    }
  } catch (const Refused& refused) {
    failure = refused.status;
  } catch (const YAML::Exception& error) {
    failure = builder.Fail(ToPosition(error.mark), Explain(error));
  } catch (const std::exception& error) {
    failure = builder.Fail(handler.last_position(), fmt::format("the YAML parser failed: {}", error.what()));
  }
  // A text cut short has any failure, or none at all.
  if (input.exhausted()) failure = builder.Fail(handler.last_position(), kTooSilent);
  if (!failure.ok()) return std::unexpected(std::move(failure));
  return handler.TakeDocuments();
}

}  // namespace

Result<std::vector<TextValue>> ReadYaml(std::string_view text, std::string_view source, const TextLimits& limits) {
  if (text.size() > limits.max_bytes) return std::unexpected(TextTooLarge(source, text.size(), limits));
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  if (Status status = CheckCharacters(text, source); !status.ok()) return std::unexpected(std::move(status));

  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && (text[first] == '{' || text[first] == '[')) {
    // Not JSON is no error here: the YAML reader then says what is wrong with the text as YAML.
    if (auto json = ReadJson(text, source, 1, {.max_depth = limits.max_depth})) {
      std::vector<TextValue> documents;
      documents.push_back(*std::move(json));
      return documents;
    }
  }
  return Parse(text, source, limits);
}

Result<TextValue> ReadYamlDocument(std::string_view text, std::string_view source, const TextLimits& limits) {
  MUSTER_ASSIGN_OR_RETURN(std::vector<TextValue> documents, ReadYaml(text, source, limits));
  if (documents.empty()) return std::unexpected(TextError(source, {}, "", "the file is empty; expected one document"));
  if (documents.size() > 1) {
    return std::unexpected(
        TextError(source, documents[1].position, "",
                  fmt::format("a second document begins here; expected one, found {}", documents.size())));
  }
  return std::move(documents.front());
}

}  // namespace muster::model
