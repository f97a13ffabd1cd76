"""cmake/list_single_tests.cmake lists each case of a GoogleTest program for ctest, and tools/run_shard runs a part of them."""
import os
import subprocess
import sys

sys.dont_write_bytecode = True
import planted  # noqa: E402

LISTING = """printf '%s\\n' 'Running main() from gtest_main.cc' 'Money.' '  Parses' '  DISABLED_Later' 'All/Mutant.  # TypeParam = int' \
'  IsFound/one  # GetParam() = "one"' '  IsFound/two'"""


class SingleTests(planted.PlantedTreeTest):
    def program(self, name, text):
        self.plant(f"build/{name}", f"#!/bin/sh\n{text}\n")
        (self.root / "build" / name).chmod(0o755)
        return self.root / "build" / name

    def ctest(self, *arguments, **variables):
        programs = sorted(path for path in (self.root / "build").glob("*_test"))
        self.plant("build/CTestTestfile.cmake", "".join(
            f'set(program "{path}")\nset(environment "MUSTER=here")\nset(labels "single;{path.name}")\n'
            f'include("{planted.REPO}/cmake/list_single_tests.cmake")\n' for path in [*programs, self.root / "build/absent"]))
        env = {key: value for key, value in os.environ.items() if key != "MUSTER_PROGRAMS_ONLY"}
        result = subprocess.run(["ctest", "--test-dir", self.root / "build", *arguments], capture_output=True, text=True,
                                env={**env, **variables})
        return result.stdout + result.stderr

    def names(self, *arguments, **variables):
        lines = self.ctest("-N", *arguments, **variables).splitlines()
        return [line.split(": ", 1)[1] for line in lines if line.lstrip().startswith("Test ") and ": " in line]

    def test_each_case_is_listed(self):
        self.program("model_test", LISTING)
        self.assertEqual(self.names(), ["Money.Parses", "All/Mutant.IsFound/one", "All/Mutant.IsFound/two"])
        self.assertEqual(self.names("-R", "Mutant.IsFound/two"), ["All/Mutant.IsFound/two"])
        self.assertEqual(self.names(MUSTER_PROGRAMS_ONLY="1"), [])

    def test_cases_of_one_name_in_two_programs(self):
        self.program("a_test", "printf '%s\\n' Killed. '  Once'")
        self.program("b_test", "printf '%s\\n' Killed. '  Once'")
        self.assertEqual(self.names(), ["Killed.Once", "Killed.Once (b_test)"])
        self.assertEqual(self.names("-L", "b_test"), ["Killed.Once (b_test)"])

    def test_a_program_is_asked_again_when_it_is_new(self):
        path = self.program("model_test", f"echo asked >>{self.root}/asked\nprintf '%s\\n' Money. '  Parses'")
        self.names()
        self.names()
        self.assertEqual((self.root / "asked").read_text(), "asked\n")
        os.utime(path, (2e9, 2e9))
        self.names()
        self.assertEqual((self.root / "asked").read_text(), "asked\nasked\n")

    def test_only_the_case_is_run_and_with_its_environment(self):
        self.program("model_test", f'[ "$1" = --gtest_list_tests ] || {{ echo "$MUSTER $*"; exit 0; }}\n{LISTING}')
        self.assertIn("here --gtest_filter=Money.Parses\n", self.ctest("-V", "-R", "Money.Parses").replace("1: ", ""))

    def test_a_program_that_cannot_list(self):
        self.program("model_test", "exit 3")
        self.assertIn("its test cases are not listed", self.ctest("-N"))

    def test_a_part_of_a_program(self):
        path = self.program("model_test", 'echo "$GTEST_SHARD_INDEX of $GTEST_TOTAL_SHARDS ${GTEST_OUTPUT-none}"')
        for output, said in (({}, "none"), ({"GTEST_OUTPUT": "json:/x/"}, "json:/x/model_test_2.json")):
            env = {key: value for key, value in os.environ.items() if key != "GTEST_OUTPUT"}
            result = subprocess.run([planted.REPO / "tools/run_shard", "2", "4", path], capture_output=True, text=True,
                                    env={**env, **output})
            self.assertEqual(result.stdout, f"1 of 4 {said}\n")

    def test_the_cases_that_run_apart_and_the_others(self):
        path = self.program("model_test", 'echo "$GTEST_FILTER ${GTEST_OUTPUT-none}"')
        for part, given, said in (("apart", {}, "*Waits* none"), ("rest", {}, "-*Waits* none"),
                                  ("rest", {"GTEST_FILTER": "Money.*"}, "Money.* none"),
                                  ("apart", {"GTEST_OUTPUT": "json:/x/"}, "*Waits* json:/x/model_test_apart.json"),
                                  ("rest", {"GTEST_OUTPUT": "json:/x/"}, "-*Waits* json:/x/")):
            env = {key: value for key, value in os.environ.items() if key not in ("GTEST_OUTPUT", "GTEST_FILTER")}
            result = subprocess.run([planted.REPO / "tools/run_apart", part, "*Waits*", path], capture_output=True,
                                    text=True, env={**env, **given})
            self.assertEqual(result.stdout, f"{said}\n")


planted.main()
