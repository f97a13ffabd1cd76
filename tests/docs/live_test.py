"""live_test.py DOC MUSTER [FOLDER...]: a page about a running system shows what its commands print.

Starts `muster up` in a directory of its own on free ports and runs the page's commands in order, with MUSTER as `muster`
and the FOLDERs beside it. A block that begins with `$ ` holds commands and, below each, what it prints. A command that
only looks is repeated until it prints what the page shows, for a minute and a half: machines come and go meanwhile.
Figures and members that differ from run to run are masked on both sides, and a line `...` stands for any number of lines. The program and its home
are where a reader may have them, and the ports of the test's `muster up` are left out. A
command ends with code 0, or with N if it ends in `# exit N`, also in a pipe (exit_codes.py); a plan's id in it is that of the latest plan. A block that begins with `^C`, after all
commands, holds what `muster up` says when it is stopped. With MUSTER_ACCEPT=1 blocks that do not hold are rewritten to show what the commands print once it
stays the same.
"""
import os
import re
import sys
import time
import unittest
from pathlib import Path

import exit_codes
from exit_codes import expected_exit, with_exit
from running_up import PATIENCE, RunningUp

DOC, MUSTER = Path(sys.argv[1]), Path(sys.argv[2]).resolve()
FOLDERS = [Path(name).resolve() for name in sys.argv[3:]]
BLOCK = re.compile(r"```\n\$ (.*?)```", re.DOTALL)
STOP = re.compile(r"```\n\^C\n(.*?)```", re.DOTALL)
PLAN_ID = re.compile(r"\bp1(\.[0-9a-f]{8}){4}\b")
LOOKS = {"get", "describe", "events", "logs", "fleet", "explain", "diff", "plan", "what-if"}
STAYS = 8  # seconds: longer than surplus is held
HOME, PROGRAM = "/home/me", "/home/me/muster/build/muster"  # of the page
MASKS = [(re.compile(pattern), shown) for pattern, shown in [
    (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME"),
    (PLAN_ID, "PLAN-ID"),
    (r"\bcycle \d+", "cycle N"),
    (r"\b\d+(ms|s|m|h|d)\b", "AGE"),
    (r"\brevision [0-9a-f]{12}", "revision REVISION"),
    # Which member is on which node depends on whose agent joins first.
    (r"\bhello-\d+", "hello-N"),
    (r"(?<= on node )local-\d+", "local-N"),
    (r"(?<=placed on )local-\d+", "local-N"),
    (r"[ \t]+", " "),
]]


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


class LivePage(RunningUp):
    muster = MUSTER
    folders = FOLDERS
    plan_id = ""

    @staticmethod
    def looks(command):
        words = command.split()
        return len(words) > 1 and words[0] in ("muster", "build/muster") and words[1] in LOOKS

    def with_plan(self, command):
        """The command with the id of the latest plan in place of the page's."""
        return PLAN_ID.sub(self.plan_id, command) if self.plan_id else command

    def run_of_page(self, command):
        result = exit_codes.run(self.with_plan(command), cwd=self.folder.name, env=self.env)
        result.stdout = self.as_a_reader_has_it(result.stdout)
        found = PLAN_ID.search(result.stdout)
        if found:
            self.plan_id = found.group(0)
        return result

    def test_commands_print_what_the_page_shows(self):
        self.wait_until_it_answers()
        text = DOC.read_text()
        if os.environ.get("MUSTER_ACCEPT"):
            DOC.write_text(STOP.sub(self.stopped, BLOCK.sub(self.rewritten, text)))
            return
        commands = 0
        for block in BLOCK.findall(text):
            for example in block.split("\n$ "):
                command, _, shown = example.partition("\n")
                end = time.monotonic() + PATIENCE
                result = self.run_of_page(command)
                while self.looks(command) and not self.agrees(command, shown, result):
                    if time.monotonic() > end:
                        break
                    result = self.run_of_page(command)
                if not matches(masked(shown), masked(result.stdout)):
                    self.assertEqual("\n".join(masked(result.stdout)), "\n".join(masked(shown)), command + "\n" + result.stderr)
                self.assertEqual(result.returncode, expected_exit(command), command + "\n" + result.stderr)
                commands += 1
        self.assertGreater(commands, 0, "the page has no example")
        for shown in STOP.findall(text):
            self.assertEqual(self.last_words(shown), shown.rstrip().split("\n"))

    def as_a_reader_has_it(self, text):
        ports = "".join(f" --{name} {address}" for name, address in self.address.items())
        return text.replace(str(MUSTER), PROGRAM).replace(self.env["HOME"], HOME).replace(ports, "")

    def last_words(self, shown):
        """As many lines of what `muster up` said until it ended."""
        lines = self.as_a_reader_has_it(self.stop()[1]).rstrip().split("\n")
        return lines[-len(shown.rstrip().split("\n")):]

    @staticmethod
    def agrees(command, shown, result):
        return matches(masked(shown), masked(result.stdout)) and result.returncode == expected_exit(command)

    def settled_result(self, command):
        result = self.run_of_page(command)
        since = time.monotonic()
        while self.looks(command) and time.monotonic() - since < STAYS:
            again = self.run_of_page(command)
            if masked(again.stdout) != masked(result.stdout):
                since = time.monotonic()
            result = again
        return result

    def rewritten(self, match):
        parts = []
        for example in match.group(1).split("\n$ "):
            command, _, shown = example.partition("\n")
            result = self.settled_result(command)
            if "..." in shown.split("\n") and self.agrees(command, shown, result):
                parts.append(example.rstrip() + "\n")
                continue
            command = self.with_plan(command)
            parts.append(f"{with_exit(command, result.returncode)}\n{result.stdout.rstrip()}".rstrip() + "\n")
        return "```\n$ " + "\n$ ".join(parts) + "```"

    def stopped(self, match):
        return "```\n^C\n" + "\n".join(self.last_words(match.group(1))) + "\n```"


unittest.main(argv=sys.argv[:1], verbosity=2)
