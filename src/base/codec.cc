#include "base/codec.h"

namespace muster::codec {

void Writer::Varint(uint64_t value) {
  while (value >= 0x80) {
    out_.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out_.push_back(static_cast<char>(value));
}

void Writer::Bytes(std::string_view bytes) {
  Varint(bytes.size());
  out_.append(bytes);
}

bool Reader::Varint(uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (rest_.empty()) return false;
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    const uint64_t bits = byte & 0x7f;
    if (shift == 63 && bits > 1) return false;
    value |= bits << shift;
    // A last byte of zero after others would be a second spelling of the same number.
    if (byte < 0x80) return byte != 0 || shift == 0;
  }
  return false;
}

bool Reader::Bytes(std::string_view& bytes) {
  size_t size = 0;
  if (!Count(size)) return false;
  bytes = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return true;
}

bool Reader::Count(size_t& count) {
  uint64_t raw = 0;
  if (!Varint(raw) || raw > rest_.size()) return false;
  count = static_cast<size_t>(raw);
  return true;
}

std::string Quote(std::string_view text) {
  bool plain = !text.empty();
  for (const char c : text) plain = plain && c > ' ' && c < 0x7f && c != '"' && c != ',' && c != '{' && c != '}';
  if (plain) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (c >= ' ' && c < 0x7f) {
      quoted += c;
    } else {
      quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return quoted + "\"";
}

}  // namespace muster::codec
