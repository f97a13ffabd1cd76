"""tools/check_tidy reports findings in what changed and in what includes it, and reads nothing twice."""
import json
import os
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
import planted  # noqa: E402

# Without the headers of the library, which take a second to read.
USE_AFTER_MOVE = """namespace std { template <class T> T&& move(T& value) { return static_cast<T&&>(value); } }
struct Text { Text(const Text&); Text(Text&&) noexcept; bool Empty() const; };
void Keep(Text text);
int Bug(Text text) {
  Keep(std::move(text));
  return text.Empty() ? 1 : 2;
}
"""


class CheckTidy(planted.PlantedTreeTest):
    check = "check_tidy"

    def setUp(self):
        super().setUp()
        shutil.copy(planted.REPO / ".clang-tidy", self.root)
        self.flags = "-std=c++23 -Wno-restrict"
        self.add("src/base/good.cc", "int Twice(int value) { return 2 * value; }\n")

    def add(self, path, text):
        """Plants a file and lists it in the compile database, as the build would."""
        self.plant(path, text)
        entries = [{"directory": str(self.root), "file": str(file), "command": f"g++ {self.flags} -I{self.root}/src -c {file}"}
                   for file in sorted((self.root / "src").rglob("*.cc"))]
        self.plant("build/lint/compile_commands.json", json.dumps(entries))

    def git(self, *arguments):
        subprocess.run(["git", "-C", self.root, "-c", "user.name=test", "-c", "user.email=test@localhost", *arguments],
                       check=True, capture_output=True)

    def commit(self, message):
        self.git("add", ".")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)

    def test_without_a_clone_everything_is_read(self):
        self.assert_passes("1 files, 0 of them passed before")
        self.add("src/model/bad.cc", USE_AFTER_MOVE)
        self.assert_caught("src/model/bad.cc:6", "bugprone-use-after-move")

    def test_only_what_changed_is_read(self):
        self.plant(".gitignore", "build\ncache\n")
        self.git("init", "--quiet")
        self.commit("first")
        self.add("src/host/bad.cc", USE_AFTER_MOVE)
        self.assert_caught("src/host/bad.cc:6")  # not committed
        self.commit("bad")
        self.assert_caught("src/host/bad.cc:6")  # the last commit
        self.commit("nothing changed")
        self.assert_passes("0 files")
        self.assert_caught("src/host/bad.cc:6", options=["--all"])
        self.plant(".clang-tidy", (self.root / ".clang-tidy").read_text() + "# another\n")
        self.assert_caught("src/host/bad.cc:6")

    def test_what_changed_since_the_last_commit_that_passed_is_read(self):
        self.plant(".gitignore", "build\ncache\n")
        self.git("init", "--quiet")
        self.commit("first")
        self.note_that_every_check_passes()
        self.add("src/host/bad.cc", USE_AFTER_MOVE)
        self.commit("bad")
        self.commit("nothing changed")
        self.assert_caught("src/host/bad.cc:6")  # neither of them passed
        self.note_that_every_check_passes()
        self.assert_passes("0 files")
        self.git("commit", "--quiet", "--allow-empty", "--amend", "--message", "instead of the one that passed")
        self.assert_passes("0 files")  # the last commit, for want of one that passed
        self.git("reset", "--quiet", "--soft", "HEAD~1")
        self.assert_caught("src/host/bad.cc:6")

    def note_that_every_check_passes(self):
        head = subprocess.check_output(["git", "-C", self.root, "rev-parse", "HEAD"], text=True).strip()
        subprocess.run([sys.executable, "-B", planted.REPO / "tools" / "changed.py", head, self.root], check=True,
                       env={**os.environ, "MUSTER_LINT_CACHE": str(self.cache)})

    def test_a_changed_header_is_read_with_all_that_include_it(self):
        self.plant("src/base/way.h", '#include "base/far.h"\n')
        self.plant("src/base/far.h", "")
        self.add("src/host/user.cc", '#include "base/way.h"\n')
        self.plant(".gitignore", "build\ncache\n")
        self.git("init", "--quiet")
        self.commit("first")
        self.commit("nothing changed")
        self.assert_passes("2 files, 0 of them passed before", options=["--all"])
        self.assert_passes("0 files")
        self.plant("src/base/far.h", USE_AFTER_MOVE.replace("int Bug", "inline int Bug"))
        self.assert_caught("src/base/far.h:6", "bugprone-use-after-move")
        self.assert_caught("src/base/far.h:6", options=["--all"])

    def test_a_header_that_many_include_is_read_with_the_nearest(self):
        self.plant("src/base/low.h", "")
        self.plant("src/base/low.cc", '#include "base/low.h"\n')
        for number in range(20):
            self.add(f"src/host/user{number}.cc", '#include "base/low.h"\n')
        self.plant(".gitignore", "build\ncache\n")
        self.git("init", "--quiet")
        self.commit("first")
        self.commit("nothing changed")
        self.plant("src/base/low.h", "// another\n")
        self.assert_passes("13 more files include what changed", "8 files, 0 of them passed before")
        self.plant("src/base/low.cc", '#include "base/low.h"\n' + USE_AFTER_MOVE)
        self.assert_caught("src/base/low.cc:7")

    def test_a_changed_proto_is_read_with_all_that_include_what_is_made_of_it(self):
        self.flags += f" -isystem {self.root}/build/lint/proto"
        self.plant("proto/muster/v1/fleet.proto", "")
        self.plant("build/lint/proto/muster/v1/fleet.pb.h", "struct Fleet {};\n")
        self.add("src/rpc/user.cc", '#include "muster/v1/fleet.pb.h"\n')
        self.plant(".gitignore", "build\ncache\n")
        self.git("init", "--quiet")
        self.commit("first")
        self.commit("nothing changed")
        self.assert_passes("0 files")
        self.plant("proto/muster/v1/fleet.proto", "// changed\n")
        self.assert_passes("1 files, 0 of them passed before")

    def test_what_passed_is_not_read_again(self):
        self.plant("src/base/used.h", "inline int One() { return 1; }\n")
        self.add("src/base/user.cc", '#include "base/used.h"\nint Two() { return 2 * One(); }\n')
        self.assert_passes("2 files, 0 of them passed before")
        self.assert_passes("2 files, 2 of them passed before")
        self.plant("src/base/used.h", "inline int One() { return 0 + 1; }\n")
        self.assert_passes("2 files, 1 of them passed before")
        self.plant(".clang-tidy", (self.root / ".clang-tidy").read_text() + "# another\n")
        self.assert_passes("2 files, 0 of them passed before")
        self.flags += " -DOTHER"
        self.add("src/base/user.cc", (self.root / "src/base/user.cc").read_text())
        self.assert_passes("2 files, 0 of them passed before")

    def test_what_failed_is_read_again(self):
        self.add("src/base/bad.cc", USE_AFTER_MOVE)
        self.assert_caught("src/base/bad.cc:6")
        self.assert_caught("src/base/bad.cc:6")

    def test_another_clone_of_the_same_text_passes_at_once(self):
        self.assert_passes("1 files, 0 of them passed before")
        cache = self.cache
        self.setUp()
        self.cache = cache
        self.assert_passes("1 files, 1 of them passed before")


planted.main()
