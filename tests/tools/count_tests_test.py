"""tools/count_tests adds up GoogleTest cases and other ctest entries, and fails when anything did."""
import json
import sys

sys.dont_write_bytecode = True
import planted  # noqa: E402


def report(*cases):
    """A GoogleTest report: a case per (name, result, failed)."""
    return json.dumps({"testsuites": [{"name": "Suite", "testsuite": [
        {"name": name, "result": result, **({"failures": [{"failure": "x"}]} if failed else {})}
        for name, result, failed in cases]}]})


class CountTests(planted.PlantedTreeTest):
    check = "count_tests"

    def ctest(self, **entries):
        cases = "".join(f'<testcase name="{name}" status="{status}"/>' for name, status in entries.items())
        self.plant("ctest.xml", f"<testsuite>{cases}</testsuite>")

    def last_line(self):
        code, output = self.run_check()
        return code, output.splitlines()[-1]

    def test_cases_and_programs_add_up(self):
        self.ctest(base_test="run", check_layers="run")
        self.plant("base_test.json", report(("A", "COMPLETED", False), ("B", "COMPLETED", False)))
        self.assertEqual(self.last_line(), (0, "3 passed, 0 failed"))

    def test_failed_case(self):
        self.ctest(base_test="fail")
        self.plant("base_test.json", report(("A", "COMPLETED", False), ("B", "COMPLETED", True)))
        self.assertEqual(self.last_line(), (1, "1 passed, 1 failed"))
        self.assert_caught("FAILED base_test: Suite.B")

    def test_skipped_is_not_passed(self):
        self.ctest(base_test="run")
        self.plant("base_test.json", report(("A", "COMPLETED", False), ("B", "SKIPPED", False)))
        self.assertEqual(self.last_line(), (0, "1 passed, 0 failed"))
        self.assertIn("1 skipped or disabled", self.run_check()[1])

    def test_crash_without_a_report(self):
        self.ctest(base_test="fail", check_layers="run")
        self.assertEqual(self.last_line(), (1, "1 passed, 1 failed"))

    def test_failure_outside_the_cases(self):
        self.ctest(base_test="fail")
        self.plant("base_test.json", report(("A", "COMPLETED", False)))
        self.assertEqual(self.last_line(), (1, "1 passed, 1 failed"))

    def test_nothing_ran(self):
        self.ctest()
        self.assertEqual(self.last_line(), (1, "0 passed, 0 failed"))


planted.main()
