#include "kube/item_stream.h"

#include <fmt/format.h>
#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <unordered_set>
#include <utility>
#include <vector>

#include "model/names.h"
#include "model/text_value.h"
#include "model/utf8.h"

namespace muster::kube {
namespace {

constexpr size_t kBufferBytes = 1u << 16;
constexpr size_t kFewKeys = 24;  // beyond it, a map of its keys finds one that is there twice

// Parts of objects that planning has no use for. Only lists and maps are skipped: a label called `env` is text.
constexpr auto kSkipped = std::to_array<std::string_view>({"allocatedResourcesStatus",
                                                           "args",
                                                           "command",
                                                           "conditions",
                                                           "env",
                                                           "envFrom",
                                                           "ephemeralContainerStatuses",
                                                           "ephemeralContainers",
                                                           "hostAliases",
                                                           "imagePullSecrets",
                                                           "images",
                                                           "lastState",
                                                           "lifecycle",
                                                           "livenessProbe",
                                                           "managedFields",
                                                           "podIPs",
                                                           "readinessProbe",
                                                           "securityContext",
                                                           "startupProbe",
                                                           "state",
                                                           "volumeMounts",
                                                           "volumesAttached",
                                                           "volumesInUse"});
static_assert(std::ranges::is_sorted(kSkipped));

bool IsSkipped(std::string_view key) { return std::ranges::binary_search(kSkipped, key); }

// RapidJSON's input: a buffer that refills itself and knows lines. Ends early, with a reason, at an error or limit.
class Input {
 public:
  using Ch = char;

  Input(const ReadBytes& read, const std::function<void(uint64_t)>& read_so_far, size_t max_token)
      : read_(read), read_so_far_(read_so_far), max_token_(max_token), buffer_(kBufferBytes), at_(buffer_.data()) {
    end_ = at_;
    counted_ = at_;
    Refill();
  }

  char Peek() const { return *at_; }
  char Take() {
    const char c = *at_;
    if (++at_ == end_) Refill();
    return c;
  }
  size_t Tell() const { return before_ + static_cast<size_t>(at_ - buffer_.data()); }
  bool AtEnd() const { return ended_; }

  // A value was seen: the next may be as long again.
  void Progress() { token_start_ = Tell(); }

  // Where the next character stands. Lines are counted once, up to there.
  model::TextPosition Position() {
    CountLinesTo(at_);
    return {.line = static_cast<int>(lines_ + 1), .column = static_cast<int>(Tell() - line_start_ + 1)};
  }

  const Status& status() const { return status_; }
  bool too_long() const { return too_long_; }

  // For in-situ parsing, which is not used.
  char* PutBegin() { return nullptr; }
  void Put(char) {}
  void Flush() {}
  size_t PutEnd(char*) { return 0; }

 private:
  void Refill() {
    if (ended_) {
      at_ = end_ - 1;  // stays at the closing NUL
      return;
    }
    CountLinesTo(end_);
    before_ += static_cast<size_t>(end_ - buffer_.data());
    too_long_ = before_ - token_start_ > max_token_;
    size_t got = 0;
    if (!too_long_) {
      // One byte of room for the closing NUL.
      const Result<size_t> result = read_(std::span(buffer_).first(kBufferBytes - 1));
      if (result) {
        got = *result;
      } else {
        status_ = result.error();
      }
    }
    if (got == 0) {
      ended_ = true;
      buffer_[0] = '\0';
      got = 1;
    }
    at_ = buffer_.data();
    counted_ = at_;
    end_ = at_ + got;
    if (read_so_far_) read_so_far_(before_);
  }
  void CountLinesTo(const char* to) {
    const auto lines = std::count(counted_, to, '\n');
    if (lines > 0) {
      const char* newline = to;
      while (*(newline - 1) != '\n') --newline;
      line_start_ = before_ + static_cast<size_t>(newline - buffer_.data());
      lines_ += lines;
    }
    counted_ = to;
  }

  const ReadBytes& read_;
  const std::function<void(uint64_t)>& read_so_far_;
  const size_t max_token_;
  std::vector<char> buffer_;
  char* at_ = nullptr;
  char* end_ = nullptr;
  const char* counted_ = nullptr;  // how far lines are counted
  size_t before_ = 0;              // bytes of earlier buffers
  int64_t lines_ = 0;              // newlines up to counted_
  size_t line_start_ = 0;          // where the last of them ends
  size_t token_start_ = 0;
  bool ended_ = false;
  bool too_long_ = false;
  Status status_;
};

using Take = std::function<Status(const Item&, Item::Place, const ItemPlace&)>;

// Builds one object at a time and hands it on.
class Handler : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, Handler> {
 public:
  Handler(Input& input, std::string_view source, const Take& take, const StreamLimits& limits)
      : input_(input), source_(source), take_(take), limits_(limits) {}

  bool Null() {
    input_.Progress();
    if (skipping_ == 0) ++ItemsOf();
    return true;
  }
  bool Bool(bool value) { return Scalar(ValueKind::kBool, value ? "true" : "false"); }
  bool RawNumber(const char* text, rapidjson::SizeType size, bool) { return Scalar(ValueKind::kNumber, {text, size}); }
  bool String(const char* text, rapidjson::SizeType size, bool) { return Scalar(ValueKind::kString, {text, size}); }
  bool Key(const char* text, rapidjson::SizeType size, bool) {
    input_.Progress();
    if (skipping_ > 0) return true;
    key_.assign(text, size);
    if (!CheckText(key_)) return false;
    return CheckNewKey(open_.back());
  }
  bool StartObject() { return Start(ValueKind::kMap); }
  bool StartArray() { return Start(ValueKind::kList); }
  bool EndObject(rapidjson::SizeType) { return End(); }
  bool EndArray(rapidjson::SizeType) { return End(); }

  // Why parsing was stopped from here; OK: it was not.
  const Status& status() const { return status_; }
  // Where parsing is, for an error of the parser.
  std::string Path() const {
    std::string path;
    for (size_t i = 1; i < open_.size(); ++i) path = Below(path, open_[i - 1], open_[i].key);
    if (!open_.empty()) {
      const bool key_is_open = open_.back().kind == ValueKind::kMap && !key_.empty();
      if (open_.back().kind == ValueKind::kList || key_is_open) path = Below(path, open_.back(), key_);
    }
    return path;
  }

 private:
  struct Frame {
    ValueKind kind = ValueKind::kMap;
    Item::Place place = Item::kNone;
    std::string key;                       // under which it stands in the frame around it
    size_t items = 0;                      // of a list: how many values so far; of a map: keys
    std::unordered_set<std::string> keys;  // of a large map
    Item::Mark before;                     // of an element of `items`: what to go back to
    model::TextPosition position;
    bool is_element = false;
  };

  static std::string Below(const std::string& path, const Frame& frame, std::string_view key) {
    if (frame.kind == ValueKind::kMap) return model::FieldPath(path, key);
    return model::ItemPath(path, frame.items);
  }

  size_t& ItemsOf() {
    static size_t none = 0;
    return open_.empty() || open_.back().kind == ValueKind::kMap ? none : open_.back().items;
  }

  bool Scalar(ValueKind kind, std::string_view text) {
    input_.Progress();
    if (skipping_ > 0) return true;
    if (!CheckText(text)) return false;
    if (open_.empty()) return Fail("expected an object, as kubectl get -o json prints it");
    if (InItems()) return Fail("expected an object");
    item_.Add(open_.back().place, KeyHere(), kind, text);
    ++ItemsOf();
    key_.clear();
    return CheckSize();
  }

  bool Start(ValueKind kind) {
    input_.Progress();
    if (static_cast<int>(open_.size()) + skipping_ >= limits_.max_depth) {
      return Fail(fmt::format("nested deeper than {} levels", limits_.max_depth));
    }
    if (skipping_ > 0 || (!open_.empty() && IsSkipped(KeyHere()))) {
      ++skipping_;
      return true;
    }
    if (open_.empty() && kind == ValueKind::kList) return Fail("expected an object, as kubectl get -o json prints it");
    if (InItems() && kind == ValueKind::kList) return Fail("expected an object");
    Frame frame{.kind = kind, .key = key_};
    if (open_.empty() || InItems()) frame.position = input_.Position();
    const Item::Place parent = open_.empty() ? Item::kNone : open_.back().place;
    if (InItems()) {
      frame.is_element = true;
      frame.before = item_.Here(parent);
    }
    frame.place = item_.Add(parent, KeyHere(), kind, "");
    open_.push_back(std::move(frame));
    key_.clear();
    return CheckSize();
  }

  bool End() {
    input_.Progress();
    if (skipping_ > 0) {
      if (--skipping_ == 0) {
        ++ItemsOf();
        key_.clear();
      }
      return true;
    }
    const Frame frame = std::move(open_.back());
    open_.pop_back();
    key_.clear();
    if (frame.kind == ValueKind::kList && frame.key == "items" && open_.size() == 1) saw_items_ = true;
    if (frame.is_element) {
      if (!Deliver(frame)) return false;
      item_.CutTo(frame.before, open_.back().place);
    } else if (open_.empty()) {
      if (!saw_items_ && !Deliver(frame)) return false;
      item_.CutTo({}, Item::kNone);
      saw_items_ = false;
    }
    ++ItemsOf();
    return true;
  }

  // Whether the next value is an element of the root's `items`.
  bool InItems() const {
    return open_.size() == 2 && open_.back().kind == ValueKind::kList && open_.back().key == "items";
  }

  bool Deliver(const Frame& frame) {
    ItemPlace place{.position = frame.position};
    if (frame.is_element) place.list_kind = item_.Root()["kind"].Text();
    const std::string path = frame.is_element ? Path() : "";
    place.where = fmt::format("{}:{}:{}: {}", source_, frame.position.line, frame.position.column, path);
    if (path.empty()) place.where.resize(place.where.size() - 2);
    item_.ClearError();
    status_ = take_(item_, frame.place, place);
    return status_.ok();
  }

  std::string_view KeyHere() const {
    return open_.empty() || open_.back().kind == ValueKind::kList ? std::string_view() : key_;
  }

  bool CheckNewKey(Frame& frame) {
    bool is_there = false;
    if (++frame.items <= kFewKeys) {
      is_there = item_.Has(frame.place, key_);
    } else {
      if (frame.keys.empty()) {
        item_.Root(frame.place).ForEachField([&](std::string_view key, ItemView) { frame.keys.emplace(key); });
      }
      is_there = !frame.keys.insert(key_).second;
    }
    return is_there ? Fail("this key is given twice; keep one of them") : true;
  }

  bool CheckText(std::string_view text) {
    if (model::FindInvalidUtf8(text) != std::string_view::npos) return Fail("the text is not UTF-8");
    if (std::memchr(text.data(), '\0', text.size()) != nullptr) return Fail("the text holds the character NUL");
    return true;
  }
  bool CheckSize() {
    if (item_.bytes() <= limits_.max_item_bytes) return true;
    return Fail(fmt::format("one object of more than {} MiB", limits_.max_item_bytes >> 20));
  }
  bool Fail(std::string_view what) {
    status_ = model::TextError(source_, input_.Position(), Path(), what);
    return false;
  }

  Input& input_;
  const std::string_view source_;
  const Take& take_;
  const StreamLimits& limits_;
  Item item_;
  std::vector<Frame> open_;  // innermost last, without what is skipped
  std::string key_;          // of the next value, if the innermost is a map
  int skipping_ = 0;         // levels inside what is skipped
  bool saw_items_ = false;
  Status status_;
};

// False: the text begins like a mark and does not go on like one.
bool SkipByteOrderMark(Input& input) {
  if (input.Peek() != '\xEF') return true;
  for (const char byte : {'\xEF', '\xBB', '\xBF'}) {
    if (input.Peek() != byte) return false;
    input.Take();
  }
  return true;
}

Status ParseProblem(const rapidjson::ParseResult& result, Input& input, const Handler& handler, std::string_view source,
                    const StreamLimits& limits) {
  if (!handler.status().ok()) return handler.status();
  if (!input.status().ok()) return input.status();
  const auto error = [&](std::string_view what) {
    return model::TextError(source, input.Position(), handler.Path(), what);
  };
  if (input.too_long()) {
    return error(fmt::format("no value in {} MiB of text: a string is too long", limits.max_token_bytes >> 20));
  }
  if (input.AtEnd()) return error("the text ends here, in the middle of an object: the dump is cut off");
  std::string what = rapidjson::GetParseError_En(result.Code());
  if (what.ends_with('.')) what.pop_back();
  return error(fmt::format("not JSON: {}", what));
}

}  // namespace

Status ReadItems(const ReadBytes& read, std::string_view source, const Take& take,
                 const std::function<void(uint64_t)>& read_so_far, const StreamLimits& limits) {
  Input input(read, read_so_far, limits.max_token_bytes);
  Handler handler(input, source, take, limits);
  constexpr unsigned kFlags =
      rapidjson::kParseIterativeFlag | rapidjson::kParseStopWhenDoneFlag | rapidjson::kParseNumbersAsStringsFlag;
  const bool readable = SkipByteOrderMark(input);
  for (bool first = true;; first = false) {
    rapidjson::SkipWhitespace(input);
    if (input.AtEnd()) {
      if (!input.status().ok()) return input.status();
      if (!input.too_long() && !first) return {};
      return model::TextError(source, {}, "", input.too_long() ? "nothing but white space" : "the file is empty");
    }
    if (first && (!readable || input.Peek() != '{')) {
      return model::TextError(source, input.Position(), "",
                              "expected { : a dump is JSON, as kubectl get -o json prints it");
    }
    rapidjson::Reader reader;
    const rapidjson::ParseResult result = reader.Parse<kFlags>(input, handler);
    if (result.IsError()) return ParseProblem(result, input, handler, source, limits);
    input.Progress();
  }
}

}  // namespace muster::kube
