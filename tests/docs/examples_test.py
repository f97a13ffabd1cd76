"""examples_test.py DOC MUSTER [FOLDER...]: the examples of a page do what the page shows.

A yaml block that begins with `# name.yaml` is a file. A block that begins with `$ ` holds commands and, below each, what
it prints; they run in a directory with the page's files and the FOLDERs, with MUSTER as `muster`. A command ends with code
0, or with N if it ends in `# exit N`, also in a pipe (exit_codes.py). With MUSTER_ACCEPT=1 the page is rewritten to show what the commands print.
"""
import os
import re
import sys
import tempfile
import unittest
from pathlib import Path

import exit_codes
from exit_codes import expected_exit, with_exit

DOC, MUSTER = Path(sys.argv[1]), Path(sys.argv[2]).resolve()
FOLDERS = [Path(name).resolve() for name in sys.argv[3:]]
BLOCK = re.compile(r"```\n\$ (.*?)```", re.DOTALL)


class Examples(unittest.TestCase):
    def test_commands_print_what_the_page_shows(self):
        text = DOC.read_text()
        with tempfile.TemporaryDirectory(prefix="muster-docs-") as folder:
            (Path(folder) / "bin").mkdir()
            (Path(folder) / "bin" / "muster").symlink_to(MUSTER)
            for shared in FOLDERS:
                (Path(folder) / shared.name).symlink_to(shared)
            for name, content in re.findall(r"```yaml\n# ([\w-]+\.yaml)\n(.*?)```", text, re.DOTALL):
                (Path(folder) / name).write_text(content)
            env = {**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}"}

            def run(command):
                return exit_codes.run(command, cwd=folder, env=env)

            if os.environ.get("MUSTER_ACCEPT"):
                self.accept(text, run)
                return
            commands = 0
            for block in BLOCK.findall(text):
                for example in block.split("\n$ "):
                    command, _, shown = example.partition("\n")
                    with self.subTest(command=command):
                        result = run(command)
                        self.assertEqual(result.stdout.rstrip(), shown.rstrip(), result.stderr)
                        self.assertEqual(result.returncode, expected_exit(command), result.stderr)
                        commands += 1
            self.assertGreater(commands, 0, "the page has no example")

    def accept(self, text, run):
        def rewritten(match):
            parts = []
            for example in match.group(1).split("\n$ "):
                command = example.partition("\n")[0]
                result = run(command)
                parts.append(f"{with_exit(command, result.returncode)}\n{result.stdout.rstrip()}".rstrip() + "\n")
            return "```\n$ " + "\n$ ".join(parts) + "```"

        DOC.write_text(BLOCK.sub(rewritten, text))


unittest.main(argv=sys.argv[:1], verbosity=2)
