// Any bytes as a record of the store: it is refused, or what was read is carried by what is written of it.
#include "core/scheduler/records.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/codec.h"

namespace {

namespace scheduler = muster::scheduler;

template <class Decode>
void CheckCarried(std::string_view text, Decode decode) {
  const auto record = decode(text);
  if (!record) {
    MUSTER_CHECK(record.error().code() == muster::Code::kInvalidArgument, "{}", record.error().ToString());
    return;
  }
  const auto again = decode(scheduler::Encode(*record));
  MUSTER_CHECK(again.has_value(), "{}", again.error().ToString());
  MUSTER_CHECK(muster::codec::ToBytes(*again) == muster::codec::ToBytes(*record), "{}",
               muster::codec::Describe(*record));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // What is written may be longer than what is read, which has a limit.
  constexpr size_t kLongest = 1u << 16;
  if (size > kLongest) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  CheckCarried(text, scheduler::DecodeNode);
  CheckCarried(text, scheduler::DecodeWorkload);
  CheckCarried(text, scheduler::DecodeReconciliation);
  CheckCarried(text, scheduler::DecodeEvent);
  CheckCarried(text, scheduler::DecodeSet);
  CheckCarried(text, scheduler::DecodeQuota);
  return 0;
}
