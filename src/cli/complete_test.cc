#include "cli/complete.h"

#include <gtest/gtest.h>

#include <map>

#include "cli/verbs.h"

namespace muster::cli {
namespace {

CommandTree WholeTree() {
  CommandLine app({.version = "1", .commit = "c", .compiler = "C", .build_type = "T", .faults = false});
  AddVerbs(app);
  return app.Tree();
}

class CompleteTest : public testing::Test {
 protected:
  std::vector<std::string> Words(std::vector<std::string> words) {
    const NameSource names = [this](std::string_view kind, const std::vector<std::string>&) {
      ++asked_[std::string(kind)];
      if (kind == "workload") return std::vector<std::string>{"web-0", "web-1", "db"};
      if (kind == "set") return std::vector<std::string>{"web"};
      if (kind == "node") return std::vector<std::string>{"n1"};
      if (kind == "machine") return std::vector<std::string>{"m-17"};
      return std::vector<std::string>{};
    };
    std::vector<std::string> found;
    for (const Completion& completion : Complete(tree_, words, names)) found.push_back(completion.word);
    return found;
  }

  const CommandTree tree_ = WholeTree();
  std::map<std::string, int> asked_;
};
using List = std::vector<std::string>;

TEST_F(CompleteTest, VerbsAndTheVerbsBelowThem) {
  EXPECT_EQ(Words({"desc"}), List{"describe"});
  EXPECT_EQ(Words({"fleet", "mach"}), List{"machines"});
  EXPECT_EQ(Words({"completion", ""}), (List{"bash", "zsh", "fish"}));
  EXPECT_TRUE(Words({"frobnicate", ""}).empty());
  EXPECT_GT(Words({""}).size(), 20u);
  EXPECT_TRUE(asked_.empty()) << "nobody is asked for the names of verbs";
}

TEST_F(CompleteTest, OptionsAndTheirChoices) {
  EXPECT_EQ(Words({"get", "--sel"}), List{"--selector"});
  EXPECT_EQ(Words({"get", "-o", ""}), (List{"table", "wide", "json", "yaml", "name"}));
  EXPECT_EQ(Words({"get", "--output", "j"}), List{"json"});
  EXPECT_EQ(Words({"get", "--output=j"}), List{"--output=json"});
  EXPECT_EQ(Words({"get", "--output", "=", "j"}), List{"json"}) << "as bash splits it";
  EXPECT_EQ(Words({"get", "--output", "="}), (List{"table", "wide", "json", "yaml", "name"}));
  EXPECT_TRUE(Words({"apply", "-f", "sho"}).empty()) << "a file: the shell's own";
  // The value of an option is not taken for a type.
  EXPECT_EQ(Words({"get", "--node", "n1", "set"}), List{"sets"});
}

TEST_F(CompleteTest, TypesAndNames) {
  EXPECT_EQ(Words({"get", "wo"}), List{"workloads"});
  EXPECT_EQ(Words({"get", "workloads", "web"}), (List{"web-0", "web-1"}));
  EXPECT_EQ(Words({"describe", "set/"}), List{"set/web"});
  EXPECT_EQ(Words({"delete", "wl", "d"}), List{"db"});
  EXPECT_EQ(Words({"logs", ""}), (List{"web-0", "web-1", "db"}));
  EXPECT_EQ(Words({"drain", ""}), List{"n1"});
  EXPECT_EQ(Words({"scale", "w"}), List{"web"});
  EXPECT_EQ(Words({"explain", "w"}), (List{"workload", "web-0", "web-1"})) << "a name alone is a workload's";
  EXPECT_EQ(Words({"explain", "machine", ""}), List{"m-17"});
  EXPECT_EQ(Words({"explain", "workload", "web-1"}), List{"web-1"});
}

TEST_F(CompleteTest, EveryShellHasItsScript) {
  EXPECT_TRUE(CompletionScript("bash").contains("complete -o default -F _muster muster"));
  EXPECT_TRUE(CompletionScript("zsh").starts_with("#compdef muster\n"));
  EXPECT_TRUE(CompletionScript("fish").contains("complete -c muster"));
  for (const char* shell : {"bash", "zsh", "fish"})
    EXPECT_TRUE(CompletionScript(shell).contains("__complete")) << shell;
}

}  // namespace
}  // namespace muster::cli
