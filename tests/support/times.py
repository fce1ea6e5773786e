"""``make times``: write into CONTRIBUTING.md what the tests of each folder take."""

import re
import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree as ET

PAGE = Path(__file__).parents[2] / "CONTRIBUTING.md"
BEGIN, END = "<!-- times -->\n", "<!-- end of times -->\n"


def table(report: str) -> str:
    """Return the table of a JUnit report: for each folder its cases, and the minutes they took.

    Tests run side by side, so their minutes are more than those of the run, which the last row has.
    """
    run = ET.fromstring(report)[0]  # noqa: S314 - pytest has just written it
    seconds: dict[str, list[float]] = defaultdict(list)
    for case in run.iter("testcase"):
        seconds[_folder(case.attrib["classname"])].append(float(case.attrib["time"]))
    rows = [
        f"| {folder} | {len(times):,} | {sum(times) / 60:.1f} |"
        for folder, times in sorted(seconds.items(), key=lambda row: -sum(row[1]))
    ]
    whole = f"| the run | {int(run.attrib['tests']):,} | {float(run.attrib['time']) / 60:.1f} |"
    return "\n".join(["| Folder | Cases | Minutes |", "|---|---|---|", *rows, whole, ""])


def _folder(module: str) -> str:
    """Return the folder of a test by the dotted name of its module."""
    *folders, name = module.split(".test_", maxsplit=1)[0].split(".")
    return "/".join([*folders, name])


def main() -> None:
    """Replace the table of the page."""
    text = PAGE.read_text()
    new = table(Path(sys.argv[1]).read_text())
    PAGE.write_text(re.sub(f"(?s)(?<={BEGIN}).*?(?={END})", lambda _: new, text))
    print(new)  # noqa: T201


if __name__ == "__main__":
    main()
