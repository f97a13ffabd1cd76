"""tools/find_tests knows programs, folders, files, suites, cases and patterns, and suggests what an unknown name may mean."""
import subprocess
import sys

sys.dont_write_bytecode = True
import planted  # noqa: E402


class FindTests(planted.PlantedTreeTest):
    check = "find_tests"

    def setUp(self):
        super().setUp()
        self.plant("src/model/money_test.cc", "TEST(Money, Parses) {}\nTEST(Money, Formats) {}\n// TEST(Money, Gone) {}\n")
        self.plant("src/model/node_test.cc", "RC_GTEST_PROP(Node, ComesBack, (int x)) {}\n")
        self.plant("src/core/shard/rails_test.cc", "TEST_F(ShardRails,\n       ARestartDoesNotWidenTheBudget) {}\n")
        self.plant("tests/engine/fast_test.cc", "TEST_P(FastMutant, IsFound) {}\n")
        self.plant("tests/engine/world.cc", "int x;\n")
        self.plant("tests/shard/kill_test.cc", "TEST(Killed, AtRandom) {}\n")
        self.plant("build/debug/test_programs.txt",
                   "model_test src/model/money_test.cc src/model/node_test.cc\n"
                   "core_shard_test src/core/shard/rails_test.cc\n"
                   "engine_fast_test tests/engine/fast_test.cc tests/engine/world.cc\n"
                   "shard_kill_test tests/shard/kill_test.cc\n")
        self.plant("build/debug/tool_tests.txt", "check_layers\ndocs_cases muster\n")

    def find(self, *names):
        result = subprocess.run([planted.REPO / "tools/find_tests", "build/debug", *names], cwd=self.root,
                                capture_output=True, text=True)
        return result.returncode, result.stdout.splitlines(), result.stderr

    def assert_found(self, names, targets, tests, patterns):
        self.assertEqual(self.find(*names), (0, [targets, f"^({tests})(_[0-9]+)?$", patterns], ""))

    def test_programs_and_other_tests(self):
        self.assert_found(["model_test"], "model_test", "model_test", "")
        self.assert_found(["check_layers"], "", "check_layers", "")
        self.assert_found(["docs_cases", "model_test"], "model_test muster", "docs_cases|model_test", "")

    def test_folders(self):
        for name in ("model", "src/model", "src/model/"):
            self.assert_found([name], "model_test", "model_test", "")
        self.assert_found(["core"], "core_shard_test", "core_shard_test", "")
        self.assert_found(["core/shard"], "core_shard_test", "core_shard_test", "")
        self.assert_found(["tests/engine"], "engine_fast_test", "engine_fast_test", "")

    def test_files(self):
        for name in ("src/model/node_test.cc", "node_test.cc"):
            self.assert_found([name], "model_test", "model_test", "Node.ComesBack")

    def test_suites_cases_and_patterns(self):
        self.assert_found(["Money"], "model_test", "model_test", "Money.Formats:Money.Parses")
        self.assert_found(["Money.Parses"], "model_test", "model_test", "Money.Parses")
        self.assert_found(["Mon*.P*"], "model_test", "model_test", "Money.Parses")
        self.assert_found(["ShardRails.ARestart*", "Money.Parses"], "core_shard_test model_test", "core_shard_test|model_test",
                          "Money.Parses:ShardRails.ARestartDoesNotWidenTheBudget")

    def test_cases_with_parameters(self):
        self.assert_found(["FastMutant"], "engine_fast_test", "engine_fast_test", "*FastMutant*.IsFound*")
        listed = "All/FastMutant.IsFound/fast_gaps_stay"
        self.assert_found([listed], "engine_fast_test", "engine_fast_test", listed)

    def test_a_whole_program_beside_a_case(self):
        self.assert_found(["core_shard_test", "Money.Parses"], "core_shard_test model_test", "core_shard_test|model_test",
                          "Money.Parses:ShardRails.ARestartDoesNotWidenTheBudget")

    def test_unknown_names(self):
        for name, near in (("modle", "model"), ("money_tset.cc", "src/model/money_test.cc"), ("Money.Parse", "Money.Parses"),
                           ("shardrails", "ShardRails"), ("Money.Gone", "Money.Formats"), ("restart", "ShardRails.ARestart")):
            with self.subTest(name=name):
                code, output, error = self.find(name)
                self.assertEqual((code, output), (1, []))
                self.assertIn(f"there is no test, folder or suite '{name}'; did you mean ", error)
                self.assertIn(near, error)
        self.assertIn("ctest -N", self.find("qqqqqqqqqqqq")[2])


planted.main()
