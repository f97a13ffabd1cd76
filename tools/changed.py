"""What changed, for checks that read only that: since the main branch or, on the main branch itself, since the last commit at
which every check passed. Where none is known, in the last commit.

changed.py COMMIT [ROOT] notes that every check passed at that commit; tools/lint does so.
"""
import subprocess
import sys
from pathlib import Path

from passed import cache

READERS = 8  # of a changed header: half the tree includes the lowest ones


def git(root, *arguments):
    """The output of git, or None where it fails: ROOT need not be a clone."""
    result = subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True)
    return result.stdout.strip() if result.returncode == 0 else None


def changed(root):
    """The files below ROOT that changed, or None where that cannot be known."""
    head = git(root, "rev-parse", "--quiet", "--verify", "HEAD")
    if head is None:
        return None
    base = git(root, "merge-base", "HEAD", "origin/main")
    if base is None or base == head:
        base = last_linted(root)
    if base is None:
        base = git(root, "rev-parse", "--quiet", "--verify", "HEAD~1")
        if base is None:
            return None
    names = git(root, "diff", "--name-only", "--diff-filter=d", base)
    if names is None:
        return None
    names += "\n" + (git(root, "ls-files", "--others", "--exclude-standard") or "")
    touched = {root / name for name in names.split("\n") if name}
    return touched | {header for file in touched if file.suffix == ".proto" for header in generated(root, file)}


def linted(root):
    """The file that names the last commit at which every check passed; None outside a clone. Clones of one project share it."""
    first = git(root, "rev-list", "--max-parents=0", "HEAD")
    return cache() / f"linted-{first.split()[0]}" if first else None


def last_linted(root):
    """That commit, if this one came after it."""
    file = linted(root)
    commit = file.read_text() if file and file.is_file() else None
    return commit if commit and git(root, "merge-base", "--is-ancestor", commit, "HEAD") is not None else None


def remember_linted(commit, root):
    file = linted(root)
    if file is None:
        return
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(commit)
    except OSError:
        pass  # without it the next run looks at the last commit


def generated(root, proto):
    """The headers that the build makes of a .proto file."""
    stem = (root / "build" / "lint" / proto.relative_to(root)).with_suffix("")
    return [Path(f"{stem}.pb.h"), Path(f"{stem}.grpc.pb.h")]


def nearest(check, files, touched, includes):
    """Those of `files` that were touched and, for each touched file READERS of those that include it, nearest first."""
    chosen = touched.intersection(files)
    left = set()
    for header in sorted(touched):
        readers = [file for file in files if header in includes.of(file)]
        readers.sort(key=lambda file: (file not in chosen, file.stem != header.stem, file.parent != header.parent))
        chosen.update(readers[:READERS])
        left.update(readers[READERS:])
    if left := left - chosen:
        print(f"{check}: {len(left)} more files include what changed; --all reads them")
    return [file for file in files if file in chosen]


if __name__ == "__main__":
    remember_linted(sys.argv[1], Path(sys.argv[2] if len(sys.argv) > 2 else Path(__file__).parent.parent).resolve())
