"""tools/check_rules catches rules without code or case, and cases without rules."""
import sys

sys.dont_write_bytecode = True
import planted  # noqa: E402

BOOK = "# Rules\n\n| rule | what it says |\n|---|---|\n| `P1.own-first` | own first |\n| `S.whole` | all or nothing |\n"


class CheckRules(planted.PlantedTreeTest):
    check = "check_rules"

    def setUp(self):
        super().setUp()
        self.plant("docs/engine.md", BOOK)
        self.plant("src/engine/reference/phase1.cc", "// [P1.own-first] its own\nint x;  // [S.whole]\n")
        self.plant("tests/cases/engine/P1.own-first.yaml", "about: x\nrules: [P1.own-first]\n")
        self.plant("tests/cases/engine/story.yaml", "about: x\nrules: [S.whole, P1.own-first]\n")

    def test_good_tree(self):
        self.assert_passes()

    def test_rule_without_code(self):
        self.plant("src/engine/reference/phase1.cc", "// [S.whole]\n")
        self.assert_caught("docs/engine.md:5: P1.own-first is not cited in src/engine")

    def test_rule_without_case(self):
        self.plant("tests/cases/engine/story.yaml", "about: x\nrules: [P1.own-first]\n")
        self.assert_caught("docs/engine.md:6: S.whole has no case")

    def test_case_without_rule(self):
        self.plant("tests/cases/engine/none.yaml", "about: x\n")
        self.plant("tests/cases/engine/empty.yaml", "about: x\nrules: []\n")
        self.assert_caught("tests/cases/engine/none.yaml:1: it cites no rule",
                           "tests/cases/engine/empty.yaml:1: it cites no rule")

    def test_unknown_rules(self):
        self.plant("tests/cases/engine/story.yaml", "about: x\nrules: [S.whole, S.hole]\n")
        self.plant("src/engine/match.h", "\n// [M.odd]\n")
        self.assert_caught("tests/cases/engine/story.yaml:1: there is no rule S.hole",
                           "src/engine/match.h:2: there is no rule M.odd")

    def test_rule_twice(self):
        self.plant("docs/engine.md", BOOK + "| `S.whole` | again |\n")
        self.assert_caught("docs/engine.md:7: S.whole has two rows")


planted.main()
