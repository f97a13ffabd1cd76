"""examples_test.py DOC MUSTER: the examples of a page do what the page shows.

A yaml block that begins with `# name.yaml` is a file. A block that begins with `$ ` holds commands and, below each, what
it prints; they run in a directory with the page's files, with MUSTER as `muster`.
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

DOC, MUSTER = Path(sys.argv[1]), Path(sys.argv[2]).resolve()


class Examples(unittest.TestCase):
    def test_commands_print_what_the_page_shows(self):
        text = DOC.read_text()
        with tempfile.TemporaryDirectory(prefix="muster-docs-") as folder:
            (Path(folder) / "bin").mkdir()
            (Path(folder) / "bin" / "muster").symlink_to(MUSTER)
            for name, content in re.findall(r"```yaml\n# ([\w-]+\.yaml)\n(.*?)```", text, re.DOTALL):
                (Path(folder) / name).write_text(content)
            env = {**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}"}
            commands = 0
            for block in re.findall(r"```\n\$ (.*?)```", text, re.DOTALL):
                for example in block.split("\n$ "):
                    command, _, shown = example.partition("\n")
                    with self.subTest(command=command):
                        result = subprocess.run(command, shell=True, cwd=folder, env=env, capture_output=True, text=True)
                        self.assertEqual(result.stdout.rstrip(), shown.rstrip(), result.stderr)
                        commands += 1
            self.assertGreater(commands, 0, "the page has no example")


unittest.main(argv=sys.argv[:1], verbosity=2)
