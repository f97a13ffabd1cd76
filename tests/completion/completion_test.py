"""completion_test.py MUSTER: the scripts of `muster completion` in bash, zsh and fish themselves."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

MUSTER = Path(sys.argv[1]).resolve()
# Nobody listens there: names of objects are not offered, and nothing waits.
NOBODY = "127.0.0.1:1"


class Completion(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="muster-completion-")
        (Path(self.folder.name) / "muster").symlink_to(MUSTER)
        self.env = {"PATH": f"{self.folder.name}:/usr/bin:/bin", "HOME": self.folder.name, "MUSTER_SCHEDULER": NOBODY,
                    "MUSTER_SHARD": NOBODY, "TERM": "dumb"}

    def tearDown(self):
        self.folder.cleanup()

    def run_shell(self, *command):
        done = subprocess.run(command, env=self.env, cwd=self.folder.name, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        return done.stdout.split("\n")

    def bash(self, *words):
        quoted = " ".join(f"'{word}'" for word in words)
        return [line for line in self.run_shell(
            "bash", "--norc", "-c",
            f"source <(muster completion bash); COMP_WORDS=({quoted}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); "
            "_muster; printf '%s\\n' \"${COMPREPLY[@]}\"") if line]

    def test_bash_completes_verbs_options_and_types(self):
        self.assertEqual(self.bash("muster", "descr"), ["describe"])
        self.assertEqual(self.bash("muster", "fleet", "mach"), ["machines"])
        self.assertEqual(self.bash("muster", "get", "-o", "j"), ["json"])
        self.assertEqual(self.bash("muster", "get", "--output", "=", "y"), ["yaml"])
        self.assertEqual(self.bash("muster", "apply", "--dry"), ["--dry-run"])
        self.assertEqual(self.bash("muster", "get", "wor"), ["workloads"])
        self.assertEqual(self.bash("muster", "get", "workloads", "w"), [])
        self.assertIn("explain", self.bash("muster", ""))

    def test_bash_has_registered_it(self):
        registered = self.run_shell("bash", "--norc", "-c", "source <(muster completion bash); complete -p muster")
        self.assertEqual(registered[0], "complete -o default -F _muster muster")

    def test_zsh_takes_the_script(self):
        Path(self.folder.name, "script").write_text("\n".join(self.run_shell("muster", "completion", "zsh")))
        self.run_shell("zsh", "-f", "-n", "script")
        # The function as zsh would call it, with what it offers printed.
        shown = self.run_shell(
            "zsh", "-f", "-c",
            "compdef() { }; _describe() { print -l -- \"${candidates[@]}\" }; _files() { print files }; source ./script; "
            "words=(muster get -o j); CURRENT=4; _muster; words=(muster apply -f x); CURRENT=4; _muster")
        self.assertEqual([line for line in shown if line], ["json", "files"])

    def test_fish_completes(self):
        shown = self.run_shell("fish", "--no-config", "-c",
                               "muster completion fish | source; complete -C 'muster get -o j'; complete -C 'muster descr'")
        self.assertEqual([line.split("\t")[0] for line in shown if line], ["json", "describe"])


unittest.main(argv=sys.argv[:1], verbosity=2)
