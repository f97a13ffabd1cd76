#include "cli/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "host/json_object.h"

namespace muster::cli {
namespace {

// A key as YAML takes it without quotes, or in them.
std::string YamlKey(const std::string& key) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '/' ||
           c == '_' || c == '-';
  };
  const bool starts_plain = !key.empty() && ((key[0] >= 'a' && key[0] <= 'z') || (key[0] >= 'A' && key[0] <= 'Z'));
  return starts_plain && std::ranges::all_of(key, is_plain) ? key : host::JsonQuote(key);
}

}  // namespace

Document::Document(std::string_view text) : scalar_(host::JsonQuote(text)) {}
Document::Document(int64_t number) : scalar_(fmt::to_string(number)) {}
Document::Document(bool value) : scalar_(value ? "true" : "false") {}

Document Document::Null() {
  Document null(Kind::kScalar);
  null.scalar_ = "null";
  return null;
}

Document Document::Dollars(model::Money money) {
  Document dollars(Kind::kScalar);
  dollars.scalar_ = model::FormatMoney(money).substr(1);
  return dollars;
}

Document Document::Number(double number) {
  Document one(Kind::kScalar);
  one.scalar_ = fmt::format("{}", number);
  return one;
}

Document& Document::Add(std::string_view key, Document value) {
  fields_.emplace_back(key, std::move(value));
  return *this;
}
Document& Document::Add(Document value) { return Add("", std::move(value)); }

std::vector<std::pair<std::string, std::string>> Document::Leaves() const {
  std::vector<std::pair<std::string, std::string>> leaves;
  AddLeaves("", leaves);
  return leaves;
}

void Document::AddLeaves(const std::string& path, std::vector<std::pair<std::string, std::string>>& leaves) const {
  if (kind_ != Kind::kMap) {
    leaves.emplace_back(path, ToJson());
    return;
  }
  for (const auto& [key, value] : fields_) value.AddLeaves(path.empty() ? key : path + "." + key, leaves);
}

std::string Document::ToJson() const {
  if (kind_ == Kind::kScalar) return scalar_;
  std::string text(1, kind_ == Kind::kList ? '[' : '{');
  for (const auto& [key, value] : fields_) {
    if (text.size() > 1) text += ',';
    if (kind_ == Kind::kMap) text += host::JsonQuote(key) + ":";
    text += value.ToJson();
  }
  return text + (kind_ == Kind::kList ? ']' : '}');
}

std::string Document::ToYaml() const {
  if (!is_block()) return ToJson() + "\n";
  std::string text;
  WriteYaml(text, 0);
  return text;
}

// Scalars are written as in JSON, which is YAML too.
void Document::WriteYaml(std::string& out, size_t indent) const {
  bool first = true;
  for (const auto& [key, value] : fields_) {
    // The first line of an item stands beside its dash.
    if (!first || out.empty() || out.back() == '\n') out += std::string(indent, ' ');
    first = false;
    out += kind_ == Kind::kMap ? YamlKey(key) + ":" : "-";
    if (!value.is_block()) {
      out += " " + value.ToJson() + "\n";
    } else if (kind_ == Kind::kMap) {
      out += "\n";
      value.WriteYaml(out, indent + (value.kind_ == Kind::kMap ? 2 : 0));
    } else {
      out += " ";
      value.WriteYaml(out, indent + 2);
    }
  }
}

std::string DocumentStream::Add(const Document& document) {
  if (!yaml_) return document.ToJson() + "\n";
  return (std::exchange(begun_, true) ? "---\n" : "") + document.ToYaml();
}

}  // namespace muster::cli
