// PieceStream: bytes that lie in several pieces, as protobuf reads them. The pieces outlive it.
//
// Thread-safety: for one thread at a time.
#pragma once

#include <google/protobuf/io/zero_copy_stream.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace muster::rpc {

class PieceStream final : public google::protobuf::io::ZeroCopyInputStream {
 public:
  explicit PieceStream(std::span<const std::string_view> pieces) : pieces_(pieces) {}

  bool Next(const void** data, int* size) override {
    while (next_ < pieces_.size()) {
      const std::string_view piece = pieces_[next_++].substr(skip_);
      skip_ = 0;
      if (piece.empty()) continue;
      *data = piece.data();
      *size = static_cast<int>(piece.size());
      given_ += *size;
      return true;
    }
    return false;
  }
  void BackUp(int count) override {
    --next_;
    skip_ = pieces_[next_].size() - static_cast<size_t>(count);
    given_ -= count;
  }
  bool Skip(int count) override {
    const void* data = nullptr;
    int size = 0;
    while (count > 0) {
      if (!Next(&data, &size)) return false;
      if (size > count) BackUp(size - count);
      count -= std::min(size, count);
    }
    return true;
  }
  int64_t ByteCount() const override { return given_; }

 private:
  const std::span<const std::string_view> pieces_;
  size_t next_ = 0;
  size_t skip_ = 0;  // of the next piece
  int64_t given_ = 0;
};

}  // namespace muster::rpc
