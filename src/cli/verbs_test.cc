// Walks every verb: each has an example that holds, and says what is wrong with what it does not know.
#include "cli/verbs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <sstream>

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
    EXPECT_NE(outcome.code, 0) << fmt::format("{}", fmt::join(words, " "));
    EXPECT_TRUE(outcome.err.contains(fmt::format("did you mean {}?", longest)))
        << fmt::format("{}", fmt::join(words, " ")) << ": " << outcome.err;
  });
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
