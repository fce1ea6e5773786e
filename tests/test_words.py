"""One word for one thing, the one that readers know."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent
WORDS = {
    "animal": "pet",
    "anybody": "name who it is",
    "begin anew": "start over",
    "by itself": "automatically",
    "go on": "continue",
    "goes on": "continues",
    "holder": "owner",
    "mend": "fix",
    "mended": "fixed",
    "nobody": "name who it is not",
    "somebody": "name who it is",
    "that of": "repeat the noun",
    "the balancer": "the load balancer",
    "a balancer": "a load balancer",
    "those of": "repeat the noun",
}
"""What pages, templates, messages and docstrings do not have, each with what to use."""

DATA = {
    *("docs/importing.md", "src/petstore/imports/columns.py", "tests/test_words.py"),
    *("tests/cli/test_operations.py", "tests/imports/test_columns.py"),
}
"""Files with the words themselves, and with those of people's own files."""

QUOTED = re.compile(
    # interface.md has these sentences, and its words stay.
    r"(paginated list of|[Ll]ist|Iterates over|Maximum number of) animals"
    r"|([Aa]dd|Get) an animal|new animal|one animal by|animal's name|the animal belongs"
    r"|animal to retrieve"
    r'|n animal"|"animals?"|\W_?animales'
)


def test_the_words_of_the_project_are_the_usual_ones() -> None:
    names = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines()  # noqa: S607
    found = []
    for name in names:
        is_prose = name.endswith((".md", ".html")) and not name.startswith(
            ("docs/decisions", "bench", "proof")
        )
        if not (is_prose or name.endswith((".py", ".ts", ".js"))) or name in DATA:
            continue
        text = " ".join(QUOTED.sub("", (ROOT / name).read_text("utf-8")).split())
        found += [
            f"{name}: {word}, say {WORDS[word]}"
            for word in (WORDS if is_prose or name.startswith("src/") else ["animal"])
            if re.search(rf"\b{word}s?\b", text, re.IGNORECASE)
        ]
    assert found == []
