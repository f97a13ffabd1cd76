// JsonObject: writes one flat JSON object, for log lines and small answers.
//
//   JsonObject().Add("machine", id).Add("age_s", 3.5).Take()   ->   {"machine":"m-7","age_s":3.5}
//
// Keys appear in the order of Add; the caller keeps them distinct. Text that is not UTF-8 is written with U+FFFD in
// place of each bad byte, so the result is always valid JSON; NaN and infinities become strings.
//
// Thread-safety: one thread at a time.
#pragma once

#include <string>
#include <string_view>

#include "base/log.h"

namespace muster::host {

// `text` with quotes around it, escaped.
std::string JsonQuote(std::string_view text);

class JsonObject {
 public:
  JsonObject& Add(std::string_view key, const log::Value& value);
  // The object's text; the builder is empty afterwards.
  std::string Take();

 private:
  std::string text_;
};

}  // namespace muster::host
