#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "cli/config_file.h"
#include "cli/printable_lines.h"
#include "cli/table.h"
#include "model/text_scalars.h"

namespace muster::cli {
namespace {

// A verb's action, kept where the parser keeps the verb.
class VerbApp final : public CLI::App {
 public:
  using CLI::App::App;
  std::function<Result<int>()> action;
  bool instead = false;
  std::function<int()> instead_action;
  bool configurable = false;
  std::string config_file;
  int usage_code = kUsage;
  std::string names_of;
  std::vector<std::string> examples;
  std::map<const CLI::Option*, std::vector<std::string>> choices;
};

std::shared_ptr<VerbApp> MakeApp(std::string summary, const std::string& name) {
  auto app = std::make_shared<VerbApp>(std::move(summary), name);
  app->set_help_flag("-h,--help", "Show this help");
  app->get_formatter()->column_width(34);
  app->require_subcommand(0, 1);
  return app;
}

std::vector<std::string> VerbNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(verb->get_name());
  }
  return names;
}

std::vector<std::string> OptionNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// "muster fleet machines"
std::string FullName(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : FullName(*parent) + " " + app.get_name();
}

const CLI::App& Chosen(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : Chosen(*chosen.front());
}

int Fail(int code, std::string_view sentence) {
  std::fflush(stdout);
  fmt::memory_buffer line;
  fmt::format_to(std::back_inserter(line), "muster: {}\n",
                 Printable(sentence));  // part of it may be what a server said
  std::fwrite(line.data(), 1, line.size(), stderr);
  return code;
}

std::string Unknown(std::string_view what, const std::string& word, const std::vector<std::string>& known,
                    const CLI::App& app) {
  const std::string nearest = model::NearestName(word, known);
  return fmt::format("{} \"{}\" is unknown{}; see {} --help", what, word,
                     nearest.empty() ? "" : fmt::format(", did you mean {}?", nearest), FullName(app));
}

// The verb that was given words it does not take: they may stand before or after the name of the next verb.
const CLI::App& WithExtras(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() || !app.remaining().empty() ? app : WithExtras(*chosen.front());
}

std::string ExplainExtra(const CLI::App& app) {
  const std::vector<std::string> extras = app.remaining();
  const std::string word = extras.empty() ? "" : extras.front();
  if (word.starts_with('-')) return Unknown("option", word, OptionNames(app), app);
  if (const std::vector<std::string> verbs = VerbNames(app); !verbs.empty()) return Unknown("verb", word, verbs, app);
  return fmt::format("\"{}\" was not expected; see {} --help", word, FullName(app));
}

int ExplainParseError(const CLI::App& root, const CLI::ParseError& error) {
  if (dynamic_cast<const CLI::CallForHelp*>(&error) != nullptr) {
    Print(root.help());
    return kOk;
  }
  if (dynamic_cast<const CLI::CallForVersion*>(&error) != nullptr) {
    Print(std::string(error.what()) + "\n");
    return kOk;
  }
  const int code = static_cast<const VerbApp&>(Chosen(root)).usage_code;
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) return Fail(code, ExplainExtra(WithExtras(root)));
  return Fail(code, fmt::format("{}; see {} --help", error.what(), FullName(Chosen(root))));
}

// "MUSTER_SHARD_CYCLE_INTERVAL"
std::string EnvironmentName(const CLI::App& verb, std::string_view option) {
  std::string name = fmt::format("MUSTER_{}_{}", verb.get_name(), option);
  for (char& c : name) c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

// The verb that the words name, and how many words that takes.
std::pair<CLI::App*, size_t> VerbOf(CLI::App& root, const std::vector<std::string>& words) {
  CLI::App* app = &root;
  size_t used = 0;
  for (; used < words.size(); ++used) {
    const auto verbs = app->get_subcommands([](const CLI::App*) { return true; });
    const auto next = std::ranges::find(verbs, words[used], [](const CLI::App* verb) { return verb->get_name(); });
    if (next == verbs.end()) break;
    app = *next;
  }
  return {app, used};
}

// The value that words give an option, if they name it.
std::optional<std::string> Given(const std::vector<std::string>& words, const std::string& option) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == option) return i + 1 < words.size() ? words[i + 1] : "";
    if (words[i].starts_with(option + "=")) return words[i].substr(option.size() + 1);
  }
  return std::nullopt;
}

// The words of the command line, and behind the verb what the environment and the configuration file say of options
// that it does not name.
Result<std::vector<std::string>> WithConfiguration(CLI::App& root, std::vector<std::string> words) {
  const auto [app, used] = VerbOf(root, words);
  if (app == &root || !static_cast<VerbApp*>(app)->configurable) return words;
  const auto environment = [&](std::string_view option) -> std::optional<std::string> {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing writes the environment
    const char* value = std::getenv(EnvironmentName(*app, option).c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
  std::vector<std::string> known;
  for (const std::string& name : OptionNames(*app)) {
    if (name != "--help" && name != "--config") known.push_back(name.substr(2));
  }
  ConfigFile file;
  std::optional<std::string> path = Given(words, "--config");
  if (!path) path = environment("config");
  if (path && !path->empty()) {
    MUSTER_ASSIGN_OR_RETURN(file, ReadConfigFile(*path, known));
  }
  std::vector<std::string> added;
  for (const std::string& name : known) {
    if (Given(words, "--" + name)) continue;
    std::vector<std::string> values;
    if (const auto value = environment(name)) {
      values = {*value};
    } else if (const auto found = file.find(name); found != file.end()) {
      values = found->second;
    }
    for (const std::string& value : values) added.push_back(fmt::format("--{}={}", name, value));
  }
  words.insert(words.begin() + static_cast<ptrdiff_t>(used), added.begin(), added.end());
  return words;
}

CommandTree TreeOf(const CLI::App& app) {
  const auto& verb = static_cast<const VerbApp&>(app);
  CommandTree tree{.name = app.get_name(),
                   .summary = app.get_description(),
                   .options = {},
                   .arguments = {},
                   .names_of = verb.names_of,
                   .examples = verb.examples,
                   .runs = static_cast<bool>(verb.action),
                   .verbs = {}};
  for (const CLI::Option* option : app.get_options()) {
    CommandOption one{.names = {},
                      .help = option->get_description(),
                      .takes_value = option->get_items_expected_max() > 0,
                      .choices = {}};
    for (const std::string& name : option->get_snames()) one.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) one.names.push_back("--" + name);
    if (one.names.empty()) {
      tree.arguments.push_back(option->get_name());
      continue;
    }
    if (const auto known = verb.choices.find(option); known != verb.choices.end()) one.choices = known->second;
    tree.options.push_back(std::move(one));
  }
  for (const CLI::App* child : app.get_subcommands([](const CLI::App*) { return true; })) {
    tree.verbs.push_back(TreeOf(*child));
  }
  return tree;
}

int RunChosen(const CLI::App& root) {
  const auto& verb = static_cast<const VerbApp&>(Chosen(root));
  if (!verb.action) {
    std::fputs(root.help().c_str(), stderr);
    return kUsage;
  }
  if (verb.instead) return verb.instead_action();
  const Result<int> result = verb.action();
  if (result) return *result;
  return Fail(result.error().code() == Code::kInvalidArgument ? verb.usage_code : kFailed, result.error().message());
}

}  // namespace

std::optional<bool> SwitchValue(const std::string& word) {
  if (word.empty() || word == "{}") return true;  // as without a word
  bool on = false;
  if (!CLI::detail::lexical_cast(word, on)) return std::nullopt;
  return on;
}

Verb& Verb::Flag(std::string name, bool& into, std::string help) {
  app_->add_flag(std::move(name), into, std::move(help));
  return *this;
}
Verb& Verb::Option(std::string name, std::string& into, std::string help) {
  app_->add_option(std::move(name), into, std::move(help))->capture_default_str();
  return *this;
}
Verb& Verb::Option(std::string name, int64_t& into, std::string help) {
  app_->add_option(std::move(name), into, std::move(help))->capture_default_str();
  return *this;
}
Verb& Verb::Option(std::string name, uint64_t& into, std::string help) {
  // The library would wrap it around to a large number.
  app_->add_option(std::move(name), into, std::move(help))
      ->capture_default_str()
      ->check(
          [](const std::string& value) -> std::string { return value.starts_with('-') ? value + " is below 0" : ""; });
  return *this;
}
Verb& Verb::Option(std::string name, double& into, std::string help) {
  app_->add_option(std::move(name), into, std::move(help))->capture_default_str();
  return *this;
}
Verb& Verb::Option(std::string name, std::vector<std::string>& into, std::string help) {
  // One word each time: the next one may be an argument.
  app_->add_option(std::move(name), into, std::move(help))->expected(1)->take_all()->allow_extra_args(false);
  return *this;
}
Verb& Verb::Option(std::string name, std::pair<std::string, std::string>& into, std::string help) {
  app_->add_option(std::move(name), into, std::move(help));
  return *this;
}
Verb& Verb::Path(std::string name, std::string& into, std::string help) {
  app_->add_option(std::move(name), into, std::move(help))->check([](const std::string& value) -> std::string {
    return value.empty() ? "the path is empty; name one, or leave the option out" : "";
  });
  return *this;
}
Verb& Verb::Choice(std::string name, std::string& into, std::vector<std::string> allowed, std::string help) {
  CLI::Option* const option =
      app_->add_option(std::move(name), into, std::move(help))->capture_default_str()->check(CLI::IsMember(allowed));
  static_cast<VerbApp*>(app_)->choices[option] = std::move(allowed);
  return *this;
}
Verb& Verb::Argument(std::string name, std::string& into, std::string help) {
  app_->add_option(std::move(name), into, std::move(help))->required();
  return *this;
}
Verb& Verb::OptionalArgument(std::string name, std::string& into, std::string help) {
  app_->add_option(std::move(name), into, std::move(help));
  return *this;
}
Verb& Verb::Arguments(std::string name, std::vector<std::string>& into, std::string help) {
  app_->add_option(std::move(name), into, std::move(help));
  return *this;
}
Verb& Verb::NamesOf(std::string what) {
  static_cast<VerbApp*>(app_)->names_of = std::move(what);
  return *this;
}
Verb& Verb::Example(const std::string& line) {
  static_cast<VerbApp*>(app_)->examples.push_back(line);
  const std::string before = app_->get_footer();
  app_->footer((before.empty() ? "Examples:" : before) + "\n  " + line);
  return *this;
}
Verb Verb::AddVerb(const std::string& name, std::string summary) {
  const auto app = MakeApp(std::move(summary), name);
  app_->add_subcommand(app);
  return Verb(*app);
}
Verb& Verb::Instead(std::string name, std::string help, std::function<int()> action) {
  auto* app = static_cast<VerbApp*>(app_);
  app->instead_action = std::move(action);
  return Flag(std::move(name), app->instead, std::move(help));
}
Verb& Verb::Configurable() {
  auto* app = static_cast<VerbApp*>(app_);
  app->configurable = true;
  return Path("--config", app->config_file,
              fmt::format("YAML file of these options, without dashes; the environment ({}) and flags come first",
                          EnvironmentName(*app_, "OPTION")));
}
Verb& Verb::UsageCode(int code) {
  static_cast<VerbApp*>(app_)->usage_code = code;
  return *this;
}
void Verb::Run(std::function<Result<int>()> action) { static_cast<VerbApp*>(app_)->action = std::move(action); }

CommandLine::CommandLine(host::BuildInfo build)
    : build_(std::move(build)),
      app_(MakeApp("Decides which machines a fleet should have, gets them, and keeps workloads running on them.",
                   "muster")) {
  app_->set_version_flag("--version", fmt::format("muster {} ({})", build_.version, build_.commit));
  app_->footer("See muster VERB --help for the options and examples of a verb.");
}

CommandLine::~CommandLine() = default;

Verb CommandLine::AddVerb(const std::string& name, std::string summary) {
  return Verb(*app_).AddVerb(name, std::move(summary));
}

CommandTree CommandLine::Tree() const { return TreeOf(*app_); }

void CommandLine::OnComplete(std::function<void(const CommandTree&, const std::vector<std::string>& words)> complete) {
  complete_ = std::move(complete);
}

int CommandLine::Main(int argc, const char* const* argv) {
  int code = kOk;
  try {
    if (complete_ && argc > 1 && argv[1] == std::string_view("__complete")) {
      complete_(Tree(), {argv + 2, argv + argc});
      std::fflush(stdout);
      return kOk;
    }
    const auto words = WithConfiguration(*app_, {argv + std::min(argc, 1), argv + argc});
    if (!words) return Fail(kUsage, words.error().message());
    std::vector<const char*> parsed = {argc > 0 ? argv[0] : "muster"};
    for (const std::string& word : *words) parsed.push_back(word.c_str());
    app_->parse(static_cast<int>(parsed.size()), parsed.data());
    code = RunChosen(*app_);
  } catch (const CLI::ParseError& error) {
    code = ExplainParseError(*app_, error);
  } catch (const std::exception& error) {
    code = Fail(kFailed, fmt::format("internal error: {}; please report it", error.what()));
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    return Fail(kFailed, fmt::format("cannot write to standard output: {}", std::generic_category().message(errno)));
  }
  return code;
}

// What a server said steers no terminal, wherever it stands.
void Print(std::string_view text) {
  const std::string shown = PrintableLines(text);
  std::fwrite(shown.data(), 1, shown.size(), stdout);
}

}  // namespace muster::cli
