// Settings: what an operator can set of a role. A setting is declared once, with its name, its default, what its value
// must be, and the variable that its value goes to. The declaration gives the flag, the environment variable, the key
// of the configuration file (cli/role_verb.h binds all three), the validation with its error, and the row in the docs.
//
//   settings.Add("--cycle-interval", config.cycle_interval, "1s", PositiveDuration(), "Between two decisions");
//   settings.Path("--audit-log", options.audit.path, "File for every action and its outcome");
//
// A text that is refused gives INVALID_ARGUMENT, "--phase1-workers must be a whole number from 1 to 256, not \"0\"".
//
// Thread-safety: one thread. The variables handed in outlive the object.
#pragma once

#include <deque>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "host/parser.h"

namespace muster::host {

// One setting as it was declared, and what the operator gave for it.
struct Setting {
  enum class Kind : uint8_t {
    kValue,
    kPath,    // an empty one is refused
    kChoice,  // one of `choices`
    kSwitch,  // on or off
    kList,    // may be given several times
  };
  std::string flag;  // "--cycle-interval"
  Kind kind = Kind::kValue;
  std::string fallback;  // its default as an operator would write it; empty: none
  std::string rule;      // as Parser::rule
  std::string help;
  std::vector<std::string> choices;
  std::string if_missing;  // what to do if it is not given; empty: it need not be

  // Given by the operator; before that, the default.
  std::string text;
  bool on = false;
  std::vector<std::string> items;

  std::function<Status()> land;  // reads what was given into its variable
};

class Settings {
 public:
  using EnvironmentText = std::function<std::string(std::string value)>;

  template <class T>
  Settings& Add(std::string flag, T& into, std::string fallback, Parser<T> parser, std::string help) {
    Setting& setting = New(std::move(flag), Setting::Kind::kValue, std::move(parser.rule), std::move(help));
    setting.text = setting.fallback = std::move(fallback);
    setting.land = [&setting, &into, read = std::move(parser.read)]() -> Status {
      auto value = read(setting.text);
      if (!value) return Refusal(setting, setting.text, value.error());
      into = *std::move(value);
      return {};
    };
    return *this;
  }
  // A text that a Check reads with text(), because other settings decide what it means.
  Settings& Late(std::string flag, std::string fallback, std::string rule, std::string help);
  // A file or directory; none unless given.
  Settings& Path(std::string flag, std::filesystem::path& into, std::string help);
  // A switch; its default is what the variable holds. One that is on has a second flag, --no-NAME.
  Settings& Switch(std::string flag, bool& into, std::string help);
  // Given several times, or once with commas.
  template <class T>
  Settings& List(std::string flag, std::vector<T>& into, Parser<T> parser, std::string help) {
    Setting& setting = New(std::move(flag), Setting::Kind::kList, std::move(parser.rule), std::move(help));
    setting.land = [&setting, &into, read = std::move(parser.read)]() -> Status {
      into.clear();
      for (const std::string& item : setting.items) {
        for (const std::string_view part : SplitAt(item, ',')) {
          auto value = read(part);
          if (!value) return Refusal(setting, part, value.error());
          into.push_back(*std::move(value));
        }
      }
      return {};
    };
    return *this;
  }
  template <class E>
  Settings& Choice(std::string flag, E& into, const std::vector<std::pair<std::string, E>>& names, std::string fallback,
                   std::string help) {
    Setting& setting = New(std::move(flag), Setting::Kind::kChoice, "", std::move(help));
    for (const auto& [name, value] : names) {
      setting.rule += (setting.rule.empty() ? "one of " : ", ") + name;
      setting.choices.push_back(name);
    }
    setting.text = setting.fallback = std::move(fallback);
    setting.land = [&setting, &into, names]() -> Status {
      for (const auto& [name, value] : names) {
        if (name != setting.text) continue;
        into = value;
        return {};
      }
      return Refusal(setting, setting.text, "");
    };
    return *this;
  }

  // An environment variable of another program that means the same: ReadEnvironment takes the setting's value from it.
  // `read` makes the text that an operator would write of its value.
  Settings& Environment(std::string_view flag, std::string variable, EnvironmentText read = {});
  // The setting declared with this flag must be given; `advice` says what to do: "name a directory for the state".
  Settings& Require(std::string_view flag, std::string advice);
  // What concerns several settings together, or needs more than one text: called after all have landed, in the order of
  // the declarations.
  Settings& Check(std::function<Status()> check);

  // Values from variables declared with Environment, of those that `get` knows; below everything that is given
  // afterwards.
  void ReadEnvironment(const std::function<const char*(const char* variable)>& get);

  // Puts every value into its variable. INVALID_ARGUMENT, naming the flag and what to do, for the first that is missing
  // or refused.
  Status Land();

  // What was given for a flag that was declared.
  const std::string& text(std::string_view flag) const;
  // As if the operator had given it; INVALID_ARGUMENT if there is no such setting. For tests.
  Status Give(std::string_view flag, std::string value);

  std::deque<Setting>& all() { return settings_; }
  // The settings as a Markdown table, one row each.
  std::string DocsTable() const;

 private:
  Setting& New(std::string flag, Setting::Kind kind, std::string rule, std::string help);
  const Setting* Find(std::string_view flag) const;
  static Status Refusal(const Setting& setting, std::string_view text, std::string_view detail);

  std::deque<Setting> settings_;  // never moved: their `land` refers to them
  std::vector<std::function<Status()>> checks_;
  struct Variable {
    Setting& setting;
    std::string name;
    EnvironmentText read;
  };
  std::vector<Variable> variables_;
};

}  // namespace muster::host
