"""tools/check_readmes catches rows without a file, headers without a row, and links that lead nowhere."""
import subprocess
import sys

sys.dont_write_bytecode = True
import planted  # noqa: E402

README = """# base
| header | |
|---|---|
| `status.h`, `time.h` | what `status.cc` and `model/need.h` use, as `docs/page.md` says |
| [deep](deep/) | a `Status` and a `|` in a cell |
"""


class CheckReadmes(planted.PlantedTreeTest):
    check = "check_readmes"

    def setUp(self):
        super().setUp()
        for file in ("src/base/status.h", "src/base/status.cc", "src/base/time.h", "src/base/deep/x.cc",
                     "src/model/need.h", "src/core/counter/counter.h", "fuzz/refusal.h"):
            self.plant(file, "")
        self.plant("src/base/README.md", README)
        self.plant("src/model/README.md", "# model\nAll is in `need.h`.\n")
        self.plant("src/core/README.md", "| | |\n|---|---|\n| `counter/counter.h` | the example |\n")
        self.plant("fuzz/README.md", "`refusal.h`: what is shared\n")
        self.plant("docs/page.md", "# Page\n## The `rules`, all of them\n## Again\n## Again\n[up](../src/base/README.md)\n")

    def test_good_tree(self):
        self.plant("docs/links.md", "[a](page.md#the-rules-all-of-them) [b](page.md#again-1) [c](#here) [d](../src)\n"
                                    "[e](https://example.org/x#y) `[f](nowhere.md)`\n# Here\n```\n[g](nowhere.md)\n```\n")
        self.assert_passes("check_readmes: 6 pages, 5 headers, 0 breaches")

    def test_this_tree(self):
        result = subprocess.run([planted.REPO / "tools" / self.check], capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_row_of_a_file_that_is_gone(self):
        self.plant("src/base/README.md", README.replace("`time.h`", "`time.h`, `state.h`"))
        self.assert_caught("src/base/README.md:4: there is no state.h in this folder", ", 1 breaches")

    def test_first_column_is_of_this_folder(self):
        self.plant("src/base/README.md", README + "| `model/need.h` | of another folder |\n")
        self.assert_caught("src/base/README.md:6: there is no model/need.h in this folder")

    def test_file_in_another_column(self):
        self.plant("src/base/README.md", README.replace("`status.cc`", "`serve.cc`"))
        self.assert_caught("src/base/README.md:4: there is no serve.cc here, below src or in the repository")

    def test_header_without_a_row(self):
        self.plant("src/base/log.h", "")
        self.plant("fuzz/input.h", "")
        self.assert_caught("src/base/log.h:1: no README.md names it", "fuzz/input.h:1: no README.md names it")

    def test_header_of_a_folder_below(self):
        self.plant("src/base/deep/status.h", "")  # a name that the README has, in another folder
        self.assert_caught("src/base/deep/status.h:1: no README.md names it")
        self.plant("src/base/deep/README.md", "| | |\n|---|---|\n| `status.h` | |\n")
        self.assert_passes()

    def test_folder_without_a_readme(self):
        (self.root / "src/model/README.md").unlink()
        self.assert_caught("src/model/need.h:1: no README.md names it")

    def test_link_to_a_page_that_is_gone(self):
        self.plant("docs/page.md", "# Page\n\n[gone](old.md) and [gone](../src/old#x)\n")
        self.assert_caught("docs/page.md:3: the link old.md leads nowhere", "docs/page.md:3: the link ../src/old#x leads nowhere")

    def test_anchor_that_is_gone(self):
        self.plant("docs/other.md", "[rules](page.md#rules)\n[again](page.md#again-2)\n[here](#nothing)\n")
        self.assert_caught("docs/other.md:1: the link page.md#rules names a heading that page.md does not have",
                           "docs/other.md:2: the link page.md#again-2 names", "docs/other.md:3: the link #nothing names")

    def test_code_is_no_heading(self):
        self.plant("docs/page.md", "```\n# Rules\n```\n[rules](#rules)\n")
        self.assert_caught("docs/page.md:4: the link #rules names a heading that page.md does not have")

    def test_build_and_hidden_folders_are_not_read(self):
        self.plant("build/debug/page.md", "[gone](gone.md)\n")
        self.plant(".cache/page.md", "[gone](gone.md)\n")
        self.assert_passes()


planted.main()
