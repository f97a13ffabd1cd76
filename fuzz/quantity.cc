// Any text is a quantity or refused with a reason; a quantity that was read can be written and read again.
#include "model/quantity.h"

#include "base/check.h"
#include "model/resources.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::model;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto milli = ParseQuantity(text);
  Resources resources;
  const bool parsed = resources.Parse("memory", text).ok();
  MUSTER_CHECK(parsed == (milli && *milli >= 0));
  if (!milli) {
    MUSTER_CHECK(milli.error().message().starts_with("quantity \"") && milli.error().message().size() < 1000);
    return 0;
  }
  MUSTER_CHECK(resources.Get("memory") == (*milli > 0 ? *milli : 0));
  MUSTER_CHECK(ParseQuantity(FormatQuantity(*milli)) == *milli);
  MUSTER_CHECK(ParseQuantity(FormatQuantityFor("memory", *milli)) == *milli);
  // Zeros in front change nothing, and a minus only the sign.
  const bool has_sign = text.front() == '+' || text.front() == '-';
  const std::string digits(text.substr(has_sign ? 1 : 0));
  MUSTER_CHECK(ParseQuantity((*milli < 0 ? "-00" : "00") + digits) == *milli);
  if (*milli > 0) MUSTER_CHECK(ParseQuantity("-" + digits) == -*milli);
  return 0;
}
