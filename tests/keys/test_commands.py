"""``petstore keys``: every form of it, on a database that no service has open."""

import json
import os
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest

from petstore.clock import HOUR, system_clock
from petstore.keys.model import is_token
from support.command import Command
from support.process import free_port, petstore
from support.terminal import shown_on_terminal

BY_ID = ("show", "change", "rotate", "revoke", "unban")
SCOPES = ["orders:read", "orders:write", "pets:read", "pets:write"]


def seconds_from_now(moment: str) -> float:
    return (datetime.fromisoformat(moment) - datetime.now(UTC)).total_seconds()


@pytest.mark.parametrize("option", ["--name", "--plan"])
def test_a_key_needs_a_name_and_a_plan(command: Command, option: str) -> None:
    given = {"--name": "app", "--plan": "free"}
    del given[option]
    words = command.fail(
        "keys", "create", *(word for pair in given.items() for word in pair), status=2
    )
    assert words.startswith(f"Missing option '{option}'.")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--plan", "gold"),
        ("--name", ""),
        ("--name", "   "),
        ("--name", "two\nlines"),
        ("--name", "\x1b[31mred"),
        ("--name", "n" * 101),
        ("--per-minute", "0"),
        ("--per-minute", "1.5"),
        ("--per-day", "2147483647"),
        ("--scope", "pets"),
        ("--scope", "pets:read pets:write"),
        ("--expires-in", "30"),
        ("--expires-in", "d"),
        ("--expires-in", "0s"),
        ("--expires-in", "1 h"),
        ("--expires-in", "１d"),  # noqa: RUF001 - a full-width digit
        ("--expires-in", "1y"),
        ("--expires-in", "36501d"),
        ("--environment", "test"),
        ("--network", "here"),
        ("--network", "anywhere"),
        ("--network", "10.0.0.1/8"),
        ("--network", "10.0.0.0/8 192.0.2.0/24"),
    ],
)
def test_an_invalid_value_is_refused_naming_the_option(
    command: Command, option: str, value: str
) -> None:
    plan = () if option == "--plan" else ("--plan", "enterprise")
    name = () if option == "--name" else ("--name", "app")
    words = command.fail("keys", "create", *name, *plan, option, value, status=2)
    assert words.startswith(f"Invalid value for '{option}'")
    assert "\n" not in words
    assert not command.database.exists()


@pytest.mark.parametrize("key_id", ["abc", "0", "1.0", "9223372036854775808", ""])
def test_an_invalid_id_is_refused(command: Command, key_id: str) -> None:
    for action in BY_ID:
        words = command.fail("keys", action, key_id, status=2)
        assert words.startswith("Invalid value for 'ID'")


@pytest.mark.parametrize("action", BY_ID)
def test_an_unknown_key_is_reported_as_missing(command: Command, action: str) -> None:
    command.make_store()
    more = ("--name", "other") if action == "change" else ()
    assert command.fail("keys", action, "7", *more, status=1) == "there is no key 7"


def test_limits_and_an_expiry_can_be_removed(command: Command) -> None:
    command.create_key("--per-minute", "5", "--per-day", "50", "--expires-in", "30d")
    command.succeed(
        *("keys", "change", "1", "--per-minute", "unlimited", "--per-day", "unlimited"),
        *("--expires-in", "never"),
    )
    key = command.show_key()
    assert (key["perMinute"], key["perDay"], key["expiresAt"]) == (None, None, None)


def test_a_command_without_an_id_says_so(command: Command) -> None:
    for action in BY_ID:
        assert command.fail("keys", action, status=2) == "Missing argument 'ID'."


def test_a_change_without_fields_is_refused(command: Command) -> None:
    command.create_key()
    words = command.fail("keys", "change", "1", status=2)
    assert words == "nothing to change: name at least one option"


@pytest.mark.parametrize("url", ["petstore.db", "", "mysql://petstore:s3cret@host/name"])
def test_an_unknown_kind_of_database_is_refused(command: Command, url: str) -> None:
    result = command("keys", "list", "--database", url)
    assert result.exit_code == 2
    assert "s3cret" not in result.stderr
    assert "Error: Invalid value for '--database' " in result.stderr
    assert result.stderr.endswith(
        ": expected sqlite:///relative.db, sqlite:////absolute.db or postgresql://user@host/name\n"
    )


@pytest.mark.parametrize("arguments", [("keys", "list"), ("keys", "revoke", "1")])
def test_a_missing_store_is_not_created_by_mistake(
    command: Command, database: Path, arguments: tuple[str, ...]
) -> None:
    assert command.fail(*arguments, status=1) == (
        f"there is no store at {database}; petstore serve or petstore keys create creates one"
    )
    assert not database.exists()


@pytest.mark.parametrize("target", ["elsewhere.db", "petstore.db"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("keys", "list"),
        ("keys", "create", "--name", "app", "--plan", "free"),
        ("backup", "backup.db"),
        ("serve", "--port", "{port}"),
    ],
    ids=" ".join,
)
def test_a_store_is_not_created_through_a_dangling_symlink(
    command: Command, database: Path, arguments: tuple[str, ...], target: str
) -> None:
    database.symlink_to(target)
    given = [argument.format(port=free_port()) for argument in arguments]
    words = command.fail(*given, status=1)
    assert words == f"{database}: it is a link that leads nowhere"
    assert [*database.parent.iterdir()] == [database]


def test_standard_output_has_only_the_token(command: Command) -> None:
    command.make_store()
    result = command("keys", "create", "--name", "mobile app", "--plan", "free")
    token = result.stdout.removesuffix("\n")
    assert is_token(token.encode(), "production")
    assert result.stderr == "Key 1 (mobile app) created. The token is shown this once.\n"


def test_a_store_that_is_created_for_a_key_is_named(command: Command) -> None:
    result = command("keys", "create", "--name", "app", "--plan", "free")
    made = f"There is no store at {command.database} yet: making one."
    assert result.stderr.splitlines()[0] == made


def test_a_key_is_not_created_if_its_token_cannot_be_written(
    command: Command, tmp_path: Path
) -> None:
    program = (sys.executable, "-m", "petstore", "keys", "create", "--name", "app")
    ran = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" >&-', "sh", *program, "--plan", "free"],
        cwd=tmp_path,
        env={**os.environ, "PETSTORE_DATABASE": f"sqlite:///{command.database}"},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert ran.stderr == "Error: cannot write the output: standard output is closed\n"
    assert not command.database.exists()


@pytest.mark.parametrize(
    ("duration", "expected"),
    [
        ("90s", timedelta(seconds=90)),
        ("5m", timedelta(minutes=5)),
        ("30d", timedelta(days=30)),
        ("2w", timedelta(weeks=2)),
        ("36500d", timedelta(days=36500)),
    ],
)
def test_a_key_expires_after_the_given_duration(
    command: Command, duration: str, expected: timedelta
) -> None:
    command.create_key("--expires-in", "1h")
    command.succeed("keys", "change", "1", "--expires-in", duration)
    assert abs(seconds_from_now(command.show_key()["expiresAt"]) - expected.total_seconds()) < 20


def test_a_key_is_for_production_unless_staging_is_named(command: Command) -> None:
    assert command.create_key().startswith("ps_live_")
    assert command.create_key("--environment", "staging").startswith("ps_test_")
    assert [command.show_key(n)["environment"] for n in (1, 2)] == ["production", "staging"]


def test_the_environment_can_come_from_the_variable_the_service_reads(command: Command) -> None:
    token = command.succeed(
        "keys", "create", "--name", "app", "--plan", "free", PETSTORE_ENVIRONMENT="staging"
    )
    assert is_token(token.strip().encode(), "staging")


def test_a_key_works_only_from_the_named_networks(command: Command) -> None:
    command.create_key("--network", "2001:db8::/32", "--network", "192.0.2.7")
    assert command.show_key()["allowedNetworks"] == ["192.0.2.7/32", "2001:db8::/32"]
    command.succeed("keys", "change", "1", "--name", "till")
    assert command.show_key()["allowedNetworks"] == ["192.0.2.7/32", "2001:db8::/32"]
    shown = command.succeed("keys", "show", "1")
    assert "allowed networks  192.0.2.7/32 2001:db8::/32\n" in shown
    command.succeed("keys", "change", "1", "--network", "10.0.0.0/8")
    assert command.show_key()["allowedNetworks"] == ["10.0.0.0/8"]
    command.succeed("keys", "change", "1", "--network", "anywhere")
    assert command.show_key()["allowedNetworks"] == []


def test_networks_and_anywhere_are_refused_together(command: Command) -> None:
    command.create_key()
    both = ("--network", "anywhere", "--network", "10.0.0.0/8")
    assert command.fail("keys", "change", "1", *both, status=2) == (
        "--network: expected networks or the word anywhere, not both"
    )


def test_a_key_is_shown_in_plain_words(command: Command) -> None:
    command.create_key("--per-minute", "50", "--expires-in", "30d")
    key = command.show_key()
    assert command.succeed("keys", "show", "1").splitlines() == [
        "id                1",
        "name              app",
        "plan              enterprise",
        "per minute        50",
        "per day           unlimited",
        "scopes            orders:read orders:write pets:read pets:write",
        "allowed networks  -",
        "environment       production",
        "state             active",
        "banned until      -",
        f"created at        {key['createdAt']}",
        f"expires at        {key['expiresAt']}",
        "last used at      -",
    ]


def test_keys_are_listed_as_json_in_order_of_their_ids(command: Command) -> None:
    scopes = ("keys:admin", "pets:read", "pets:read")
    command.create_key(*(word for scope in scopes for word in ("--scope", scope)))
    command.create_key(plan="free")
    first, second = json.loads(command.succeed("keys", "list", "--json"))
    assert first == command.show_key(1)
    assert first["scopes"] == ["keys:admin", "pets:read"]
    assert second == {
        "id": 2,
        "name": "app",
        "plan": "free",
        "perMinute": 60,
        "perDay": 1000,
        "scopes": SCOPES,
        "allowedNetworks": [],
        "environment": "production",
        "state": "active",
        "bannedUntil": None,
        "createdAt": second["createdAt"],
        "expiresAt": None,
        "lastUsedAt": None,
    }
    assert abs(seconds_from_now(second["createdAt"])) < 20


def test_keys_are_listed_one_per_line_without_a_terminal(command: Command) -> None:
    name = "a name of fifty characters, [bold]not bold[/bold]."
    command.succeed("keys", "create", "--name", name, "--plan", "business")
    command.create_key("--per-minute", "50", "--scope", "pets:read", "--expires-in", "30d")
    command.create_key()
    header, first, second, third = command.succeed("keys", "list").splitlines()
    assert " ".join(header.split()) == (
        "id name plan per min/day scopes environment state created expires last used (UTC)"
    )
    today = command.show_key(1)["createdAt"][:10]
    expires = command.show_key(2)["expiresAt"][:10]
    scopes = " ".join(SCOPES)
    assert " ".join(first.split()) == (
        f"1 {name} business 1000/100000 {scopes} production active {today} - -"
    )
    assert " ".join(second.split()) == (
        f"2 app enterprise 50/- pets:read production active {today} {expires} -"
    )
    assert " ".join(third.split()) == (
        f"3 app enterprise unlimited {scopes} production active {today} - -"
    )


@pytest.fixture
def many(command: Command) -> Command:
    """The command on a store with 1,200 keys, which are read in parts."""
    command.make_store()
    with closing(apsw.Connection(str(command.database))) as connection:
        connection.execute(
            "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1200)"
            " INSERT INTO api_keys (name, plan, scopes, environment, created_at, revoked_at)"
            " SELECT iif(n % 3, 'Till ', 'App ') || n, iif(n % 2, 'pro', 'free'), 'pets:read',"
            " iif(n > 600, 'staging', 'production'), 0, iif(n % 5, NULL, 0) FROM n"
        )
    return command


def test_many_keys_are_listed_as_one_list(many: Command) -> None:
    assert [key["id"] for key in json.loads(many.succeed("keys", "list", "--json"))] == [
        *range(1, 1201)
    ]
    header, *lines = many.succeed("keys", "list").splitlines()
    assert [line.split()[0] for line in lines] == [str(number) for number in range(1, 1201)]
    assert lines[0].index("pro") == lines[998].index("pro") == header.index("plan")


def test_many_keys_are_shown_as_one_table_on_a_terminal(many: Command) -> None:
    header, *lines, note = shown_on_terminal(
        "keys", "list", COLUMNS="88", PETSTORE_DATABASE=many.url
    ).text.splitlines()
    assert note.startswith("(no room for scopes")
    assert header.startswith("id ")
    assert [line.split()[0] for line in lines] == [str(number) for number in range(1, 1201)]


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        (("--limit", "2"), [1, 2]),
        (("--name", "APP", "--limit", "2"), [3, 6]),
        (("--name", "Till 119"), [119, 1190, 1192, 1193, 1195, 1196, 1198, 1199]),
        (("--plan", "free", "--limit", "2"), [2, 4]),
        (("--state", "revoked", "--limit", "2"), [5, 10]),
        (("--environment", "staging", "--limit", "2"), [601, 602]),
        (("--plan", "pro", "--state", "revoked", "--name", "app", "--limit", "1"), [15]),
        (("--state", "expired"), []),
    ],
)
def test_a_list_of_keys_can_be_filtered(
    many: Command, options: tuple[str, ...], ids: list[int]
) -> None:
    assert [key["id"] for key in json.loads(many.succeed("keys", "list", "--json", *options))] == (
        ids
    )


def test_a_filter_can_match_no_keys(many: Command) -> None:
    result = many("keys", "list", "--state", "expired")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "No key matches.\n"


def test_without_keys_the_list_is_empty(command: Command) -> None:
    command.make_store()
    assert command.succeed("keys", "list", "--json") == "[]\n"
    result = command("keys", "list")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "There are no keys yet.\n"


@pytest.mark.parametrize(
    ("columns", "left_out"),
    [
        (64, ["scopes", "created", "environment", "expires"]),
        (120, ["scopes"]),
        (200, []),
    ],
)
def test_a_narrow_terminal_gets_fewer_columns_rather_than_broken_words(
    command: Command, columns: int, left_out: list[str]
) -> None:
    command.create_key(plan="business")
    header, row, *note = shown_on_terminal(
        "keys", "list", COLUMNS=str(columns), PETSTORE_DATABASE=command.url
    ).text.splitlines()
    assert row.split()[:3] == ["1", "app", "business"]
    assert "1000/100000" in row
    assert all(
        (name in header) == (name not in left_out)
        for name in ("scopes", "created", "environment", "state", "expires", "last used")
    )
    assert max(len(header), len(row)) <= columns
    assert note == (
        [f"(no room for {', '.join(left_out)}: see keys show ID, or --json)"] if left_out else []
    )


def test_the_narrowest_terminal_still_gets_a_table(command: Command) -> None:
    command.create_key(plan="business")
    shown = shown_on_terminal("keys", "list", COLUMNS="16", PETSTORE_DATABASE=command.url)
    assert max(len(line) for line in shown.text.splitlines()[:2]) <= 16


def test_a_terminal_wraps_a_long_name(command: Command) -> None:
    name = "the till in the shop at the corner of the market square"
    command.succeed("keys", "create", "--name", name, "--plan", "free")
    shown = shown_on_terminal("keys", "list", COLUMNS="120", PETSTORE_DATABASE=command.url)
    _, first, second, third, _ = shown.text.splitlines()
    assert first.startswith("1   the till in the shop at   free  ")
    assert (second.strip(), third.strip()) == ("the corner of the market", "square")


def test_a_change_keeps_the_fields_that_it_does_not_name(command: Command) -> None:
    command.create_key("--scope", "pets:read", "--expires-in", "30d")
    before = command.show_key()
    result = command("keys", "change", "1", "--name", "other")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "Key 1 changed.\n")
    assert command.show_key() == {**before, "name": "other"}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--plan", "pro"), {"plan": "pro", "perMinute": 300, "perDay": 10_000}),
        (("--per-minute", "7"), {"perMinute": 7}),
        (("--per-day", "2147483646"), {"perDay": 2**31 - 2}),
        (("--name", "x", "--scope", "pets:read"), {"name": "x", "scopes": ["pets:read"]}),
    ],
)
def test_a_key_can_be_changed(
    command: Command, options: tuple[str, ...], expected: dict[str, Any]
) -> None:
    command.create_key("--per-minute", "1", "--per-day", "1")
    key = command.show_key()
    assert (key["perMinute"], key["perDay"]) == (1, 1)
    command.succeed("keys", "change", "1", *options)
    assert command.show_key() == {**command.show_key(), **expected}


def test_a_change_to_limits_the_plan_does_not_have_is_refused(command: Command) -> None:
    command.create_key(plan="free")
    words = command.fail("keys", "change", "1", "--per-minute", "70", status=1)
    assert words == "perMinute: only a key of the plan enterprise has its own limits, not free"
    assert command.show_key()["perMinute"] == 60


def test_a_rotation_prints_only_the_new_token(command: Command) -> None:
    old = command.create_key("--environment", "staging")
    result = command("keys", "rotate", "1", "--grace", "1h")
    new = result.stdout.strip()
    assert new != old
    assert is_token(new.encode(), "staging")
    assert result.stderr == "Key 1 (app) rotated. The token is shown this once.\n"


@pytest.mark.parametrize("grace", ["5", "-1h", "1h30m"])
def test_a_grace_period_that_is_not_a_duration_is_refused(command: Command, grace: str) -> None:
    command.create_key()
    words = command.fail("keys", "rotate", "1", "--grace", grace, status=2)
    assert words == (
        f"Invalid value for '--grace': {grace!r}: expected a number and a unit (s, m, h, d or w),"
        " such as 30d, from 0s to 100 years."
    )


def test_a_revocation_is_permanent(command: Command) -> None:
    command.create_key()
    for _ in range(2):
        result = command("keys", "revoke", "1")
        assert (result.exit_code, result.stdout, result.stderr) == (0, "", "Key 1 revoked.\n")
        assert command.show_key()["state"] == "revoked"


def test_a_key_that_is_not_banned_can_be_unbanned(command: Command) -> None:
    command.create_key()
    result = command("keys", "unban", "1")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "Key 1 unbanned.\n")


def test_a_banned_key_is_shown_and_listed_as_banned_until_it_is_unbanned(command: Command) -> None:
    command.create_key()
    with closing(apsw.Connection(str(command.database))) as service:
        ban = system_clock(), system_clock() + HOUR
        service.execute("INSERT INTO rate_limits VALUES (1, 0,0,0,0,0,0,0,0, ?, ?, 1, 0)", ban)
    assert "state             banned\n" in command.succeed("keys", "show", "1")
    assert " banned " in command.succeed("keys", "list")
    command.succeed("keys", "unban", "1")
    assert "state             active\n" in command.succeed("keys", "show", "1")


def test_wrong_usage_ends_with_exit_status_2(tmp_path: Path) -> None:
    refused = petstore("keys", "create", "--name", "app", "--plan", "gold", cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "Invalid value for '--plan'" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_name_cannot_control_the_terminal(command: Command) -> None:
    """As only a store that somebody else has changed can have it."""
    command.create_key()
    connection = apsw.Connection(str(command.database))
    connection.execute("UPDATE api_keys SET name = ?", ("\x1b[2Jowned",))
    connection.close()
    assert r"\x1b[2Jowned" in command.succeed("keys", "show", "1")
    assert r"\x1b[2Jowned" in command.succeed("keys", "list")
    assert r"(\x1b[2Jowned)" in command("keys", "rotate", "1").stderr
