// What every refusal of a message must be: INVALID_ARGUMENT, a field and what is wrong with it, fit to print.
#pragma once

#include "base/check.h"
#include "base/status.h"

inline void CheckRefusal(const muster::Status& status) {
  MUSTER_CHECK(status.code() == muster::Code::kInvalidArgument && status.message().contains(": "), "{}",
               status.ToString());
  for (const char c : status.message()) MUSTER_CHECK(static_cast<unsigned char>(c) >= 0x20, "a control character");
}
