"""What changed, for checks that read only that: since the main branch or, on the main branch itself, in the last commit."""
import subprocess
from pathlib import Path

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
        base = git(root, "rev-parse", "--quiet", "--verify", "HEAD~1")
        if base is None:
            return None
    names = git(root, "diff", "--name-only", "--diff-filter=d", base)
    if names is None:
        return None
    names += "\n" + (git(root, "ls-files", "--others", "--exclude-standard") or "")
    touched = {root / name for name in names.split("\n") if name}
    return touched | {header for file in touched if file.suffix == ".proto" for header in generated(root, file)}


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
