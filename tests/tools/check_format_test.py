"""tools/check_format names badly formatted files, and repairs them when asked."""
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
import planted  # noqa: E402


class CheckFormat(planted.PlantedTreeTest):
    check = "check_format"

    def setUp(self):
        super().setUp()
        shutil.copy(planted.REPO / ".clang-format", self.root)
        self.plant("src/base/good.cc", "int Twice(int value) { return 2 * value; }\n")

    def test_good_tree(self):
        self.assert_passes()

    def test_bad_file(self):
        self.plant("src/base/bad.h", "int a;\nint  Twice( int value ){return 2*value;}\n")
        self.assert_caught("src/base/bad.h:2: not formatted", "./dev fmt")

    def test_bad_test_outside_src(self):
        self.plant("tests/bad.cc", "int a ;\n")
        self.assert_caught("tests/bad.cc:1: not formatted")

    def test_fix(self):
        self.plant("src/base/bad.h", "int  Twice( int value ){return 2*value;}\n")
        subprocess.run([planted.REPO / "tools" / "check_format", "--fix", self.root], check=True, capture_output=True)
        self.assertEqual((self.root / "src/base/bad.h").read_text(), "int Twice(int value) { return 2 * value; }\n")
        self.assert_passes()


planted.main()
