// Walks every verb: each has an example that holds, and says what is wrong with what it does not know.
#include "cli/verbs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <sstream>

#include "base/source_dir_for_test.h"
#include "host/temp_dir_for_test.h"

namespace muster::cli {
namespace {

struct Outcome {
  int code = 0;
  std::string out;
  std::string err;
};

Outcome RunMuster(const std::vector<std::string>& words) {
  CommandLine app({.version = "1", .commit = "c", .compiler = "C", .build_type = "T", .faults = false});
  AddVerbs(app);
  std::vector<const char*> argv = {"muster"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int code = app.Main(static_cast<int>(argv.size()), argv.data());
  return {code, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
}

using Visitor = std::function<void(const CommandTree& verb, const std::vector<std::string>& path)>;

void Walk(const CommandTree& verb, std::vector<std::string> path, const Visitor& visit) {
  for (const CommandTree& child : verb.verbs) {
    std::vector<std::string> below = path;
    below.push_back(child.name);
    visit(child, below);
    Walk(child, below, visit);
  }
}

class VerbsTest : public testing::Test {
 protected:
  VerbsTest() {
    CommandLine app({.version = "1", .commit = "c", .compiler = "C", .build_type = "T", .faults = false});
    AddVerbs(app);
    tree_ = app.Tree();
  }
  CommandTree tree_;
};

// The words of the first command of an example that is one of muster's; none if it has none.
std::vector<std::string> CommandIn(const std::string& example) {
  std::istringstream in(example);
  std::vector<std::string> words;
  bool ours = false;
  for (std::string word; in >> word;) {
    if (!ours) {
      ours = word == "muster" || word == "<(muster";
      continue;
    }
    if (word == "|" || word == ">" || word == "<" || word == "&&" || word.starts_with('(')) break;
    words.push_back(word);
  }
  return words;
}

TEST_F(VerbsTest, EachHasHelpWithAnExampleOfItself) {
  size_t verbs = 0;
  Walk(tree_, {}, [&](const CommandTree& verb, const std::vector<std::string>& path) {
    const std::string name = fmt::format("muster {}", fmt::join(path, " "));
    SCOPED_TRACE(name);
    EXPECT_FALSE(verb.summary.empty());
    if (!verb.runs) return;  // it only holds others
    ++verbs;
    std::vector<std::string> words = path;
    words.emplace_back("--help");
    const Outcome help = RunMuster(words);
    EXPECT_EQ(help.code, 0) << help.err;
    EXPECT_TRUE(help.out.contains("Examples:")) << help.out;
    bool own = false;
    for (const std::string& example : verb.examples) own = own || example.contains(name);
    EXPECT_TRUE(own) << "no example of it";
    for (const CommandOption& option : verb.options) EXPECT_FALSE(option.help.empty()) << option.names.front();
  });
  EXPECT_GT(verbs, 40u);
}

// An example that names an option which does not exist is worse than none.
TEST_F(VerbsTest, ExamplesUseOptionsThatThereAre) {
  Walk(tree_, {}, [&](const CommandTree& verb, const std::vector<std::string>& path) {
    for (const std::string& example : verb.examples) {
      const std::vector<std::string> words = CommandIn(example);
      if (words.empty()) continue;
      SCOPED_TRACE(example);
      const CommandTree* at = &tree_;
      std::set<std::string> known;
      for (const std::string& word : words) {
        const auto next = std::ranges::find(at->verbs, word, &CommandTree::name);
        if (next == at->verbs.end()) break;
        at = &*next;
      }
      ASSERT_NE(at, &tree_) << "it names no verb";
      for (const CommandOption& option : at->options) known.insert(option.names.begin(), option.names.end());
      for (const std::string& word : words) {
        if (!word.starts_with('-') || word == "-" || word == "--") continue;
        EXPECT_TRUE(known.contains(word.substr(0, word.find('='))))
            << word << " of " << fmt::format("{}", fmt::join(path, " "));
      }
    }
  });
}

TEST_F(VerbsTest, AnUnknownOptionIsAnsweredWithTheNearest) {
  Walk(tree_, {}, [&](const CommandTree& verb, const std::vector<std::string>& path) {
    if (!verb.runs) return;
    // One letter of its longest option is wrong.
    std::string longest;
    for (const CommandOption& option : verb.options) {
      for (const std::string& name : option.names) {
        if (name.size() > longest.size()) longest = name;
      }
    }
    std::string wrong = longest;
    std::swap(wrong[wrong.size() - 1], wrong[wrong.size() - 2]);
    if (wrong == longest) return;
    std::vector<std::string> words = path;
    for (size_t i = 0; i < verb.arguments.size(); ++i) words.emplace_back("x");
    words.push_back(wrong);
    const Outcome outcome = RunMuster(words);
    // Of those that answer a question, 2 is an answer (docs/commands.md).
    const bool asks = path.front() == "diff" || path.front() == "plan" || path.front() == "what-if";
    EXPECT_EQ(outcome.code, asks ? 1 : 2) << fmt::format("{}", fmt::join(words, " "));
    EXPECT_TRUE(outcome.err.contains(fmt::format("did you mean {}?", longest)))
        << fmt::format("{}", fmt::join(words, " ")) << ": " << outcome.err;
  });
}

// A verb whose output programs read has a row of keys, which tests/docs/json_keys_test.py holds against what it prints.
TEST_F(VerbsTest, WhatPrintsJsonHasItsKeysInThePages) {
  const auto page = [](const std::string& name) {
    std::ifstream file(SourceDir() + "/docs/" + name);
    return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  };
  const std::string commands = page("commands.md");
  const std::string benchmarks = page("benchmarks.md");
  ASSERT_FALSE(commands.empty());
  std::set<std::string> rows;  // heads of the table, without what stands behind the verb
  std::istringstream lines(commands);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| ")) continue;
    const std::string head = line.substr(0, line.find(" | "));
    for (size_t at = head.find('`'); at != std::string::npos; at = head.find('`', at + 1)) {
      const size_t end = head.find('`', at + 1);
      if (end == std::string::npos) break;
      std::string verb = head.substr(at + 1, end - at - 1);
      rows.insert(verb.substr(0, verb.find(" -")));
      at = end;
    }
  }
  // The rows of kinds: Workload, Event, Quota and so on.
  const std::set<std::string> of_kinds = {"get", "events", "quota"};
  Walk(tree_, {}, [&](const CommandTree& verb, const std::vector<std::string>& path) {
    const bool prints = std::ranges::any_of(verb.options, [](const CommandOption& option) {
      return std::ranges::find(option.choices, "json") != option.choices.end() ||
             std::ranges::find(option.names, "--json") != option.names.end();
    });
    if (!prints || !verb.runs || of_kinds.contains(path.front())) return;
    const std::string name = fmt::format("{}", fmt::join(path, " "));
    // What stands below `explain` and `sim` prints what these do.
    const bool below = path.front() == "explain" || path.front() == "sim";
    const bool is_bench = path.front() == "bench" && benchmarks.contains("`muster " + name + " ");
    EXPECT_TRUE(is_bench || rows.contains(below ? path.front() : name)) << name << " has no row of keys";
  });
}

TEST_F(VerbsTest, ExplainOfAPlanRefusesWhatIsOfARunningSystem) {
  const std::vector<std::string> plan = {"explain", "--plan", "x", "-f", "no.json", "--catalogue", "no.yaml"};
  for (const std::vector<std::string>& flag : std::vector<std::vector<std::string>>{
           {"-o", "json"}, {"--at", "2026-01-31T12:00:00Z"}, {"--journal", "d"}, {"--group", "g"}, {"web-7"}}) {
    std::vector<std::string> words = plan;
    words.insert(words.end(), flag.begin(), flag.end());
    const Outcome outcome = RunMuster(words);
    EXPECT_EQ(outcome.code, 2) << flag.front();
    EXPECT_TRUE(outcome.err.contains("--plan")) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
}

TEST(Verbs, AnUnknownFileOrDirectoryIsAnsweredWithTheNearestName) {
  const host::TempDir dir;
  std::filesystem::create_directory(dir.File("journal"));
  std::ofstream(dir.File("store.backup")) << "";
  const auto suggests = [&dir](const std::vector<std::string>& words, const std::string& name) {
    const Outcome outcome = RunMuster(words);
    EXPECT_NE(outcome.code, 0);
    EXPECT_TRUE(outcome.err.contains(", did you mean " + dir.File(name) + "?")) << outcome.err;
  };
  suggests({"replay", dir.File("jurnal")}, "journal");
  suggests({"explain", "workload", "web-7", "--at", "2026-01-31T12:00:00Z", "--journal", dir.File("jurnal")},
           "journal");
  suggests({"store", "restore", "--store", "sqlite:" + dir.File("store"), dir.File("stor.backup")}, "store.backup");
}

TEST(SimVerbs, AWorldThatWritesNoJournalRefusesTheFlag) {
  for (const char* world : {"failures", "losses", "loop", "agents"}) {
    const Outcome outcome = RunMuster({"sim", world, "--seeds", "1", "--repeats", "1", "--journal", "d"});
    EXPECT_EQ(outcome.code, 2) << world;
    EXPECT_TRUE(outcome.err.contains("--journal")) << outcome.err;
  }
}

}  // namespace
}  // namespace muster::cli
