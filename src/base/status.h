// Status: how something in the world went wrong, and what the caller may do about it.
//
// Codes are gRPC's, number for number, so a status crosses the wire unchanged. Failures of the world travel as Status
// or Result<T>; a bug in the program is a MUSTER_CHECK (check.h). No exception leaves a library.
//
// Thread-safety: a value type.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

#include "base/fields.h"

namespace muster {

enum class Code : uint8_t {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

// The code's name as gRPC spells it ("NOT_FOUND"); "CODE_<n>" for a number outside the enum.
std::string CodeName(Code code);

class [[nodiscard]] Status {
 public:
  Status() = default;  // OK
  // A message for people: what happened, to which object, and what to do.
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }
  // "OK", or "NOT_FOUND: machine m-7 is not in the inventory".
  std::string ToString() const;

  bool operator==(const Status&) const = default;

  MUSTER_FIELDS(Status, code_, message_)

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

template <class T>
using Result = std::expected<T, Status>;

inline std::unexpected<Status> Error(Code code, std::string message) {
  return std::unexpected<Status>(Status(code, std::move(message)));
}
inline std::unexpected<Status> InvalidArgument(std::string message) {
  return Error(Code::kInvalidArgument, std::move(message));
}

}  // namespace muster

#define MUSTER_CONCAT_INNER(a, b) a##b
#define MUSTER_CONCAT(a, b) MUSTER_CONCAT_INNER(a, b)

// Returns the status from the enclosing function (which returns Status) unless it is OK.
#define MUSTER_RETURN_IF_ERROR(expr)                                                           \
  do {                                                                                         \
    if (::muster::Status muster_status_ = (expr); !muster_status_.ok()) return muster_status_; \
  } while (false)

// lhs = value of a Result expression, or return its error from a function that returns Result<...>.
#define MUSTER_ASSIGN_OR_RETURN(lhs, expr) MUSTER_ASSIGN_IMPL(MUSTER_CONCAT(muster_result_, __LINE__), lhs, expr)
#define MUSTER_ASSIGN_IMPL(result, lhs, expr)                                       \
  auto result = (expr);                                                             \
  if (!result) return std::unexpected<::muster::Status>(std::move(result).error()); \
  lhs = *std::move(result)
