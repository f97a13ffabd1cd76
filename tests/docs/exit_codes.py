"""The exit codes of a page's commands: 0, or N where the command ends in `# exit N`, which a shell takes for a comment."""
import re

MARK = re.compile(r"\s+# exit (\d+)$")


def expected_exit(command):
    found = MARK.search(command)
    return int(found.group(1)) if found else 0


def with_exit(command, code):
    """The command as a page shows it that ended so."""
    bare = MARK.sub("", command)
    return bare if code == 0 else f"{bare}  # exit {code}"
