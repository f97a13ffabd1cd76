"""example_workloads_test.py MUSTER EXAMPLES: each file of EXAMPLES/workloads runs on a `muster up` as it is.

A file is applied, its sets run and its jobs end, a diff finds nothing to change, and it is deleted again.
"""
import re
import sys
import unittest
from pathlib import Path

from running_up import RunningUp

MUSTER, EXAMPLES = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()


class ExampleWorkloads(RunningUp):
    muster = MUSTER
    folders = [EXAMPLES]

    def succeeds(self, command):
        result = self.run_once(command)
        self.assertEqual(result.returncode, 0, f"{command}\n{result.stdout}{result.stderr}")
        return result.stdout

    def test_each_file_runs(self):
        self.wait_until_it_answers()
        files = sorted(EXAMPLES.glob("workloads/*.yaml"))
        self.assertGreater(len(files), 3)
        for path in files:
            file = path.relative_to(EXAMPLES.parent)
            with self.subTest(file=str(file)):
                names = re.findall(r"^((?:set|job|workload|quota)/\S+) created$", self.succeeds(f"muster apply -f {file}"), re.MULTILINE)
                self.assertTrue(names, "nothing was created")
                for name in names:
                    if name.startswith(("set/", "job/")):
                        self.succeeds(f"muster rollout status {name} --timeout 2m")
                    if name.startswith("quota/"):
                        self.succeeds(f"muster quota {name.split('/')[1]}")
                self.succeeds(f"muster diff -f {file}")
                self.succeeds(f"muster delete -f {file}")


unittest.main(argv=sys.argv[:1], verbosity=2)
