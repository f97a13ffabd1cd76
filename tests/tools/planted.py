"""A source tree made for one test, and a check of tools/ run on it."""
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]


class PlantedTreeTest(unittest.TestCase):
    check = ""  # the program below tools/ under test

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="muster-planted-")
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.cache = self.root / "cache"  # of checks that passed
        (self.root / "src").mkdir()

    def plant(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def run_check(self, *options):
        """(exit code, everything printed)"""
        env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "MUSTER_LINT_CACHE": str(self.cache)}
        command = [REPO / "tools" / self.check, *options, self.root]
        result = subprocess.run(command, capture_output=True, text=True, env=env)
        return result.returncode, result.stdout + result.stderr

    def assert_passes(self, *fragments, options=()):
        """The check succeeds and prints every fragment."""
        code, output = self.run_check(*options)
        self.assertEqual(code, 0, output)
        for fragment in fragments:
            self.assertIn(fragment, output)

    def assert_caught(self, *fragments, options=()):
        """The check fails with exit code 1 and prints every fragment."""
        code, output = self.run_check(*options)
        self.assertEqual(code, 1, output)
        for fragment in fragments:
            self.assertIn(fragment, output)


def main():
    sys.dont_write_bytecode = True
    unittest.main(verbosity=2)
