#include "cli/role_verb.h"

#include "host/log_backend.h"

namespace muster::cli {

void BindSettings(Verb& verb, host::Settings& settings) {
  using Kind = host::Setting::Kind;
  for (host::Setting& setting : settings.all()) {
    switch (setting.kind) {
      case Kind::kValue: verb.Option(setting.flag, setting.text, setting.help); break;
      case Kind::kPath: verb.Path(setting.flag, setting.text, setting.help); break;
      case Kind::kChoice: verb.Choice(setting.flag, setting.text, setting.choices, setting.help); break;
      case Kind::kList: verb.Option(setting.flag, setting.items, setting.help); break;
      case Kind::kSwitch:
        verb.Flag(setting.on ? setting.flag + ",!--no-" + setting.flag.substr(2) : setting.flag, setting.on,
                  setting.help);
        break;
    }
  }
  verb.Configurable();
}

Result<int> ServeRole(const std::function<std::unique_ptr<host::Role>()>& make, log::Level log_level,
                      host::Signals::Options options) {
  host::Signals signals(options);  // first: every thread inherits the blocked signals
  host::InstallLogBackend(log_level);
  const std::unique_ptr<host::Role> role = make();
  if (Status status = host::RunRole(*role, signals); !status.ok()) return std::unexpected(std::move(status));
  return kOk;
}

}  // namespace muster::cli
