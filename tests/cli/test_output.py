"""How names chosen by clients are displayed."""

import io
import sys

import pytest

from petstore.cli.output import counted, print_resource, print_table, printable


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
