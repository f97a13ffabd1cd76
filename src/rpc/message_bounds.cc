#include "rpc/message_bounds.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/message.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <map>

#include "rpc/piece_stream.h"

namespace muster::rpc {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// What the allocator and a list that doubles take beside an object.
constexpr size_t kOverhead = 32;
constexpr size_t kString = 32;     // the object, which holds up to 15 characters itself
constexpr size_t kNumber = 16;     // a place in a list that doubles, or nothing: a field said again
constexpr size_t kMapEntry = 160;  // a node with two strings
constexpr size_t kUnknown = 48;    // a field that is kept though it is not known

class Walk {
 public:
  Walk(std::span<const std::string_view> pieces, const MessageBounds& bounds)
      : stream_(pieces), in_(&stream_), bounds_(bounds) {}

  Status Run(const Descriptor& type) {
    Message(type, 0);
    return std::move(refused_);
  }
  size_t memory() const { return memory_; }

 private:
  static constexpr int kDeepest = 100;  // as deep as protobuf parses

  // False: stop, for what is no message or is refused.
  bool Message(const Descriptor& type, int depth) {
    if (depth > kDeepest) return false;
    std::map<int, size_t> rows;
    while (const uint32_t tag = in_.ReadTag()) {
      const int number = WireFormatLite::GetTagFieldNumber(tag);
      const FieldDescriptor* field = type.FindFieldByNumber(number);
      const bool message = field != nullptr && field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
      if (message && ++rows[number] > bounds_.rows) {
        return Refuse(*field, fmt::format("has more than {} rows", bounds_.rows));
      }
      if (!Field(field, WireFormatLite::GetTagWireType(tag), depth)) return false;
      if (memory_ > bounds_.memory) {
        const std::string what = fmt::format("takes more than {} MiB of memory once it is read", bounds_.memory >> 20);
        if (field != nullptr) return Refuse(*field, what);
        refused_ = {Code::kResourceExhausted, fmt::format("the message {}; send less at a time", what)};
        return false;
      }
    }
    return in_.ConsumedEntireMessage() || in_.BytesUntilLimit() == 0;
  }

  // Of a field whose value is of another kind than the descriptor says, protobuf keeps the bytes as of one that it does
  // not know.
  static bool IsOfKind(const FieldDescriptor& field, WireFormatLite::WireType wire) {
    const auto type = static_cast<WireFormatLite::FieldType>(field.type());
    return WireFormatLite::WireTypeForFieldType(type) == wire ||
           (wire == WireFormatLite::WIRETYPE_LENGTH_DELIMITED && field.is_packable());
  }

  bool Field(const FieldDescriptor* field, WireFormatLite::WireType wire, int depth) {
    if (field != nullptr && !IsOfKind(*field, wire)) field = nullptr;
    uint64_t number = 0;
    uint32_t small = 0;
    switch (wire) {
      case WireFormatLite::WIRETYPE_VARINT:
        memory_ += field == nullptr ? kUnknown : kNumber;
        return in_.ReadVarint64(&number);
      case WireFormatLite::WIRETYPE_FIXED64:
        memory_ += field == nullptr ? kUnknown : kNumber;
        return in_.ReadLittleEndian64(&number);
      case WireFormatLite::WIRETYPE_FIXED32:
        memory_ += field == nullptr ? kUnknown : kNumber;
        return in_.ReadLittleEndian32(&small);
      case WireFormatLite::WIRETYPE_LENGTH_DELIMITED: return Delimited(field, depth);
      case WireFormatLite::WIRETYPE_START_GROUP:
        // protobuf keeps one that it does not know, and reads on: what stands behind it must not go unseen.
        refused_ = {Code::kInvalidArgument, "the message has a group, and none of this protocol has one"};
        return false;
      default: return false;
    }
  }

  bool Delimited(const FieldDescriptor* field, int depth) {
    int size = 0;
    if (!in_.ReadVarintSizeAsInt(&size)) return false;
    const auto bytes = static_cast<size_t>(size);
    if (field == nullptr) {
      memory_ += kUnknown + kString + bytes;
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      memory_ += kString + kOverhead + bytes;
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      memory_ += field->is_map() ? kMapEntry : kOverhead + SizeOf(*field->message_type());
      const CodedInputStream::Limit limit = in_.PushLimit(size);
      if (!Message(*field->message_type(), depth + 1)) return false;
      in_.PopLimit(limit);
      return true;
    } else {
      memory_ += bytes * kNumber;  // a list of numbers, of one byte each at least
    }
    return in_.Skip(size);
  }

  // Of a message with nothing in it.
  size_t SizeOf(const Descriptor& type) {
    const auto [known, is_new] = sizes_.try_emplace(&type, 0);
    if (is_new) {
      const auto* made = google::protobuf::MessageFactory::generated_factory()->GetPrototype(&type);
      known->second = made != nullptr ? made->SpaceUsedLong() : 256;
    }
    return known->second;
  }

  bool Refuse(const FieldDescriptor& field, const std::string& why) {
    refused_ = {Code::kResourceExhausted, fmt::format("{}: the message {}; send less at a time", field.name(), why)};
    return false;
  }

  PieceStream stream_;
  CodedInputStream in_;
  const MessageBounds& bounds_;
  size_t memory_ = 0;
  std::map<const Descriptor*, size_t> sizes_;
  Status refused_;
};

Result<size_t> BytesOf(std::span<const std::string_view> pieces, const MessageBounds& bounds) {
  size_t bytes = 0;
  for (const std::string_view piece : pieces) bytes += piece.size();
  if (bytes <= bounds.bytes) return bytes;
  return Error(Code::kResourceExhausted,
               fmt::format("the message has {} bytes, and {} are allowed; send less at a time", bytes, bounds.bytes));
}

}  // namespace

Status CheckBounds(const Descriptor& type, std::span<const std::string_view> pieces, const MessageBounds& bounds) {
  const Result<size_t> bytes = BytesOf(pieces, bounds);
  if (!bytes) return bytes.error();
  if (*bytes <= kHarmlessBytes) return {};
  return Walk(pieces, bounds).Run(type);
}

Result<size_t> WeighMessage(const Descriptor& type, std::span<const std::string_view> pieces,
                            const MessageBounds& bounds) {
  MUSTER_ASSIGN_OR_RETURN(const size_t bytes, BytesOf(pieces, bounds));
  Walk walk(pieces, bounds);
  Status fit = walk.Run(type);
  // The weight of one that cannot be walked to its end is not known.
  const bool harmless = bytes <= kHarmlessBytes && fit.code() == Code::kResourceExhausted;
  if (!fit.ok() && !harmless) return std::unexpected(std::move(fit));
  return std::max(bytes, walk.memory());
}

}  // namespace muster::rpc
