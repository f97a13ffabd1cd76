"""The exit codes of a page's commands: 0, or N where the command ends in `# exit N`, which a shell takes for a comment.

Of commands that are joined by `|` it is the code of the last that failed. One that ends in `| head -N` is run to its end and
its output is cut here: `head` would close the pipe under it.
"""
import re
import subprocess

MARK = re.compile(r"\s+# exit (\d+)$")
HEAD = re.compile(r"\s*\|\s*head -(\d+)$")


def run(command, **where):
    """What a shell makes of the command in `where`, with the output that a page shows."""
    command = MARK.sub("", command)
    cut = HEAD.search(command)
    result = subprocess.run(["bash", "-o", "pipefail", "-c", HEAD.sub("", command)], capture_output=True, text=True, **where)
    if cut:
        result.stdout = "".join(result.stdout.splitlines(keepends=True)[:int(cut.group(1))])
    return result


def expected_exit(command):
    found = MARK.search(command)
    return int(found.group(1)) if found else 0


def with_exit(command, code):
    """The command as a page shows it that ended so."""
    bare = MARK.sub("", command)
    return bare if code == 0 else f"{bare}  # exit {code}"
