// Any bytes as JSON lines, against another parser: what ours accepts, that one accepts with the same content, and what
// only ours refuses is refused for one of our own rules.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>

#include "base/check.h"
#include "model/decode.h"
#include "model/json_reader.h"

namespace {

using muster::Status;
using muster::model::TextValue;

void CheckSame(const TextValue& ours, const nlohmann::json& theirs) {
  switch (ours.kind) {
    case TextValue::Kind::kNull: MUSTER_CHECK(theirs.is_null()); return;
    case TextValue::Kind::kList:
      MUSTER_CHECK(theirs.is_array() && theirs.size() == ours.items.size());
      for (size_t i = 0; i < ours.items.size(); ++i) CheckSame(ours.items[i], theirs[i]);
      return;
    case TextValue::Kind::kMap:
      MUSTER_CHECK(theirs.is_object() && theirs.size() == ours.fields.size());
      for (const auto& field : ours.fields) CheckSame(field.value, theirs.at(field.key));
      return;
    case TextValue::Kind::kScalar:
      if (ours.quoted) {
        MUSTER_CHECK(theirs.is_string() && theirs.get<std::string>() == ours.scalar, "{}", ours.scalar);
      } else if (theirs.is_boolean()) {
        MUSTER_CHECK(ours.scalar == (theirs.get<bool>() ? "true" : "false"));
      } else {
        MUSTER_CHECK(theirs.is_number() && nlohmann::json::parse(ours.scalar) == theirs, "{}", ours.scalar);
      }
  }
}

// Refused by us alone: our rules, not the grammar's.
bool IsOurRule(const std::string& message) {
  for (const char* rule : {"given twice", "nested deeper", "NUL"}) {
    if (message.find(rule) != std::string::npos) return true;
  }
  return false;
}

void CheckAgainstOther(std::string_view text) {
  constexpr int kOutOfRange = 406;  // a number beyond double: a limit of theirs
  const auto ours = muster::model::ReadJson(text, "fuzz");
  try {
    const nlohmann::json theirs = nlohmann::json::parse(text);
    if (ours) {
      CheckSame(*ours, theirs);
    } else {
      MUSTER_CHECK(IsOurRule(ours.error().message()), "only we refuse: {}", ours.error().message());
    }
  } catch (const nlohmann::json::exception& error) {
    MUSTER_CHECK(!ours || error.id == kOutOfRange, "only we accept: {}", error.what());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // The other parser skips a byte order mark and ends at a NUL byte; ours refuses both.
  if (!text.starts_with("\xEF\xBB\xBF") && text.find('\0') == std::string_view::npos) CheckAgainstOther(text);

  std::istringstream in{std::string(text)};
  const Status status = muster::model::ReadJsonLines(in, "fuzz",
                                                     [](const TextValue& row) {
                                                       muster::model::TextErrors errors("fuzz");
                                                       muster::model::TextReader reader(errors, row);
                                                       muster::model::ReadMachine(reader);
                                                       reader.RefuseUnknown();
                                                       return errors.status();
                                                     },
                                                     {.max_line_bytes = 1000});
  MUSTER_CHECK(status.ok() || status.code() == muster::Code::kInvalidArgument, "{}", status.ToString());
  return 0;
}
