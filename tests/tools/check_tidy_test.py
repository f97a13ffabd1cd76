"""tools/check_tidy reports findings of the chosen clang-tidy checks, also in files that are merely changed."""
import json
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
import planted  # noqa: E402

USE_AFTER_MOVE = """#include <string>
#include <utility>
void Keep(std::string text);
int Bug(std::string text) {
  Keep(std::move(text));
  return text.empty() ? 1 : 2;
}
"""


class CheckTidy(planted.PlantedTreeTest):
    check = "check_tidy"

    def setUp(self):
        super().setUp()
        shutil.copy(planted.REPO / ".clang-tidy", self.root)
        self.add("src/base/good.cc", "int Twice(int value) { return 2 * value; }\n")

    def add(self, path, text):
        """Plants a file and lists it in the compile database, as the debug build would."""
        self.plant(path, text)
        entries = [{"directory": str(self.root), "file": str(file), "command": f"g++ -std=c++23 -Wno-restrict -c {file}"}
                   for file in sorted((self.root / "src").rglob("*.cc"))]
        self.plant("build/debug/compile_commands.json", json.dumps(entries))

    def git(self, *arguments):
        subprocess.run(["git", "-C", self.root, "-c", "user.name=test", "-c", "user.email=test@localhost", *arguments],
                       check=True, capture_output=True)

    def test_good_tree(self):
        self.assert_passes()

    def test_finding_in_a_pure_folder(self):
        self.add("src/model/bad.cc", USE_AFTER_MOVE)
        self.assert_caught("src/model/bad.cc:6", "bugprone-use-after-move")

    def test_changed_files_of_other_folders(self):
        self.add("src/host/bad.cc", USE_AFTER_MOVE)
        self.git("init", "--quiet")
        self.git("add", ".")
        self.git("commit", "--quiet", "--message", "bad")
        self.assert_caught("src/host/bad.cc:6")
        self.git("commit", "--quiet", "--allow-empty", "--message", "nothing changed")
        self.assert_passes()


planted.main()
