"""What the checks share: which files to read, and C++ text without what is not code."""
import re
from pathlib import Path

_TOKEN = re.compile(
    r'//(?:\\\n|[^\n])*|/\*.*?\*/'  # comments
    r'|R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"'  # raw strings
    r'|"(?:\\.|[^"\\\n])*"'  # strings
    r"|(?<![0-9a-zA-Z_])'(?:\\.|[^'\\\n])+'",  # characters, but not the separators of 1'000
    re.DOTALL)


def strip(text, keep_strings=False):
    """`text` with comments and strings blanked out, but for plain strings if kept; every line keeps its number."""

    def blank(match):
        token = match.group()
        if token.startswith("/"):
            return " " + "\n" * token.count("\n")
        return token if keep_strings and not token.startswith("R") else '""' + "\n" * token.count("\n")

    return _TOKEN.sub(blank, text)


def sources(root, suffixes=(".h", ".cc")):
    """Every C++ file below root/src, in a stable order."""
    src = Path(root) / "src"
    return sorted(path for path in src.rglob("*") if path.suffix in suffixes and path.is_file())
