// Frames: an input of bytes as a row of frames (kind, length in two bytes, bytes), each of which is handed to a
// function of its kind; and the laws of requests and answers: what is read is written as it was, what is not is refused
// by name.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "base/codec.h"
#include "refusal.h"

namespace muster {

template <class Handle>
void EachFrame(const uint8_t* data, size_t size, uint8_t kinds, const Handle& handle) {
  constexpr size_t kHead = 3;
  while (size >= kHead) {
    const auto kind = static_cast<uint8_t>(data[0] % kinds);
    const size_t length = std::min<size_t>(data[1] | static_cast<size_t>(data[2]) << 8, size - kHead);
    handle(kind, std::string(reinterpret_cast<const char*>(data) + kHead, length));
    data += kHead + length;
    size -= kHead + length;
  }
}

// `read(wire)` gives the contract's value, or an error; `write(value, wire)` writes it.
template <class Wire, class Read, class Write>
void CheckBothWays(const std::string& bytes, const Read& read, const Write& write) {
  Wire wire;
  if (!wire.ParseFromString(bytes)) return;
  const auto value = read(wire);
  if (!value) return CheckRefusal(value.error());
  Wire again;
  write(*value, again);
  Wire arrived;
  MUSTER_CHECK(arrived.ParseFromString(again.SerializeAsString()), "what was read is written as no message");
  const auto second = read(arrived);
  MUSTER_CHECK(second.has_value() && codec::ToBytes(*second) == codec::ToBytes(*value),
               "what was read is not written as it was");
}

// Read in one direction only: it is taken or refused by name.
template <class Wire, class Read>
void CheckRead(const std::string& bytes, const Read& read) {
  Wire wire;
  if (!wire.ParseFromString(bytes)) return;
  const auto value = read(wire);
  if (!value) CheckRefusal(value.error());
}

}  // namespace muster
