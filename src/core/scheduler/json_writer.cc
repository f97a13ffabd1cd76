#include "core/scheduler/json_writer.h"

#include <fmt/format.h>

#include <iterator>

#include "model/utf8.h"

namespace muster::scheduler {

void JsonWriter::Separate() {
  if (!first_) out_.push_back(',');
  first_ = false;
}

void JsonWriter::Open(char c) {
  Separate();
  out_.push_back(c);
  first_ = true;
}

void JsonWriter::Close(char c) {
  out_.push_back(c);
  first_ = false;
}

void JsonWriter::Raw(std::string_view text) {
  Separate();
  out_.append(text);
}

void JsonWriter::Key(std::string_view key) {
  Separate();
  Quote(key);
  out_.push_back(':');
  first_ = true;
}

void JsonWriter::Text(std::string_view text) {
  Separate();
  Quote(text);
}

void JsonWriter::Integer(int64_t value) {
  Separate();
  fmt::format_to(std::back_inserter(out_), "{}", value);
}

void JsonWriter::Unsigned(uint64_t value) {
  Separate();
  fmt::format_to(std::back_inserter(out_), "{}", value);
}

void JsonWriter::Thousandths(int64_t thousandths) {
  Separate();
  const auto magnitude = thousandths < 0 ? 0 - static_cast<uint64_t>(thousandths) : static_cast<uint64_t>(thousandths);
  fmt::format_to(std::back_inserter(out_), "{}{}", thousandths < 0 ? "-" : "", magnitude / 1000);
  if (magnitude % 1000 == 0) return;
  fmt::format_to(std::back_inserter(out_), ".{:03}", magnitude % 1000);
  while (out_.back() == '0') out_.pop_back();
}

void JsonWriter::QuoteByte(char c) {
  switch (c) {
    case '"': out_.append("\\\""); return;
    case '\\': out_.append("\\\\"); return;
    case '\n': out_.append("\\n"); return;
    case '\r': out_.append("\\r"); return;
    case '\t': out_.append("\\t"); return;
    default: fmt::format_to(std::back_inserter(out_), "\\u{:04x}", static_cast<uint8_t>(c));
  }
}

void JsonWriter::Quote(std::string_view text) {
  out_.push_back('"');
  while (true) {
    const size_t bad = model::FindInvalidUtf8(text);
    const std::string_view good = text.substr(0, bad);
    size_t start = 0;
    for (size_t i = 0; i < good.size(); ++i) {
      if (static_cast<uint8_t>(good[i]) >= 0x20 && good[i] != '"' && good[i] != '\\') continue;
      out_.append(good.substr(start, i - start));
      QuoteByte(good[i]);
      start = i + 1;
    }
    out_.append(good.substr(start));
    if (bad == std::string_view::npos) break;
    model::AppendUtf8(out_, 0xFFFD);
    text.remove_prefix(bad + 1);
  }
  out_.push_back('"');
}

}  // namespace muster::scheduler
