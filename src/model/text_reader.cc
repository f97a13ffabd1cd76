#include "model/text_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "model/names.h"

namespace muster::model {
namespace {

std::string Describe(const TextValue& value) {
  if (value.kind == TextValue::Kind::kScalar) return Quoted(value.scalar);
  return std::string(KindName(value.kind));
}

std::string_view WantedName(TextValue::Kind kind) {
  return kind == TextValue::Kind::kScalar ? "a single value" : KindName(kind);
}

}  // namespace

void TextErrors::Add(TextPosition position, std::string_view path, std::string_view what) {
  if (status_.ok()) status_ = TextError(source_, position, path, what);
}

TextReader::TextReader(TextErrors& errors, const TextValue& value) : TextReader(errors, &value, "", value.position) {}

TextReader::TextReader(TextErrors& errors, const TextValue* value, std::string path, TextPosition position)
    : errors_(&errors), value_(value), path_(std::move(path)), position_(position) {
  if (value != nullptr && value->kind == TextValue::Kind::kMap) asked_ = std::make_shared<std::vector<std::string>>();
}

bool TextReader::Is(TextValue::Kind kind) {
  if (!present() || !errors_->ok()) return false;
  if (value_->kind == kind) return true;
  Fail(fmt::format("expected {} but found {}", WantedName(kind), Describe(*value_)));
  return false;
}

TextReader TextReader::Absent(const TextReader& holder, std::string_view key, TextPosition position) {
  TextReader absent(*holder.errors_, nullptr, FieldPath(holder.path_, key), position);
  absent.holder_ = holder.value_;
  absent.key_ = key;
  return absent;
}

TextReader TextReader::Field(std::string_view key) {
  if (!Is(TextValue::Kind::kMap)) return Absent(*this, key, position_);
  asked_->emplace_back(key);
  const TextField* field = value_->Find(key);
  if (field == nullptr) return Absent(*this, key, position_);
  if (field->value.kind == TextValue::Kind::kNull) return Absent(*this, key, field->position);
  return {*errors_, &field->value, FieldPath(path_, key), field->value.position};
}

std::vector<TextReader> TextReader::List() {
  std::vector<TextReader> out;
  if (!Is(TextValue::Kind::kList)) return out;
  out.reserve(value_->items.size());
  for (const TextValue& item : value_->items) {
    out.push_back(TextReader(*errors_, &item, ItemPath(path_, out.size()), item.position));
  }
  return out;
}

std::vector<std::pair<std::string, TextReader>> TextReader::Entries() {
  std::vector<std::pair<std::string, TextReader>> out;
  if (!Is(TextValue::Kind::kMap)) return out;
  out.reserve(value_->fields.size());
  for (const TextField& field : value_->fields) {
    const TextPosition position = field.value.kind == TextValue::Kind::kNull ? field.position : field.value.position;
    out.emplace_back(field.key, TextReader(*errors_, &field.value, FieldPath(path_, field.key), position));
  }
  return out;
}

TextReader& TextReader::Require() {
  if (present() || !errors_->ok()) return *this;
  std::vector<std::string> given;
  if (holder_ != nullptr) {
    for (const TextField& field : holder_->fields) given.push_back(field.key);
  }
  const std::string nearest = NearestName(key_, given);
  Fail(nearest.empty() || nearest == key_
           ? "this field is required"
           : fmt::format("this field is required; is {} meant to be it?", Quoted(nearest)));
  return *this;
}

bool TextReader::ReadScalar(std::string& out) {
  if (!Is(TextValue::Kind::kScalar)) return false;
  out = value_->scalar;
  return true;
}

void TextReader::Read(std::string& out) { ReadScalar(out); }

void TextReader::Read(bool& out) {
  if (!Is(TextValue::Kind::kScalar)) return;
  const std::string& text = value_->scalar;
  if (text != "true" && text != "false") return Fail(fmt::format("expected true or false but found {}", Quoted(text)));
  if (value_->quoted)
    return Fail(fmt::format("expected true or false but found a string; write {} without quotes", text));
  out = text == "true";
}

template <class Integer>
void TextReader::ReadInteger(Integer& out) {
  if (!Is(TextValue::Kind::kScalar)) return;
  const std::string& text = value_->scalar;
  const std::string_view digits = std::string_view(text).substr(text.starts_with('-') ? 1 : 0);
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos) {
    return Fail(fmt::format("expected a whole number but found {}", Quoted(text)));
  }
  if (value_->quoted)
    return Fail(fmt::format("expected a whole number but found a string; write {} without quotes", text));
  if (digits.size() > 1 && digits.front() == '0') {  // octal to some readers, decimal to others
    return Fail(fmt::format("{} is ambiguous; write the number without leading zeros", Quoted(text)));
  }
  Integer value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    using Limits = std::numeric_limits<Integer>;
    return Fail(fmt::format("{} is out of range; expected a whole number from {} to {}", Quoted(text), Limits::min(),
                            Limits::max()));
  }
  out = value;
}

void TextReader::Read(int32_t& out) { ReadInteger(out); }
void TextReader::Read(int64_t& out) { ReadInteger(out); }
void TextReader::Read(uint64_t& out) { ReadInteger(out); }
void TextReader::Read(Duration& out) { Read(out, ParseDuration); }
void TextReader::Read(WallTime& out) { Read(out, ParseWallTime); }

void TextReader::Read(Resources& out) {
  Resources read;
  for (auto& [name, reader] : Entries()) {
    std::string text;
    if (!reader.ReadScalar(text)) continue;
    const Status status = read.Parse(name, text);
    if (status.ok()) continue;
    std::string_view what = status.message();
    // The path already ends in the dimension, so the message need not begin with it.
    if (what.starts_with(name) && what.substr(name.size()).starts_with(": ")) what.remove_prefix(name.size() + 2);
    reader.Fail(what);
  }
  if (present() && errors_->ok()) out = std::move(read);
}

void TextReader::Read(std::vector<std::string>& out) {
  std::vector<std::string> read;
  for (TextReader& item : List()) item.Read(read.emplace_back());
  if (present() && errors_->ok()) out = std::move(read);
}

void TextReader::Read(std::map<std::string, std::string>& out) {
  std::map<std::string, std::string> read;
  for (auto& [key, reader] : Entries()) reader.Read(read[key]);
  if (present() && errors_->ok()) out = std::move(read);
}

void TextReader::Read(TextMap& out) {
  TextMap::Map read;
  Read(read);
  if (present() && errors_->ok()) out = std::move(read);
}

void TextReader::RefuseUnknown() {
  if (!present() || !errors_->ok() || value_->kind != TextValue::Kind::kMap) return;
  for (const TextField& field : value_->fields) {
    if (std::ranges::find(*asked_, field.key) != asked_->end()) continue;
    const std::string nearest = NearestName(field.key, *asked_);
    errors_->Add(field.position, FieldPath(path_, field.key),
                 nearest.empty() ? fmt::format("unknown field; known here: {}", fmt::join(*asked_, ", "))
                                 : fmt::format("unknown field; did you mean {}?", Quoted(nearest)));
    return;
  }
}

void TextReader::Fail(std::string_view what) { errors_->Add(position_, path_, what); }

}  // namespace muster::model
