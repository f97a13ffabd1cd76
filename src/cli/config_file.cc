#include "cli/config_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "host/text_file.h"
#include "model/text_scalars.h"
#include "model/yaml_reader.h"

namespace muster::cli {

using model::TextValue;

Result<ConfigFile> ReadConfigFile(const std::string& path, const std::vector<std::string>& known) {
  auto text = host::ReadTextFile(path);
  if (!text) return InvalidArgument(fmt::format("--config: {}", text.error().message()));
  ConfigFile file;
  MUSTER_ASSIGN_OR_RETURN(const std::vector<TextValue> documents, model::ReadYaml(*text, path));
  if (documents.empty()) return file;
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
      return std::unexpected(model::TextError(
          path, field.position, model::FieldPath("", field.key),
          fmt::format("there is no such option{}", nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest))));
    }
    const bool list = field.value.kind == TextValue::Kind::kList;
    std::vector<TextValue> one;
    if (!list) one.push_back(field.value);
    for (const TextValue& value : list ? field.value.items : one) {
      if (value.kind != TextValue::Kind::kScalar) {
        return std::unexpected(model::TextError(
            path, value.position, model::FieldPath("", field.key),
            fmt::format("a value or a list of values is expected, not {}", model::KindName(value.kind))));
      }
      file[field.key].push_back(value.scalar);
    }
  }
  return file;
}

}  // namespace muster::cli
