"""json_keys_test.py DOC MUSTER [FOLDER...]: `-o json` has the keys that the table of DOC lists, and no others.

A row of the table is a kind or a verb and its keys; a word in brackets lists the keys of what the key before it holds, text
behind a semicolon is about other input. Every object that a verb prints on a running system may have only keys of its row, and
each key of a verb's row must have been printed. Kinds leave out what is empty; src/cli/cluster_documents_test.cc has them whole.
"""
import json
import re
import sys
import unittest
from pathlib import Path

from running_up import RunningUp

DOC, MUSTER = Path(sys.argv[1]), Path(sys.argv[2]).resolve()
FOLDERS = [Path(name).resolve() for name in sys.argv[3:]]
SET = "examples/workloads/hello.yaml"
# What prints a row's objects.
COMMANDS = {
    "Workload": ["get workloads"], "Node": ["get nodes"], "Event": ["events"],
    "`diff`": [f"diff -f {SET}", "diff -f more.yaml"],
    "`explain`": ["explain workload hello-0", "explain node NODE", "explain machine NODE"],
    "`plan`, live": ["plan -f more.yaml"],
    "`what-if`": ["what-if --demand x3", "what-if --lose-zone a"],
    "`fleet machines`": ["fleet machines"], "`fleet needs`": ["fleet needs"], "`fleet actions`": ["fleet actions"],
    "`fleet clusters`": ["fleet clusters"],
}
WHOLE = [row for row in COMMANDS if row.startswith("`")]


def rows():
    found = {}
    for row, cell in re.findall(r"^\| ([^|]+?) \| (.+?) \|$", DOC.read_text(), re.MULTILINE):
        if row in COMMANDS:
            text = cell.split(";")[-1] if row == "`explain`" else cell.split(";")[0]
            found[row] = set(re.sub(r"\([^)]*\)", "", text.replace("always:", "")).split())
            if row == "`explain`":
                found[row] |= set(cell.split(";")[0].split(":")[1].split())
    return found


class JsonKeys(RunningUp):
    muster = MUSTER
    folders = FOLDERS

    def test_objects_have_the_keys_of_the_page(self):
        documented = rows()
        self.assertEqual(set(documented), set(COMMANDS), "the page has a row for each")
        self.wait_until_it_answers()
        self.wait_until(f"muster apply -f {SET}", "it is not applied")
        self.wait_until("muster get sets | grep -E ' ([0-9]+)/\\1 '", "the members do not run")
        text = (Path(self.folder.name) / SET).read_text()
        (Path(self.folder.name) / "more.yaml").write_text(re.sub(r"replicas: \d+", "replicas: 20", text))
        node = json.loads(self.run_once("muster get nodes -o json").stdout.splitlines()[0])["name"]
        for row, commands in COMMANDS.items():
            printed = set()
            for command in commands:
                result = self.run_once(f"muster {command.replace('NODE', node)} -o json")
                self.assertTrue(result.stdout, command + ": " + result.stderr)
                for line in result.stdout.splitlines():
                    printed |= set(json.loads(line))
            with self.subTest(row=row):
                self.assertLessEqual(printed, documented[row])
                if row in WHOLE:
                    self.assertEqual(printed, documented[row])


unittest.main(argv=sys.argv[:1], verbosity=2)
