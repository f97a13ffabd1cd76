#include "host/settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "model/names.h"

namespace muster::host {

Setting& Settings::New(std::string flag, Setting::Kind kind, std::string rule, std::string help) {
  MUSTER_CHECK(flag.starts_with("--"), "setting {} has no dashes", flag);
  MUSTER_CHECK(Find(flag) == nullptr, "setting {} is declared twice", flag);
  Setting& setting = settings_.emplace_back();
  setting.flag = std::move(flag);
  setting.kind = kind;
  setting.rule = std::move(rule);
  setting.help = std::move(help);
  return setting;
}

Settings& Settings::Late(std::string flag, std::string fallback, std::string rule, std::string help) {
  Setting& setting = New(std::move(flag), Setting::Kind::kValue, std::move(rule), std::move(help));
  setting.text = setting.fallback = std::move(fallback);
  setting.land = [] { return Status(); };
  return *this;
}

Settings& Settings::Path(std::string flag, std::filesystem::path& into, std::string help) {
  Setting& setting = New(std::move(flag), Setting::Kind::kPath, "a path", std::move(help));
  setting.land = [&setting, &into]() -> Status {
    into = setting.text;
    return {};
  };
  return *this;
}

Settings& Settings::Switch(std::string flag, bool& into, std::string help) {
  Setting& setting = New(std::move(flag), Setting::Kind::kSwitch, "", std::move(help));
  setting.on = into;
  setting.fallback = into ? "on" : "off";
  setting.land = [&setting, &into]() -> Status {
    into = setting.on;
    return {};
  };
  return *this;
}

Settings& Settings::Require(std::string_view flag, std::string advice) {
  const auto setting = std::ranges::find(settings_, flag, &Setting::flag);
  MUSTER_CHECK(setting != settings_.end(), "there is no setting {}", flag);
  setting->if_missing = std::move(advice);
  return *this;
}

Settings& Settings::Environment(std::string_view flag, std::string variable, EnvironmentText read) {
  const auto setting = std::ranges::find(settings_, flag, &Setting::flag);
  MUSTER_CHECK(setting != settings_.end(), "there is no setting {}", flag);
  variables_.push_back({.setting = *setting, .name = std::move(variable), .read = std::move(read)});
  return *this;
}

void Settings::ReadEnvironment(const std::function<const char*(const char*)>& get) {
  for (const Variable& variable : variables_) {
    const char* value = get(variable.name.c_str());
    if (value == nullptr || *value == '\0') continue;
    variable.setting.text = variable.read ? variable.read(value) : value;
  }
}

Settings& Settings::Check(std::function<Status()> check) {
  checks_.push_back(std::move(check));
  return *this;
}

Status Settings::Land() {
  for (const Setting& setting : settings_) {
    if (!setting.if_missing.empty() && setting.text.empty()) {
      return {Code::kInvalidArgument, fmt::format("{} is missing; {}", setting.flag, setting.if_missing)};
    }
    MUSTER_RETURN_IF_ERROR(setting.land());
  }
  for (const auto& check : checks_) MUSTER_RETURN_IF_ERROR(check());
  return {};
}

const Setting* Settings::Find(std::string_view flag) const {
  const auto setting = std::ranges::find(settings_, flag, &Setting::flag);
  return setting == settings_.end() ? nullptr : &*setting;
}

const std::string& Settings::text(std::string_view flag) const {
  const Setting* setting = Find(flag);
  MUSTER_CHECK(setting != nullptr, "there is no setting {}", flag);
  return setting->text;
}

Status Settings::Give(std::string_view flag, std::string value) {
  const auto setting = std::ranges::find(settings_, flag, &Setting::flag);
  if (setting == settings_.end()) return {Code::kInvalidArgument, fmt::format("there is no setting {}", flag)};
  switch (setting->kind) {
    case Setting::Kind::kSwitch: setting->on = value == "on"; break;
    case Setting::Kind::kList: setting->items.push_back(std::move(value)); break;
    default: setting->text = std::move(value); break;
  }
  return {};
}

Status Settings::Refusal(const Setting& setting, std::string_view text, std::string_view detail) {
  if (!detail.empty()) return {Code::kInvalidArgument, fmt::format("{}: {}", setting.flag, detail)};
  return {Code::kInvalidArgument,
          fmt::format("{} must be {}, not {}", setting.flag, setting.rule, model::Quoted(text))};
}

std::string Settings::DocsTable() const {
  std::string table = "| flag | default | value | |\n|---|---|---|---|\n";
  for (const Setting& setting : settings_) {
    std::string flags = fmt::format("`{}`", setting.flag);
    if (setting.kind == Setting::Kind::kSwitch && setting.fallback == "on") {
      flags += fmt::format(", `--no-{}`", setting.flag.substr(2));
    }
    const std::string fallback = !setting.if_missing.empty() ? "required"
                                 : setting.fallback.empty()  ? ""
                                                             : fmt::format("`{}`", setting.fallback);
    table += fmt::format("| {} | {} | {} | {} |\n", flags, fallback, setting.rule, setting.help);
  }
  return table;
}

}  // namespace muster::host
