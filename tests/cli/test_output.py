"""How names chosen by clients are displayed, and what happens if output cannot be written."""

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from petstore.cli.main import main
from petstore.cli.output import counted, print_resource, print_table, printable
from petstore.keys.model import is_token
from support.command import Command


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", r"\x1b[2J"),
        ("a\nb\tc\rd", r"a\nb\tc\rd"),
        ("\x00\x7f\x9b", r"\x00\x7f\x9b"),
        ("\u202eback", r"\u202eback"),
        ("\u2028", r"\u2028"),
        ("\ud800", r"\ud800"),
        ("[red]Rex[/] :dog:", "[red]Rex[/] :dog:"),
        ("Knödel 日本 \N{DOG}\u200d\N{SAFETY VEST}", "Knödel 日本 \N{DOG}\u200d\N{SAFETY VEST}"),
    ],
)
def test_text_cannot_control_a_terminal(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_characters_the_output_cannot_encode_are_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "ascii"))
    assert printable("Knödel 日") == r"Kn\xf6del \u65e5"


@pytest.mark.parametrize(
    ("rows", "lines"),
    [
        (
            [{"id": "1", "name": "[red]Rex[/] :dog: \x1b[31m"}],
            ["id  name", r"1   [red]Rex[/] :dog: \x1b[31m"],
        ),
        # Outside a terminal, lines are not wrapped.
        (
            [{"name": "n" * 255, "remark": "d" * 1000}],
            [f"name{' ' * 251}  remark", f"{'n' * 255}  {'d' * 1000}"],
        ),
        # Columns of wide characters are aligned.
        (
            [{"name": "\u65e5\u672ce\u0301", "categoryId": 5}, {"name": "Rex", "categoryId": None}],
            ["name   category", "\u65e5\u672ce\u0301  5", "Rex    -"],
        ),
    ],
)
def test_a_table_shows_names_as_they_are_in_aligned_columns(
    capsys: pytest.CaptureFixture[str], rows: list[dict[str, object]], lines: list[str]
) -> None:
    print_table(rows)
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == lines


def test_a_count_has_a_singular_or_plural_noun() -> None:
    said = [counted(count, "row") for count in (0, 1, 2, 2000)]
    assert said == ["0 rows", "1 row", "2 rows", "2,000 rows"]


def test_a_resource_has_a_line_for_each_member_and_a_table_for_each_list(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_resource(
        {
            "id": 7,
            "scopes": ["pets:read", "pets:write"],
            "perDay": None,
            "enabled": True,
            "owner": {"type": "key", "id": 3},
            "minute": {"limit": 2**31 - 1, "reset": 1795226353},
            "placedAt": "2026-12-01T12:00:00.123456Z",
            "rows": [{"day": "2026-12-01", "amount": 124_950, "currency": "USD", "use": "x"}],
        },
        ("day", "amount"),
    )
    assert capsys.readouterr().out.splitlines() == [
        "id       7",
        "scopes   pets:read, pets:write",
        "per day  -",
        "enabled  yes",
        "owner    type key, id 3",
        "minute   limit unlimited, reset 2026-11-21T01:59:13Z",
        "placed   2026-12-01T12:00:00Z",
        "",
        "rows:",
        "day         amount",
        "2026-12-01  $1,249.50",
    ]


# Output that cannot be written: a full disk, or a reader that has left

FULL, CLOSED = "No space left on device", "Broken pipe"


@contextmanager
def unwritable(reason: str) -> Iterator[int]:
    """Give a file that no write to succeeds."""
    if reason == FULL:
        descriptor = os.open("/dev/full", os.O_WRONLY)
    else:
        reader, descriptor = os.pipe()
        os.close(reader)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def failure_of(output: int, *arguments: str, **variables: str) -> list[str]:
    """Run the command in this process to exit status 1; return the lines of its errors."""
    errors = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, os.fdopen(os.dup(output), "w") as stream:
        for name, value in variables.items():
            patch.setenv(name, value)
        patch.setattr(sys, "stdout", stream)
        patch.setattr(sys, "stderr", errors)
        with pytest.raises(SystemExit) as ended:
            main(arguments)
    assert ended.value.code == 1
    return errors.getvalue().splitlines()


@pytest.mark.parametrize(
    "arguments", [("keys", "list"), ("keys", "rotate", "1"), ("keys", "list", "--json")]
)
def test_output_to_a_full_disk_is_an_error(command: Command, arguments: tuple[str, ...]) -> None:
    command.create_key()
    with unwritable(FULL) as output:
        *_, line = failure_of(output, *arguments, PETSTORE_DATABASE=command.url)
    assert f"cannot write the output: {FULL}" in line


def test_a_process_ends_quietly_whatever_is_unwritable_and_its_token_is_printed(
    command: Command,
) -> None:
    """Python writes its buffers once more at the end."""

    def run(
        *arguments: str, stdout: int = subprocess.PIPE, stderr: int = subprocess.PIPE
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-m", "petstore", *arguments],
            env={**os.environ, "PYTHONUNBUFFERED": "", "PETSTORE_DATABASE": command.url},
            stdout=stdout,
            stderr=stderr,
            check=False,
        )

    command.make_store()
    with unwritable(FULL) as errors:
        created = run("keys", "create", "--name", "app", "--plan", "free", stderr=errors)
    assert created.returncode == 0
    assert is_token(created.stdout.strip(), "production")
    with unwritable(CLOSED) as output:
        listed = run("keys", "list", stdout=output)
    assert (listed.returncode, listed.stderr) == (1, b"")
