#include "cli/config_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "cli/command_line.h"
#include "cli/config_file.h"
#include "model/names.h"

namespace muster::cli {
namespace {

using host::Setting;

// The setting that a key of the file is about. A switch that is on can also be said as no-NAME.
struct Meant {
  Setting& setting;
  bool negated = false;
};
std::vector<std::pair<std::string, Meant>> KeysOf(host::Settings& settings) {
  std::vector<std::pair<std::string, Meant>> keys;
  for (Setting& setting : settings.all()) {
    const std::string name = setting.flag.substr(2);
    keys.emplace_back(name, Meant{.setting = setting});
    if (setting.kind == Setting::Kind::kSwitch && setting.fallback == "on") {
      keys.emplace_back("no-" + name, Meant{.setting = setting, .negated = true});
    }
  }
  return keys;
}

// Gives the setting its values and reads them; what is refused is said without the dashes of the flag.
std::string Give(const ConfigEntry& entry, const Meant& meant) {
  Setting& setting = meant.setting;
  if (setting.kind == Setting::Kind::kList) {
    setting.items = entry.values;
  } else if (entry.values.size() != 1) {
    return fmt::format("{} takes one value, not {}", entry.key, entry.values.size());
  } else if (setting.kind == Setting::Kind::kSwitch) {
    const auto on = SwitchValue(entry.values[0]);
    if (!on) return fmt::format("{} must be true or false, not {}", entry.key, model::Quoted(entry.values[0]));
    setting.on = *on != meant.negated;
  } else {
    setting.text = entry.values[0];
    if (setting.kind == Setting::Kind::kPath && setting.text.empty()) {
      return fmt::format("{}: the path is empty; name one, or leave the key out", entry.key);
    }
  }
  const Status landed = setting.land();
  if (landed.ok()) return "";
  const std::string& message = landed.message();
  return message.starts_with(setting.flag) ? message.substr(2) : fmt::format("{}: {}", entry.key, message);
}

// What must be given and will be elsewhere: a directory in which nothing is, or no value at all.
void LeaveOut(Setting& setting) {
  setting.if_missing.clear();
  if (setting.kind == Setting::Kind::kPath) {
    setting.text = "/dev/null/given-elsewhere";
  } else {
    setting.land = [] { return Status(); };
  }
}

}  // namespace

Result<ConfigVerdict> CheckConfig(const std::string& path, host::Settings& settings) {
  const auto keys = KeysOf(settings);
  std::vector<std::string> known;
  for (const auto& [key, meant] : keys) known.push_back(key);
  MUSTER_ASSIGN_OR_RETURN(const ConfigEntries read, ReadConfigEntries(path, known));
  ConfigVerdict verdict;
  for (const Status& problem : read.problems) verdict.problems.push_back(problem.message());
  for (const ConfigEntry& entry : read.entries) {
    const auto key = std::ranges::find(keys, entry.key, [](const auto& one) { return one.first; });
    const std::string problem = Give(entry, key->second);
    if (problem.empty()) {
      ++verdict.settings;
    } else {
      verdict.problems.push_back(model::TextError(path, entry.position, "", problem).message());
    }
  }
  for (Setting& setting : settings.all()) {
    if (setting.if_missing.empty() || !setting.text.empty()) continue;
    verdict.missing.push_back(setting.flag);
    LeaveOut(setting);
  }
  if (!verdict.problems.empty()) return verdict;
  if (const Status together = settings.Land(); !together.ok()) {
    verdict.problems.push_back(fmt::format("{}: {}", path, together.message()));
  }
  return verdict;
}

}  // namespace muster::cli
