"""Which checks of which text have passed before: what check_tidy and check_headers need not do again.

A check of a file is named by a digest of everything it depends on: the file, every project file it includes, directly or
not, and what the caller adds (tool, flags, settings). What passed is an empty file of that name in
${MUSTER_LINT_CACHE:-${XDG_CACHE_HOME:-~/.cache}/muster/lint}, which all clones share; what failed is not remembered. Text
outside the project is named by the versions of the installed development packages.
"""
import hashlib
import os
import re
import subprocess
import time
from pathlib import Path

from cpp_source import strip

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)
DAYS = 60  # what was not used for so long is removed


class Includes:
    """What files include, found in the folders that the compiler looks in. Whatever an #if leaves out counts as included."""

    def __init__(self, folders):
        self.folders = [Path(folder) for folder in folders]
        self.direct = {}  # file -> the project files it includes
        self.digests = {}

    def of(self, file):
        """Every project file that `file` includes, directly or not, itself among them."""
        seen, open_files = set(), [file]
        while open_files:
            current = open_files.pop()
            if current not in seen:
                seen.add(current)
                open_files += self._direct(current)
        return seen

    def digest(self, file):
        if file not in self.digests:
            self.digests[file] = hashlib.sha256(file.read_bytes()).hexdigest()
        return self.digests[file]

    def _direct(self, file):
        if file not in self.direct:
            names = INCLUDE.findall(strip(file.read_text(), keep_strings=True))
            found = (self._find(name, file) for name in names)
            self.direct[file] = [path for path in found if path]
        return self.direct[file]

    def _find(self, name, user):
        candidates = (folder / name for folder in (user.parent, *self.folders))
        return next((path for path in candidates if path.is_file()), None)


def outside():
    """A text that changes when the headers of the distribution do."""
    try:
        command = ["dpkg-query", "--show", "--showformat", "${Package} ${Version}\n", "*-dev", "*-dev-*"]
        return subprocess.run(command, capture_output=True, text=True).stdout
    except FileNotFoundError:
        return ""


def cache():
    """The folder that all clones share."""
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "muster" / "lint"
    return Path(os.environ.get("MUSTER_LINT_CACHE") or default)


class Passed:
    def __init__(self, root, includes, *settings):
        """Checks of files below `root`; `settings` are texts that the verdict depends on besides."""
        self.folder = cache()
        self.root = root
        self.includes = includes
        self.settings = "\0".join((*settings, outside()))

    def key(self, file, command=""):
        """The same in every clone: paths below the root count from there."""
        digest = hashlib.sha256(f"{self.settings}\0{command.replace(str(self.root), '')}".encode())
        for used in sorted(self.includes.of(file)):
            digest.update(f"\0{str(used).replace(str(self.root), '')} {self.includes.digest(used)}".encode())
        return digest.hexdigest()

    def before(self, key):
        try:
            os.utime(self.folder / key)
            return True
        except OSError:
            return False

    def remember(self, key):
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / key).touch()
        except OSError:
            pass  # without a cache the next run is slower, no more

    def prune(self):
        try:
            for entry in os.scandir(self.folder):
                if entry.stat().st_mtime < time.time() - DAYS * 24 * 3600:
                    os.unlink(entry.path)
        except OSError:
            pass
