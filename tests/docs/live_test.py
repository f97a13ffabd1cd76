"""live_test.py DOC MUSTER [FOLDER...]: a page about a running system shows what its commands print.

Starts `muster up` in a directory of its own on free ports and runs the page's commands in order, with MUSTER as `muster`
and the FOLDERs beside it. A block that begins with `$ ` holds commands and, below each, what it prints. A command that
only looks is repeated until it prints what the page shows, for a minute and a half: machines come and go meanwhile.
Figures and members that differ from run to run are masked on both sides, and a line `...` stands for any number of lines. With
MUSTER_ACCEPT=1 the page is rewritten to show what the commands print once it stays the same.
"""
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

DOC, MUSTER = Path(sys.argv[1]), Path(sys.argv[2]).resolve()
FOLDERS = [Path(name).resolve() for name in sys.argv[3:]]
BLOCK = re.compile(r"```\n\$ (.*?)```", re.DOTALL)
LOOKS = {"get", "describe", "events", "logs", "fleet", "explain", "diff", "plan", "what-if"}
PATIENCE = 90
STAYS = 8  # seconds: longer than surplus is held
MASKS = [(re.compile(pattern), shown) for pattern, shown in [
    (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME"),
    (r"\bp1(\.[0-9a-f]{8}){4}\b", "PLAN-ID"),
    (r"\bcycle \d+", "cycle N"),
    (r"\b\d+(ms|s|m|h|d)\b", "AGE"),
    (r"\brevision [0-9a-f]{12}", "revision REVISION"),
    (r"\bhello-\d+", "hello-N"),  # which member is on which node depends on whose agent joins first
    (r"[ \t]+", " "),
]]
PORTS = ["scheduler-listen", "scheduler-metrics", "operator-listen", "operator-metrics", "shard-listen", "shard-metrics",
         "provider-listen", "provider-metrics"]


def masked(text):
    for pattern, shown in MASKS:
        text = pattern.sub(shown, text)
    return [line.strip() for line in text.rstrip().split("\n")]


def matches(shown, printed):
    """Whether the lines agree; `...` stands for any number of them."""
    if not shown:
        return not printed
    if shown[0] == "...":
        return any(matches(shown[1:], printed[skipped:]) for skipped in range(len(printed) + 1))
    return bool(printed) and shown[0] == printed[0] and matches(shown[1:], printed[1:])


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class LivePage(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="muster-live-")
        root = Path(self.folder.name)
        (root / "bin").mkdir()
        (root / "bin" / "muster").symlink_to(MUSTER)
        for shared in FOLDERS:
            (root / shared.name).symlink_to(shared)
        address = {name: f"127.0.0.1:{port}" for name, port in zip(PORTS, free_ports(len(PORTS)))}
        self.env = {**os.environ, "PATH": f"{root}/bin:{os.environ['PATH']}", "MUSTER_SCHEDULER": address["scheduler-listen"],
                    "MUSTER_SHARD": address["shard-listen"]}
        flags = [word for name in PORTS for word in (f"--{name}", address[name])]
        self.output = open(root / "up.txt", "w+")
        self.up = subprocess.Popen([str(MUSTER), "up", "--data-dir", str(root / "data"), "--plain", *flags], cwd=root,
                                   env=self.env, stdout=self.output, stderr=subprocess.STDOUT)

    def tearDown(self):
        self.up.send_signal(signal.SIGINT)
        code = self.up.wait(timeout=60)
        self.output.seek(0)
        said = self.output.read()
        self.output.close()
        self.folder.cleanup()
        self.assertEqual(code, 0, said)

    def run_once(self, command):
        return subprocess.run(command, shell=True, cwd=self.folder.name, env=self.env, capture_output=True, text=True)

    def wait_until_it_answers(self):
        end = time.monotonic() + PATIENCE
        while self.run_once("muster get nodes && muster fleet clusters | grep home").returncode != 0:
            self.assertLess(time.monotonic(), end, "muster up does not answer")
            self.assertIsNone(self.up.poll(), "muster up has ended")

    @staticmethod
    def looks(command):
        words = command.split()
        return len(words) > 1 and words[0] == "muster" and words[1] in LOOKS

    def test_commands_print_what_the_page_shows(self):
        self.wait_until_it_answers()
        text = DOC.read_text()
        if os.environ.get("MUSTER_ACCEPT"):
            DOC.write_text(BLOCK.sub(self.rewritten, text))
            return
        commands = 0
        for block in BLOCK.findall(text):
            for example in block.split("\n$ "):
                command, _, shown = example.partition("\n")
                end = time.monotonic() + PATIENCE
                result = self.run_once(command)
                while self.looks(command) and not matches(masked(shown), masked(result.stdout)):
                    if time.monotonic() > end:
                        break
                    result = self.run_once(command)
                if not matches(masked(shown), masked(result.stdout)):
                    self.assertEqual("\n".join(masked(result.stdout)), "\n".join(masked(shown)), command + "\n" + result.stderr)
                commands += 1
        self.assertGreater(commands, 0, "the page has no example")

    def settled_output(self, command):
        result = self.run_once(command).stdout
        since = time.monotonic()
        while self.looks(command) and time.monotonic() - since < STAYS:
            again = self.run_once(command).stdout
            if masked(again) != masked(result):
                since = time.monotonic()
            result = again
        return result

    def rewritten(self, match):
        parts = []
        for example in match.group(1).split("\n$ "):
            command = example.partition("\n")[0]
            parts.append(f"{command}\n{self.settled_output(command).rstrip()}".rstrip() + "\n")
        return "```\n$ " + "\n$ ".join(parts) + "```"


unittest.main(argv=sys.argv[:1], verbosity=2)
