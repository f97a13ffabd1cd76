#include "cli/config_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "host/text_file.h"
#include "model/text_scalars.h"
#include "model/yaml_reader.h"

namespace muster::cli {

using model::TextValue;

Result<ConfigEntries> ReadConfigEntries(const std::string& path, const std::vector<std::string>& known) {
  MUSTER_ASSIGN_OR_RETURN(const std::string text, host::ReadTextFile(path));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<TextValue> documents, model::ReadYaml(text, path));
  ConfigEntries read;
  if (documents.empty()) return read;
  if (documents.size() > 1)
    return InvalidArgument(fmt::format("{}: one document is expected, not {}", path, documents.size()));
  const TextValue& root = documents[0];
  if (root.kind != TextValue::Kind::kMap) {
    return std::unexpected(model::TextError(
        path, root.position, "", fmt::format("a map of options is expected, not {}", model::KindName(root.kind))));
  }
  for (const model::TextField& field : root.fields) {
    if (std::ranges::find(known, field.key) == known.end()) {
      const std::string nearest = model::NearestName(field.key, known);
      read.problems.push_back(model::TextError(
          path, field.position, model::FieldPath("", field.key),
          fmt::format("there is no such option{}", nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest))));
      continue;
    }
    ConfigEntry entry{.key = field.key, .values = {}, .position = field.position};
    const bool list = field.value.kind == TextValue::Kind::kList;
    std::vector<TextValue> one;
    if (!list) one.push_back(field.value);
    bool scalars = true;
    for (const TextValue& value : list ? field.value.items : one) {
      entry.values.push_back(value.scalar);
      if (!scalars || value.kind == TextValue::Kind::kScalar) continue;
      scalars = false;
      read.problems.push_back(model::TextError(
          path, value.position, model::FieldPath("", field.key),
          fmt::format("a value or a list of values is expected, not {}", model::KindName(value.kind))));
    }
    if (scalars) read.entries.push_back(std::move(entry));
  }
  return read;
}

Result<ConfigFile> ReadConfigFile(const std::string& path, const std::vector<std::string>& known) {
  const auto read = ReadConfigEntries(path, known);
  if (!read && read.error().code() != Code::kInvalidArgument) {
    return InvalidArgument(fmt::format("--config: {}", read.error().message()));
  }
  if (!read) return std::unexpected(read.error());
  if (!read->problems.empty()) return std::unexpected(read->problems.front());
  ConfigFile file;
  for (const ConfigEntry& entry : read->entries) file[entry.key] = entry.values;
  return file;
}

}  // namespace muster::cli
