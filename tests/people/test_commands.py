"""``petstore people``: every form of it, on a database that no service has open."""

import json
import re
from typing import Any

import pytest

from support.command import Command
from support.terminal import shown_on_terminal

LINK = re.compile(r"(.+)/console/invitation/([A-Za-z0-9_-]{65})\n")
GRACE = ("--name", "Grace Hopper", "--login", "grace@shop.example", "--role", "clerk")
BY_ID = ("change", "invite", "disable", "enable")
ADA = {"LOGNAME": "ada"}


def add(command: Command, *arguments: str) -> str:
    """Add Grace, unless the arguments say otherwise; return what is printed."""
    return command.succeed("people", "add", *GRACE, *arguments)


def people(command: Command, *arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(
        command.succeed("people", "list", "--json", *arguments)
    )
    return found


@pytest.mark.parametrize("option", ["--name", "--login", "--role"])
def test_a_person_needs_a_name_a_login_and_a_role(command: Command, option: str) -> None:
    given = [*GRACE]
    place = given.index(option)
    del given[place : place + 2]
    words = command.fail("people", "add", *given, status=2)
    assert words.startswith(f"Missing option '{option}'.")
    assert not command.database.exists()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("--name", ""), ("--name", "two\nlines"), ("--name", "n" * 101)),
        *(("--login", "ab"), ("--login", "two words"), ("--login", "a" * 65)),
        *(("--login", "\u200bgrace"), ("--login", "gra\x1bce"), ("--login", "gra\udcffce")),
        *(("--role", "owner"), ("--environment", "test")),
    ],
)
def test_an_invalid_value_is_refused_naming_the_option(
    command: Command, option: str, value: str
) -> None:
    words = command.fail("people", "add", *GRACE, option, value, status=2)
    assert words.startswith(f"Invalid value for '{option}'")
    assert not command.database.exists()
    if option != "--environment":
        words = command.fail("people", "change", "1", option, value, status=2)
        assert words.startswith(f"Invalid value for '{option}'")


@pytest.mark.parametrize(
    ("option", "value"), [("--public-url", "shop.example"), ("--port", "0"), ("--port", "x")]
)
def test_an_invalid_address_is_refused(command: Command, option: str, value: str) -> None:
    assert option in command.fail("people", "add", *GRACE, option, value, status=2)
    assert option in command.fail("people", "invite", "1", option, value, status=2)
    assert not command.database.exists()


@pytest.mark.parametrize("action", BY_ID)
def test_an_id_is_of_a_person(command: Command, action: str) -> None:
    more = ("--name", "other") if action == "change" else ()
    assert command.fail("people", action, *more, status=2) == "Missing argument 'ID'."
    words = command.fail("people", action, "0", *more, status=2)
    assert words.startswith("Invalid value for 'ID'")
    assert "there is no store" in command.fail("people", action, "1", *more, status=1)
    assert not command.database.exists()
    command.create_key()
    for person_id in ("1", "7"):
        words = command.fail("people", action, person_id, *more, status=1)
        assert words == f"there is no person {person_id}"


def test_a_change_without_fields_is_refused(command: Command) -> None:
    add(command)
    words = command.fail("people", "change", "1", status=2)
    assert words == "nothing to change: name at least one option"


def test_the_link_of_a_new_person_is_alone_on_standard_output(command: Command) -> None:
    result = command("people", "add", *GRACE)
    assert LINK.fullmatch(result.stdout)
    assert result.stderr.endswith(
        "Give this link to person 1 (Grace Hopper). It sets a password, once, within 72 hours, at"
        " http://127.0.0.1:8000 (--port and --public-url choose another):\n"
    )
    assert "There is no store at" in result.stderr
    (person,) = people(command)
    assert person["createdAt"]
    assert {**person, "createdAt": ""} == {
        "id": 1,
        "name": "Grace Hopper",
        "login": "grace@shop.example",
        "role": "clerk",
        "state": "invited",
        "createdAt": "",
        "lastSeenAt": None,
    }


@pytest.mark.parametrize(
    ("options", "address"),
    [
        ((), "http://127.0.0.1:8000"),
        (("--host", "::1", "--port", "81"), "http://[::1]:81"),
        (("--public-url", "https://shop.example/a/"), "https://shop.example/a"),
    ],
)
def test_a_link_begins_with_the_address_of_the_service(
    command: Command, options: tuple[str, ...], address: str
) -> None:
    for printed in (add(command, *options), command.succeed("people", "invite", "1", *options)):
        link = LINK.fullmatch(printed)
        assert link is not None
        assert link[1] == address


def test_the_settings_of_the_service_apply_to_links(command: Command) -> None:
    add(command)
    printed = command.succeed("people", "invite", "1", PETSTORE_PUBLIC_URL="https://a.example")
    assert printed.startswith("https://a.example/console/invitation/")


def test_a_new_invitation_is_another_link(command: Command) -> None:
    first = add(command)
    result = command("people", "invite", "1", "--public-url", "https://shop.example")
    assert result.stdout != first
    assert result.stderr.endswith("once, within 72 hours:\n")
    assert result.stderr.startswith("Give this link to person 1 (Grace Hopper).")
    command.succeed("people", "disable", "1")
    words = command.fail("people", "invite", "1", status=1)
    assert words == "person 1 is disabled; enable the account first"


def test_people_are_printed_as_json(command: Command) -> None:
    added = json.loads(add(command, "--json"))
    assert added["invitation"]["url"].startswith("http://127.0.0.1:8000/console/invitation/")
    invited = json.loads(command.succeed("people", "invite", "1", "--json"))
    assert invited["invitation"]["url"] != added["invitation"]["url"]
    del invited["invitation"]
    assert people(command) == [invited]
    for arguments, changes in (
        (("change", "1", "--role", "viewer", "--login", "hopper"), {"role": "viewer"}),
        (("disable", "1"), {"state": "disabled"}),
        (("enable", "1"), {"state": "invited"}),
    ):
        shown = json.loads(command.succeed("people", *arguments, "--json"))
        assert changes.items() <= shown.items()
        assert people(command) == [shown]


def test_what_was_done_is_said_on_standard_error(command: Command) -> None:
    add(command)
    for arguments, done in (
        (("change", "1", "--name", "Grace"), "changed"),
        (("disable", "1"), "disabled"),
        (("enable", "1"), "enabled"),
    ):
        result = command("people", *arguments)
        assert (result.stdout, result.stderr) == ("", f"Person 1 {done}.\n")


def test_a_login_that_is_taken_is_refused(command: Command) -> None:
    add(command)
    taken = ("--login", "GRACE@shop.example")
    assert command.fail("people", "add", *GRACE, *taken, status=1) == (
        "login: another person already has the login 'GRACE@shop.example'"
    )


def test_people_are_filtered_by_role_state_and_environment(command: Command) -> None:
    add(command)
    add(command, "--login", "ada", "--role", "administrator", "--environment", "staging")
    add(command, "--login", "eve")
    command.succeed("people", "disable", "3")
    for options, ids in (
        ((), [1, 2, 3]),
        (("--role", "clerk"), [1, 3]),
        (("--state", "invited"), [1, 2]),
        (("--state", "disabled", "--role", "clerk"), [3]),
        (("--environment", "staging"), [2]),
        (("--role", "viewer"), []),
    ):
        assert [person["id"] for person in people(command, *options)] == ids
    result = command("people", "list", "--state", "active")
    assert (result.stdout, result.stderr) == ("", "No person matches.\n")
    result = command("people", "list", "--environment", "staging", "--role", "viewer")
    assert result.stderr == "No person matches.\n"


def test_an_empty_list_says_so(command: Command) -> None:
    assert "there is no store" in command.fail("people", "list", status=1)
    command.make_store()
    result = command("people", "list")
    assert (result.stdout, result.stderr) == ("", "There are no people yet.\n")
    assert people(command) == []


def test_a_list_is_a_table(command: Command) -> None:
    add(command)
    command.execute("UPDATE api_keys SET seen_at = 1796126400000, created_at = 1796126400000")
    header, line = command.succeed("people", "list").splitlines()
    assert header.split("  ")[0] == "id"
    assert re.split("  +", line.strip()) == [
        *("1", "Grace Hopper", "grace@shop.example", "clerk", "invited", "2026-12-01"),
        "2026-12-01 12:00",
    ]
    command.execute("UPDATE api_keys SET seen_at = NULL")
    assert command.succeed("people", "list").splitlines()[1].rstrip().endswith(" -")


def test_a_narrow_terminal_leaves_out_columns(command: Command) -> None:
    add(command)
    shown = shown_on_terminal("people", "list", PETSTORE_DATABASE=command.url, COLUMNS="60")
    assert "(no room for created" in shown.text
    assert "grace@shop.example" in shown.text


def test_the_last_administrator_stays(command: Command) -> None:
    add(command, "--role", "administrator")
    command.execute("UPDATE people SET password = 'no hash'")
    for arguments in (("disable", "1"), ("change", "1", "--role", "clerk")):
        words = command.fail("people", *arguments, status=1)
        assert words.startswith("person 1 is the last active administrator")


def test_each_command_is_an_event_of_the_operator(command: Command) -> None:
    command.succeed("people", "add", *GRACE, **ADA)
    command.succeed("people", "change", "1", "--role", "viewer", **ADA)
    rows = command.execute("SELECT actor, type FROM events")
    told = ("person.created", "person.invited", "person.updated")
    assert rows == [("operator", each) for each in told]
