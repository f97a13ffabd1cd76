#include "model/text_builder.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"

namespace muster::model {
namespace {

constexpr size_t kSearchedFields = 16;  // above, a map's keys are kept in a set
constexpr std::string_view kNulRefused = "the character NUL is not allowed";

bool HasNul(std::string_view text) { return text.find('\0') != std::string_view::npos; }

}  // namespace

Status TextBuilder::Begin(TextValue::Kind kind, TextPosition position) {
  if (open_.size() >= static_cast<size_t>(max_depth_)) {
    return Fail(position, fmt::format("nested deeper than {} levels; flatten it", max_depth_));
  }
  Frame& frame = open_.emplace_back();
  frame.value.kind = kind;
  frame.value.position = position;
  return {};
}

void TextBuilder::End() {
  MUSTER_CHECK(!open_.empty() && !open_.back().has_key, "an end without its beginning or after a key");
  TextValue value = std::move(open_.back().value);
  open_.pop_back();
  Attach(std::move(value));
}

const TextField* TextBuilder::Earlier(Frame& frame, const std::string& key) {
  const auto& fields = frame.value.fields;
  if (fields.size() < kSearchedFields) return frame.value.Find(key);
  if (frame.keys.empty()) {
    for (const TextField& field : fields) frame.keys.insert(field.key);
  }
  return frame.keys.insert(key).second ? nullptr : frame.value.Find(key);
}

Status TextBuilder::Key(std::string key, TextPosition position) {
  MUSTER_CHECK(ExpectsKey(), "a key where none belongs");
  Frame& frame = open_.back();
  const TextField* earlier = Earlier(frame, key);
  frame.has_key = true;
  frame.key = std::move(key);
  frame.key_position = position;
  if (earlier != nullptr) {
    return Fail(position, fmt::format("this key is given twice, first at line {}, column {}; keep one of them",
                                      earlier->position.line, earlier->position.column));
  }
  return HasNul(frame.key) ? Fail(position, kNulRefused) : Status();
}

Status TextBuilder::Scalar(std::string text, bool quoted, TextPosition position) {
  if (HasNul(text)) return Fail(position, kNulRefused);
  TextValue value;
  value.kind = TextValue::Kind::kScalar;
  value.quoted = quoted;
  value.scalar = std::move(text);
  value.position = position;
  Attach(std::move(value));
  return {};
}

void TextBuilder::Null(TextPosition position) {
  TextValue value;
  value.position = position;
  Attach(std::move(value));
}

bool TextBuilder::ExpectsKey() const {
  return !open_.empty() && open_.back().value.kind == TextValue::Kind::kMap && !open_.back().has_key;
}

TextValue TextBuilder::Take() {
  MUSTER_CHECK(open_.empty(), "taken while a list or map is open");
  return std::exchange(root_, TextValue());
}

std::string TextBuilder::Path() const {
  std::string path;
  for (const Frame& frame : open_) {
    if (frame.value.kind == TextValue::Kind::kList) {
      path = ItemPath(path, frame.value.items.size());
    } else if (frame.has_key) {
      path = FieldPath(path, frame.key);
    }
  }
  return path;
}

Status TextBuilder::Fail(TextPosition position, std::string_view what) const {
  return TextError(source_, position, Path(), what);
}

void TextBuilder::Attach(TextValue value) {
  if (open_.empty()) {
    root_ = std::move(value);
    return;
  }
  Frame& frame = open_.back();
  if (frame.value.kind == TextValue::Kind::kList) {
    frame.value.items.push_back(std::move(value));
    return;
  }
  MUSTER_CHECK(frame.has_key, "a value without its key");
  frame.value.fields.push_back({std::move(frame.key), frame.key_position, std::move(value)});
  frame.has_key = false;
}

}  // namespace muster::model
