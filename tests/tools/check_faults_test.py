"""tools/check_faults catches planted bugs, probes and crash points without a row or a test, and rows without them."""
import subprocess
import sys

sys.dont_write_bytecode = True
import planted  # noqa: E402

SOURCE = """// PROBE("a.in_a_comment");
void F() {
  PROBE("a.reached");
  if (MUTANT("a.bug") || MUTANT("a.searched")) CRASH_POINT("a.dies");
}
"""
TESTS = """TEST(Unit, Finds) { const faults::ScopedMutant on("a.bug"); }
TEST_F(World, Holds) { faults::ExpectReached("World.Holds", "a"); }
TEST_P(Search, IsFound) { faults::RowsOf("Search.IsFound", "a", "bug"); }
TEST(Killed, Everywhere) { Die("a.dies"); }
"""
ROWS = ["bug   a.bug      Unit.Finds", "bug   a.searched Search.IsFound 12 went wrong", "probe a.reached  World.Holds",
        "crash a.dies     Killed.Everywhere"]


class CheckFaults(planted.PlantedTreeTest):
    check = "check_faults"

    def setUp(self):
        super().setUp()
        self.plant("src/a/a.cc", SOURCE)
        self.plant("src/a/a_test.cc", TESTS + 'void G() { PROBE("a.of_a_test"); }\n')
        self.rows(*ROWS)

    def rows(self, *rows):
        self.plant("tests/faults/a.txt", "".join(row + "\n" for row in rows))

    def test_good_tree(self):
        self.assert_passes()

    def test_this_tree(self):
        result = subprocess.run([planted.REPO / "tools" / self.check], capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_missing_rows(self):
        self.rows()
        self.assert_caught("src/a/a.cc:4: bug a.bug has no row", "src/a/a.cc:4: bug a.searched has no row",
                           "src/a/a.cc:3: probe a.reached has no row", "src/a/a.cc:4: crash a.dies has no row")

    def test_new_names(self):
        self.plant("src/b/b.h", 'inline bool B() { return MUTANT("b.new"); }\n')
        self.plant("src/b/b.cc", 'void B() {\n  PROBE(\n      "b.long");\n}\n')
        self.assert_caught("src/b/b.h:1: bug b.new has no row", "src/b/b.cc:2: probe b.long has no row")

    def test_row_without_a_place(self):
        self.rows(*ROWS, "probe a.gone World.Holds", "probe a.bug World.Holds")
        self.assert_caught("tests/faults/a.txt:5: there is no probe a.gone in src/",
                           "tests/faults/a.txt:6: there is no probe a.bug in src/")

    def test_two_rows(self):
        self.plant("tests/faults/b.txt", ROWS[0] + "\n")
        self.assert_caught("tests/faults/b.txt:1: bug a.bug has a row already, tests/faults/a.txt:1")

    def test_test_that_is_not_there(self):
        self.rows("bug a.bug Unit.Misses", *ROWS[1:])
        self.assert_caught("tests/faults/a.txt:1: there is no test Unit.Misses")

    def test_test_that_does_not_know_it(self):
        self.plant("tests/a/other_test.cc", "TEST(Other, Test) {}\n")
        self.rows("bug a.bug Other.Test", *ROWS[1:])
        self.assert_caught("tests/faults/a.txt:1: Other.Test does not name a.bug")

    def test_named_in_a_comment_or_in_another_test_only(self):
        self.plant("tests/a/other_test.cc", '// "a.bug"\nTEST(Other, Test) {}\nTEST(Other, Bug) { On("a.bug"); }\n')
        self.rows("bug a.bug Other.Test", *ROWS[1:])
        self.assert_caught("tests/faults/a.txt:1: Other.Test does not name a.bug")

    def test_asked_for_as_another_kind_or_area(self):
        self.rows(ROWS[0], "bug a.searched World.Holds 12 went wrong", *ROWS[2:])
        self.assert_caught("tests/faults/a.txt:2: World.Holds does not name a.searched")
        self.rows(ROWS[0], *ROWS[2:])
        self.plant("tests/faults/b.txt", ROWS[1] + "\n")
        self.assert_caught("tests/faults/b.txt:1: Search.IsFound does not name a.searched")

    def test_search_without_a_message(self):
        self.rows(ROWS[0], "bug a.searched Search.IsFound", *ROWS[2:])
        self.assert_caught("tests/faults/a.txt:2: a.searched is searched for: say from which seed")

    def test_text_of_one_word(self):
        self.rows(ROWS[0], "bug a.searched Search.IsFound 12 wrong", *ROWS[2:])
        self.assert_caught("tests/faults/a.txt:2: 'wrong' is one word")

    def test_text_that_many_share(self):
        names = [f"a.searched_{letter}" for letter in "bcde"]
        self.plant("src/a/b.cc", "bool F() { return " + " || ".join(f'MUTANT("{name}")' for name in names) + "; }\n")
        rows = [f"bug {name} Search.IsFound 12 went so" for name in names]
        self.rows(*ROWS, *rows[:3])
        self.assert_caught("src/a/b.cc:1: bug a.searched_e has no row", "1 breaches")
        self.rows(*ROWS, *rows)
        self.assert_caught("tests/faults/a.txt:5: 4 rows say 'went so'", "4 breaches")

    def test_exception_without_a_row(self):
        self.plant("src/b/b_test.cc", 'TEST_P(Search, IsFound) { faults::RowsOf("Search.IsFound", "store", "bug"); }\n')
        self.plant("tests/faults/store.txt", ROWS[1] + "\n")
        self.rows(ROWS[0], *ROWS[2:])
        self.assert_caught("tests/faults/store.txt does not say 'compaction': remove it from EXCEPTED", "1 breaches")

    def test_no_row_at_all(self):
        self.rows(*ROWS, "bug a.bug")
        self.assert_caught("tests/faults/a.txt:5: not a row")


planted.main()
