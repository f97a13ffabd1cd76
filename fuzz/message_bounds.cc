// Any bytes as a message of some service, cut into pieces anywhere, as a transport may cut it: the verdict of the
// bounds and the weight are those of the bytes in one piece, and a message that is parsed takes about its weight at
// most.
//
// The input: the type, a number of cuts, the distances between cuts, the bytes.
#include "rpc/message_bounds.h"

#include <google/protobuf/message.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "bigfleet/v1alpha1/provider.pb.h"
#include "bigfleet/v1alpha1/shard.pb.h"
#include "muster/v1/agent.pb.h"
#include "muster/v1/cluster.pb.h"
#include "persys/control/v1/control.pb.h"

namespace {

using namespace muster;
using Pieces = std::vector<std::string_view>;

const google::protobuf::Message& TypeOf(uint8_t kind) {
  static const std::array<std::unique_ptr<google::protobuf::Message>, 6> types = {
      std::make_unique<bigfleet::v1alpha1::OperatorMessage>(),
      std::make_unique<bigfleet::v1alpha1::MachineList>(),
      std::make_unique<v1::ApplySpecRequest>(),
      std::make_unique<v1::JoinMessage>(),
      std::make_unique<v1::ListedOnAgent>(),
      std::make_unique<persys::control::v1::ControlMessage>()};
  return *types[kind % types.size()];
}

Pieces Cut(std::string_view bytes, std::string_view distances) {
  Pieces pieces;
  for (const char distance : distances) {
    const size_t length = std::min<size_t>(static_cast<unsigned char>(distance), bytes.size());
    pieces.push_back(bytes.substr(0, length));  // some are empty
    bytes.remove_prefix(length);
  }
  pieces.push_back(bytes);
  return pieces;
}

// A field that no message has, so large that messages with it are looked at.
std::string Ballast() {
  constexpr size_t kSize = rpc::kHarmlessBytes;
  std::string field = "\xFA\xFF\xFF\xFF\x0F";  // the highest number, with a length
  for (size_t rest = kSize; rest > 0; rest >>= 7) {
    field += static_cast<char>((rest & 0x7F) | (rest > 0x7F ? 0x80 : 0));
  }
  return field + std::string(kSize, 'x');
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const google::protobuf::Message& type = TypeOf(data[0]);
  const size_t cuts = std::min<size_t>(data[1], size - 2);
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const std::string_view bytes = all.substr(2 + cuts);
  const Pieces pieces = Cut(bytes, all.substr(2, cuts));

  const auto weight = rpc::WeighMessage(*type.GetDescriptor(), Pieces{bytes}, {});
  MUSTER_CHECK(rpc::WeighMessage(*type.GetDescriptor(), pieces, {}) == weight, "cut, it has another weight");
  const std::unique_ptr<google::protobuf::Message> message(type.New());
  const size_t empty = message->SpaceUsedLong();
  if (weight && message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    MUSTER_CHECK(message->SpaceUsedLong() <= empty + 2 * *weight, "{} bytes take {}, and weigh {}: {}", bytes.size(),
                 message->SpaceUsedLong(), *weight, type.GetTypeName() + " " + message->ShortDebugString());
  }

  static const std::string ballast = Ballast();
  const rpc::MessageBounds tight{.bytes = 4 << 20, .memory = 2 * ballast.size(), .rows = 8};
  const std::string whole = ballast + std::string(bytes);
  Pieces with_ballast = pieces;
  with_ballast.insert(with_ballast.begin(), ballast);
  MUSTER_CHECK(rpc::CheckBounds(*type.GetDescriptor(), with_ballast, tight) ==
                   rpc::CheckBounds(*type.GetDescriptor(), Pieces{whole}, tight),
               "cut, it has another verdict");
  return 0;
}
