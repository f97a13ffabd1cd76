// Any bytes as a YAML file: read or refused with one printable line, never more. What is read keeps the reader's
// promises, and the decoders of the model take it or refuse it.
#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>

#include "base/check.h"
#include "model/decode.h"
#include "model/yaml_reader.h"

namespace {

using muster::Status;
using muster::model::TextValue;

void CheckRefusal(const Status& status) {
  MUSTER_CHECK(status.code() == muster::Code::kInvalidArgument, "{}", status.ToString());
  for (const char c : status.message()) MUSTER_CHECK(static_cast<unsigned char>(c) >= 0x20, "a control character");
}

void CheckValue(const TextValue& value, int depth) {
  const bool container = value.kind == TextValue::Kind::kList || value.kind == TextValue::Kind::kMap;
  MUSTER_CHECK(depth + (container ? 1 : 0) <= muster::model::TextLimits().max_depth);
  MUSTER_CHECK(value.scalar.find('\0') == std::string::npos);
  for (const TextValue& item : value.items) CheckValue(item, depth + 1);
  std::set<std::string_view> keys;
  for (const auto& field : value.fields) {
    MUSTER_CHECK(keys.insert(field.key).second, "{} twice", field.key);
    MUSTER_CHECK(field.position.line > 0 && field.position.column > 0);
    CheckValue(field.value, depth + 1);
  }
}

template <class Read>
void Decode(const TextValue& value, Read read) {
  muster::model::TextErrors errors("fuzz");
  muster::model::TextReader reader(errors, value);
  read(reader);
  if (!errors.ok()) CheckRefusal(errors.status());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto documents = muster::model::ReadYaml(text, "fuzz");
  if (!documents) {
    CheckRefusal(documents.error());
    return 0;
  }
  for (const TextValue& document : *documents) {
    CheckValue(document, 0);
    Decode(document, [](auto& reader) { muster::model::ReadNeed(reader, "cluster"); });
    Decode(document, [](auto& reader) { muster::model::ReadMachine(reader); });
  }
  return 0;
}
