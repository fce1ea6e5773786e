"""The console blocks of a page, run from its top to its end as a reader would type them.

What is printed must be what the page shows, but for what differs at every run: see ``_VARYING``.
``…`` in a line stands for any text, and a line of its own for any lines. A program that runs until
Ctrl-C goes on beside the commands after it. A block that does not begin with a command is what the
last such program prints next; ``^C`` at its end stops it. A block of another language whose first
line is a comment with the name of a file is saved under that name.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import unified_diff
from itertools import takewhile
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

import pytest

from support.process import free_port
from support.waiting import within

_SECONDS = 30
_STAGE = Path(__file__).parent / "stage"
_END = "\x1e"
_INTERRUPT = "^C\n"
_FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_FILE_NAME = re.compile(r"(?:#|//) ([\w./-]+\.\w+)$", re.MULTILINE)
_ENDLESS = re.compile(
    r"(?:\w+=(?:\"[^\"]*\"|\S+) )*(?:make serve|petstore serve(?!.*--check)|petstore events listen"
    r"|nginx|python (?:receiver|follow)\.py)"
)
_PORTS = ("8000", "8001", "6379", "3000", "443")
_FOLDERS = ("/backup", "/etc", "/run", "/var")
_LEFT_OUT = re.compile("^…$", re.MULTILINE)
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_VARYING = [
    (re.compile(pattern, re.MULTILINE), name)
    for pattern, name in {
        r"^((?:x-)?ratelimit[a-z-]*:).*": r"\1 LIMITS",
        r'("(?:remaining|reset|requests)":)\d+': r"\1NUMBER",
        r'^etag: "\w+"': "etag: TAG",  # a page of a list: its links have the port
        r"^x-request-id: \w+": "x-request-id: ID",
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z": "TIME",
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d": "DATE AND TIME",
        r"\d{4}-\d\d-\d\d \d\d:\d\d": "DATE AND MINUTE",
        r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT": "TIME",
        r"\bps_(?:live|test)_[\w…]+": "TOKEN",
        r'(?<="tokenEnds":")\w{4}': "ENDS",
        r"(?<=production   )\w{4}(?=        active)": "ENDS",
        r"\bwhsec_[\w+/=…]+": "SECRET",
        r"\bevt_[\w…]+": "EVENT",
        r"(?<=[?&]cursor=)[\w-]{16}(?![\w-])": "CURSOR",
        r"\b[0-9a-f]{32}\b": "DIGEST",
        r'("requestId":")[0-9a-f]+': r"\1ID",
        r"\b(wait|in) \d+ seconds": r"\1 SOME seconds",
        r"command line \(\w+\)": "command line (USER)",
        r"^(minute +\d+ +)\d+": r"\1LEFT",  # on a busy machine a page takes longer than a minute
        r" +$": "",
    }.items()
]


class Block(NamedTuple):
    language: str
    text: str
    line: int


class Step(NamedTuple):
    command: str
    shown: str
    line: int


def blocks(page: str) -> list[Block]:
    return [
        Block(found[2], dedent(found[3]), page.count("\n", 0, found.start(3)) + 1)
        for found in _FENCE.finditer(page)
    ]


def _steps(block: Block) -> Iterator[Step]:
    step = Step("", "", block.line)
    is_open = False
    for number, line in enumerate(block.text.splitlines(keepends=True), block.line):
        if is_open:
            step = step._replace(command=step.command + line)
        elif line.startswith("$ "):
            if step.command or step.shown:
                yield step
            step = Step(line.removeprefix("$ "), "", number)
        else:
            step = step._replace(shown=step.shown + line)
            continue
        is_open = line.endswith("\\\n")
    yield step


def _mask(text: str, shown: str) -> str:
    """Replace what differs at every run.

    Which days are the same stays, and how wide columns are, unless lines are left out of what is
    ``shown``: these count for both.
    """
    for pattern, name in _VARYING:
        text = pattern.sub(name, text)
    if _LEFT_OUT.search(shown):
        return re.sub(r"(?<=\S) {2,}", "  ", _DAY.sub("DAY", text))
    days: dict[str, int] = {}
    return _DAY.sub(lambda day: f"DAY {days.setdefault(day[0], len(days) + 1)}", text)


def _pattern(shown: str) -> re.Pattern[str]:
    lines = (
        r"(?:.*\n)*?" if line == "…" else re.escape(line).replace("…", ".*") + r"\n"
        for line in _mask(shown, shown).splitlines()
    )
    return re.compile("".join(lines))


@dataclass
class _Program:
    """A program that runs until Ctrl-C: its process group, what it prints, how much was shown."""

    group: int
    output: Path
    shown: int = 0


def _signal(group: int, number: int) -> bool:
    """Send a signal, or none with 0, to a process group; return whether there is such a group."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    return True


class Console:
    """A shell in ``folder``; ``places`` are texts of the pages, with what they are here."""

    def __init__(self, folder: Path, places: Mapping[str, str]) -> None:
        ports = {port: str(free_port()) for port in _PORTS}
        folders = {name: f"{folder}{name}" for name in _FOLDERS}
        self._folder = folder
        self._places = {**places, **ports, **folders}
        self._programs: list[_Program] = []
        for path in folders.values():
            Path(path).mkdir()
        activate = folder / ".venv/bin/activate"  # the programs are on the path already
        activate.parent.mkdir(parents=True)
        activate.touch()
        (folder / ".curlrc").write_text("no-progress-meter\n")  # as on a terminal with -i
        self._shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],  # noqa: S607 - the one of the reader
            cwd=folder,
            env=self._environment(ports["8000"]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def _environment(self, port: str) -> dict[str, str]:
        """Return the environment of a reader's programs, without that of the tests."""
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PETSTORE_", "COVERAGE_", "PYTEST_"))
        }
        path = (_STAGE, Path(sys.executable).parent, inherited["PATH"])
        return inherited | {
            "PATH": os.pathsep.join(map(str, path)),
            "LC_ALL": "C.UTF-8",
            "PYTHONUNBUFFERED": "1",
            "HOME": str(self._folder),
            "PETSTORE_LOG_FORMAT": "text",  # as on a terminal
            "PETSTORE_PORT": port,
            "PETSTORE_URL": f"http://127.0.0.1:{port}/v1",
        }

    def play(self, page: str) -> None:
        """Save the files of a page and run its commands.

        Raises:
            AssertionError: what is printed is not what the page shows.
        """
        for block in blocks(page):
            if block.language == "console":
                for step in _steps(block):
                    self._play(step)
            elif name := _FILE_NAME.match(block.text):
                file = self._folder / self._here(name[1])
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(self._here(block.text))

    def _play(self, step: Step) -> None:
        shown = step.shown.removesuffix(_INTERRUPT)
        pattern = _pattern(shown)
        if step.command and not _ENDLESS.match(step.command):
            printed = self._run(step.command)
            assert pattern.fullmatch(_mask(printed, shown)), _difference(step, printed)
            return
        if step.command:
            assert step.shown, f"line {step.line}: show by what the reader sees that it has started"
            self._start(step.command)
        is_shown = within(_SECONDS, lambda: pattern.match(_mask(self._printed(), shown)))
        assert is_shown, _difference(step, self._printed())
        self._programs[-1].shown += len(self._printed())
        if step.shown.endswith(_INTERRUPT):
            self._interrupt()

    def _run(self, command: str) -> str:
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        quoted = shlex.quote(self._here(command))
        self._shell.stdin.write(f"eval {quoted} < /dev/null; printf '\\n{_END}\\n'\n")
        self._shell.stdin.flush()
        printed = "".join(takewhile(lambda line: line != f"{_END}\n", self._shell.stdout))
        return self._there(re.sub(r"(?<!\n)\n\n?\Z", "\n", printed).removeprefix("\n"))

    def _start(self, command: str) -> None:
        output = self._folder / f".output-{len(self._programs)}"
        output.write_text("")  # of the program before it
        quoted = shlex.quote(self._here(command))
        group = self._run(f"set -m; eval {quoted} < /dev/null > {output} 2>&1 & echo $!; set +m")
        self._programs.append(_Program(int(group), output))

    def _printed(self) -> str:
        program = self._programs[-1]
        return self._there(program.output.read_text())[program.shown :]

    def _interrupt(self) -> None:
        group = self._programs.pop().group
        if _signal(group, signal.SIGINT) and not within(_SECONDS, lambda: not _signal(group, 0)):
            _signal(group, signal.SIGKILL)
            pytest.fail("a program goes on after Ctrl-C")

    def _here(self, text: str) -> str:
        """Put the places of this machine into a text of the page."""
        for name, place in self._places.items():
            text = re.sub(rf"(?<!\w){re.escape(name)}\b", place, text)
        return text

    def _there(self, text: str) -> str:
        """Put the places of the page into a text of this machine."""
        for name, place in reversed(self._places.items()):
            text = text.replace(place, name)
        return text

    def close(self) -> None:
        while self._programs:
            self._interrupt()
        self._run("systemctl stop nginx; systemctl stop petstore.socket")
        self._shell.communicate("")


def _difference(step: Step, printed: str) -> str:
    page, here = (_mask(text, step.shown).splitlines() for text in (step.shown, printed))
    lines = unified_diff(page, here, "page", "printed", lineterm="", n=100)
    return "\n".join([f"line {step.line}: $ {step.command}", *lines])


@contextmanager
def console(folder: Path, places: Mapping[str, str] | None = None) -> Iterator[Console]:
    opened = Console(folder, places or {})
    try:
        yield opened
    finally:
        opened.close()
