"""RunningUp: a test of a running system. Starts `muster up` in a home of its own on free ports, and ends it."""
import os
import random
import signal
import socket
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

PATIENCE = 90
PORTS = ["scheduler-listen", "scheduler-metrics", "operator-listen", "operator-metrics", "shard-listen", "shard-metrics",
         "provider-listen", "provider-metrics"]


def free_ports(count):
    """Below those of outgoing connections, one of which could take a port before the program does (host/free_ports.cc)."""
    sockets = []
    while len(sockets) < count:
        one = socket.socket()
        try:
            one.bind(("127.0.0.1", random.randrange(16384, 32768)))
            sockets.append(one)
        except OSError:
            one.close()
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class RunningUp(unittest.TestCase):
    """A subclass names the program and the folders that its commands find beside them."""
    muster: Path
    folders: list[Path]

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="muster-live-")
        root = Path(self.folder.name)
        for place in ("bin", "build"):  # on the path, and as a page that builds it names it
            (root / place).mkdir()
            (root / place / "muster").symlink_to(self.muster)
        for shared in self.folders:
            (root / shared.name).symlink_to(shared)
        self.address = address = {name: f"127.0.0.1:{port}" for name, port in zip(PORTS, free_ports(len(PORTS)))}
        self.env = {**{name: value for name, value in os.environ.items() if name != "XDG_STATE_HOME"}, "HOME": str(root), "PATH": f"{root}/bin:{os.environ['PATH']}", "MUSTER_SCHEDULER": address["scheduler-listen"],
                    "MUSTER_SHARD": address["shard-listen"]}
        flags = [word for name in PORTS for word in (f"--{name}", address[name])]
        self.output = open(root / "up.txt", "w+")
        self.up = subprocess.Popen([str(self.muster), "up", "--plain", *flags], cwd=root, env=self.env, stdout=self.output,
                                   stderr=subprocess.STDOUT)

    def tearDown(self):
        code, said = self.stop()
        self.output.close()
        self.folder.cleanup()
        self.assertEqual(code, 0, said)

    def stop(self):
        """Ctrl-C: the exit code, and all that it printed. Again, it does nothing more."""
        if self.up.poll() is None:
            self.up.send_signal(signal.SIGINT)
        code = self.up.wait(timeout=60)
        self.output.seek(0)
        return code, self.output.read()

    def run_once(self, command):
        return subprocess.run(command, shell=True, cwd=self.folder.name, env=self.env, capture_output=True, text=True)

    def wait_until(self, command, failure):
        """Until the command succeeds."""
        end = time.monotonic() + PATIENCE
        while self.run_once(command).returncode != 0:
            self.assertLess(time.monotonic(), end, failure)
            self.assertIsNone(self.up.poll(), "muster up has ended")

    def wait_until_it_answers(self):
        self.wait_until("muster get nodes && muster fleet clusters | grep home", "muster up does not answer")
