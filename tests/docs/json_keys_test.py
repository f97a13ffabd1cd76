"""json_keys_test.py DOC MUSTER [FOLDER...]: `-o json` has the keys that the table of DOC lists, and no others.

A row of the table is a kind or a verb and its keys; a word in brackets lists the keys of what the key before it holds, text
behind a semicolon is about other input or other flags. Every object that a verb prints on a running system may have only keys of its row, and
each key of a verb's row must have been printed. What a key holds, if it is a map or a list of maps, has the keys in the brackets,
or those of a row, or names that people choose. Kinds leave out what is empty; src/cli/cluster_documents_test.cc compares them whole with their rows.
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
OFFLINE = f"-f {SET} --catalogue examples/catalogues/ec2.yaml"
DUMP = "-f examples/dumps/shop.json --catalogue examples/catalogues/ec2.yaml"
STORE = "--store sqlite:$HOME/.local/state/muster/up/store"
CASES = Path(__file__).resolve().parents[1] / "cases" / "engine"
# What prints a row's objects.
COMMANDS = {
    "Workload": ["get workloads"], "Node": ["get nodes"], "Event": ["events"], "Quota": ["quota", "get quotas"],
    "`diff`": [f"diff -f {SET}", "diff -f more.yaml"],
    "`explain`": ["explain workload hello-0", "explain workload huge-0", "explain node NODE", "explain machine NODE"],
    "`plan`, live": ["plan -f more.yaml"],
    "`plan --catalogue`": [f"plan {OFFLINE}", "plan -f huge.yaml --catalogue examples/catalogues/ec2.yaml"],
    "`place`": ["place -f examples/dumps/shop.json", "place -f examples/dumps/shop.json --feasible"],
    "`decide`": [f"decide --machines -f {CASES}/{name}.yaml" for name in ("P1.cover", "P2.victims", "S.one-domain")],
    "`plan --consolidate`": [f"plan {DUMP} --consolidate"],
    "`what-if`": ["what-if --demand x3", "what-if --lose-zone a"],
    "`what-if -f DUMP`": [f"what-if --demand x3 {DUMP}", f"what-if --drop-type m5.large {DUMP}"],
    "`what-if -f CASE`": [f"what-if --demand x3 -f {CASES}/P1.cover.yaml"],
    "`sim`": ["sim counter --seeds 2"],
    "`bench provider`": ["bench provider --data-dir bench --machines 50 --lists 2 --deltas 2 --transitions 16"],
    "`conformance provider`, `conformance agent`": ["conformance provider PROVIDER"],
    "`conformance store`": ["conformance store memory: --histories 1"],
    "`fleet machines`": ["fleet machines"], "`fleet needs`, `fleet shortfalls`": ["fleet needs", "fleet shortfalls"],
    "`fleet actions`": ["fleet actions"], "`fleet clusters`": ["fleet clusters"],
    "`store get`, `store list`": [f"store list {STORE}", f"store get {STORE} KEY"],
    "`store watch`": [f"store watch {STORE} --from 1 --count 1"],
    "`selfcheck`": ["selfcheck"], "`version`": ["version"],
}
WHOLE = [row for row in COMMANDS if row.startswith("`")] + ["Quota"]
# Rows whose parts behind a semicolon hold for other objects of the same output.
IN_PARTS = ("`explain`", "`decide`", "`bench provider`")
# What a key holds is another row, or has names that people choose.
OF_ROW = {"workload": "Workload", "events": "Event"}
CHOSEN = {"labels", "metadata", "total", "reserved", "used", "available", "resources", "utilisation", "usage", "template", "stamp", "limits"}
CHOSEN_OF = {("`what-if -f CASE`", "actions")}


def keys_of(text):
    """Key by key, the keys in the brackets behind it."""
    return {key: set(inner.split()) for key, inner in re.findall(r"(\w+)(?: \(([^)]*)\))?", text)}


def rows():
    found = {}
    for row, cell in re.findall(r"^\| ([^|]+?) \| (.+?) \|$", DOC.read_text(), re.MULTILINE):
        if row not in COMMANDS:
            continue
        if row in IN_PARTS:
            found[row] = {}
            for part in cell.split(";"):
                found[row] |= keys_of(part.split(":")[-1])
        else:
            found[row] = keys_of(cell.split(";")[0])
    return found


def maps_in(value):
    return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, dict)]


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
        # No machine is so large: something waits, and a need is short.
        huge = text.replace("name: hello", "name: huge").replace("cpu: 1,", "cpu: 4000,")
        (Path(self.folder.name) / "huge.yaml").write_text(re.sub(r"replicas: \d+", "replicas: 1", huge))
        self.wait_until("muster apply -f huge.yaml", "it is not applied")
        self.wait_until("muster quota team --limit cpu=2 --limit workloads=10 --rate 10 --burst 50", "it has no quota")
        self.wait_until("muster fleet shortfalls -o json | grep -q reason", "nothing is short")
        node = json.loads(self.run_once("muster get nodes -o json").stdout.splitlines()[0])["name"]
        stored = json.loads(self.run_once(f"muster store list {STORE} -o json").stdout.splitlines()[0])["key"]
        for row, commands in COMMANDS.items():
            printed = set()
            for command in commands:
                command = command.replace("NODE", node).replace("PROVIDER", self.address["provider-listen"]).replace("KEY", stored)
                result = self.run_once(f"muster {command} -o json")
                self.assertTrue(result.stdout, command + ": " + result.stderr)
                for line in result.stdout.splitlines():
                    document = json.loads(line)
                    printed |= set(document)
                    if row in ("`plan`, live", "`what-if`"):
                        paid = sum(one["after"] * one["pricePerHour"] for one in document["machines"])
                        self.assertAlmostEqual(paid, document["costAfter"], msg=command)
                    for key, value in document.items():
                        for one in maps_in(value):
                            if key in CHOSEN or (row, key) in CHOSEN_OF:
                                continue
                            within = set(documented[OF_ROW[key]]) if row == "`explain`" and key in OF_ROW else \
                                documented[row].get(key, set())
                            self.assertLessEqual(set(one), within, f"{command}: {key}")
            with self.subTest(row=row):
                self.assertLessEqual(printed, set(documented[row]))
                if row in WHOLE:
                    self.assertEqual(printed, set(documented[row]))


unittest.main(argv=sys.argv[:1], verbosity=2)
