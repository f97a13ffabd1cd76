"""tools/check_headers catches headers that lean on what their users include, and warnings in headers."""
import subprocess
import sys

sys.dont_write_bytecode = True
import planted  # noqa: E402


class CheckHeaders(planted.PlantedTreeTest):
    check = "check_headers"

    def setUp(self):
        super().setUp()
        self.plant("src/base/good.h", "#pragma once\n#include <string>\nstruct Good { std::string name; };\n")

    def test_good_tree(self):
        self.plant("src/model/user.h", '#pragma once\n#include "base/good.h"\nstruct User { Good good; };\n')
        self.assert_passes()

    def test_missing_include(self):
        self.plant("src/model/bad.h", "#pragma once\nstruct Bad { std::vector<int> rows; };\n")
        self.assert_caught("src/model/bad.h: does not compile alone:", "2 headers, 2 compiled, 1 do not compile alone")

    def test_warning(self):
        self.plant("src/model/bad.h", "#pragma once\ninline short Narrow(long value) { return value; }\n")
        self.assert_caught("src/model/bad.h: does not compile alone:", "conversion")

    def git(self, *arguments):
        subprocess.run(["git", "-C", self.root, "-c", "user.name=test", "-c", "user.email=test@localhost", *arguments],
                       check=True, capture_output=True)

    def test_in_a_clone_only_what_changed_and_what_includes_it_is_compiled(self):
        self.plant("src/model/user.h", '#pragma once\n#include "base/good.h"\nstruct User { Good good; };\n')
        self.plant("src/model/other.h", "#pragma once\n")
        self.plant(".gitignore", "build\ncache\n")
        self.git("init", "--quiet")
        for message in ["first", "nothing changed"]:
            self.git("add", ".")
            self.git("commit", "--quiet", "--allow-empty", "--message", message)
        self.assert_passes("0 headers, 0 compiled")
        self.assert_passes("3 headers, 3 compiled", options=["--all"])
        self.plant("src/base/good.h", "#pragma once\nstruct Bad {};\n")
        self.assert_caught("src/model/user.h: does not compile alone:", "2 headers, 2 compiled, 1 do not compile alone")

    def test_what_passed_is_compiled_again_when_it_or_what_it_includes_changes(self):
        self.plant("src/model/user.h", '#pragma once\n#include "base/good.h"\nstruct User { Good good; };\n')
        self.assert_passes("2 headers, 2 compiled")
        self.assert_passes("2 headers, 0 compiled")
        self.plant("src/model/user.h", '#pragma once\n#include "base/good.h"\nstruct User { Good another; };\n')
        self.assert_passes("2 headers, 1 compiled")
        self.plant("src/base/good.h", "#pragma once\nstruct Bad {};\n")
        self.assert_caught("src/model/user.h: does not compile alone:", "2 compiled, 1 do not compile alone")
        self.assert_caught("src/model/user.h: does not compile alone:", "1 compiled, 1 do not compile alone")


planted.main()
