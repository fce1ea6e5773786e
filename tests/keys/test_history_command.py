"""``petstore keys history``: who did what to a key, and when."""

import json
import os
import re
from datetime import UTC, datetime
from typing import Any

import apsw
import pytest

from support.command import Command

ADA = {"LOGNAME": "ada"}


def seconds_ago(moment: str) -> float:
    return (datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds()


def history(command: Command, key_id: int = 1) -> list[dict[str, Any]]:
    """Return what ``keys history --json`` says of a key, without ids and times."""
    events: list[dict[str, Any]] = json.loads(
        command.succeed("keys", "history", str(key_id), "--json")
    )
    for event in events:
        assert 0 <= seconds_ago(event.pop("at")) < 60
    ids = [event.pop("id") for event in events]
    assert ids == sorted(set(ids))
    return events


def test_an_invalid_id_is_refused(command: Command) -> None:
    words = command.fail("keys", "history", "0", status=2)
    assert words.startswith("Invalid value for 'ID'")


def test_an_unknown_key_is_reported_as_missing(command: Command) -> None:
    command.make_store()
    assert command.fail("keys", "history", "7", status=1) == "there is no key 7"


def test_a_missing_store_is_not_created_by_mistake(command: Command) -> None:
    assert command.fail("keys", "history", "1", status=1).startswith("there is no store at ")
    assert not command.database.exists()


def test_every_command_is_recorded_with_its_user(command: Command) -> None:
    new = ("--name", "app", "--plan", "enterprise", "--per-minute", "5", "--scope", "pets:read")
    for arguments in (
        ("create", *new),
        ("change", "1", "--name", "other", "--per-minute", "unlimited", "--scope", "keys:admin"),
        ("rotate", "1"),
        ("unban", "1"),
        ("revoke", "1"),
        ("revoke", "1"),
    ):
        command.succeed("keys", *arguments, **ADA)
    command.create_key()
    command.succeed("console", "link", "2", **ADA)
    assert history(command, 2)[1]["by"] == "command line (ada)"
    created, changed, rotated, unbanned, revoked = history(command)
    by = "command line (ada)"
    assert created == {
        "by": by,
        "action": "created",
        "changes": {
            "name": {"before": None, "after": "app"},
            "plan": {"before": None, "after": "enterprise"},
            "perMinute": {"before": None, "after": 5},
            "scopes": {"before": None, "after": ["pets:read"]},
        },
    }
    assert changed == {
        "by": by,
        "action": "changed",
        "changes": {
            "name": {"before": "app", "after": "other"},
            "perMinute": {"before": 5, "after": None},
            "scopes": {"before": ["pets:read"], "after": ["keys:admin"]},
        },
    }
    assert rotated == {"by": by, "action": "rotated", "changes": {}}
    assert unbanned == {"by": by, "action": "unbanned", "changes": {}}
    at = revoked["changes"]["revokedAt"].pop("after")
    assert revoked == {"by": by, "action": "revoked", "changes": {"revokedAt": {"before": None}}}
    assert 0 <= seconds_ago(at) < 60


def test_a_history_is_a_table_with_a_line_for_each_change(command: Command) -> None:
    command.succeed("keys", "create", "--name", "my app", "--plan", "free", **ADA)
    command.succeed("keys", "change", "1", "--plan", "pro", "--scope", "pets:read", **ADA)
    command.succeed("keys", "rotate", "1", **ADA)
    events = json.loads(command.succeed("keys", "history", "1", "--json"))
    times = [event["at"].replace("T", " ").removesuffix("Z") for event in events]
    header, *lines = command.succeed("keys", "history", "1").splitlines()
    assert header.split() == ["at", "(UTC)", "by", "action", "changes"]
    by, scopes = "command line (ada)", "orders:read orders:write pets:read pets:write"
    assert [" ".join(line.split()) for line in lines] == [
        f"{times[0]} {by} created name: - -> my app; plan: - -> free; scopes: - -> {scopes}",
        f"{times[1]} {by} changed plan: free -> pro; scopes: {scopes} -> pets:read",
        f"{times[2]} {by} rotated",
    ]


@pytest.mark.parametrize("arguments", [(), ("1", "--by", "2")])
def test_a_history_can_be_filtered_by_key_or_by_actor(
    command: Command, arguments: tuple[str, ...]
) -> None:
    words = command.fail("keys", "history", *arguments, status=2)
    assert words == "expected either the ID of a key or --by"


def test_all_changes_made_by_one_key_are_listed(command: Command) -> None:
    for name in ("leaked", "made by the thief", "other"):
        command.succeed("keys", "create", "--name", name, "--plan", "free")
    assert command("keys", "history", "--by", "1").stderr == (
        "Nothing is known of what key 1 did to others.\n"
    )
    store = apsw.Connection(str(command.database))
    store.execute("UPDATE api_key_events SET actor = 'key 1' WHERE key_id = 2")
    store.execute("UPDATE api_key_events SET actor = 'key 11' WHERE key_id = 3")
    store.close()
    header, line = command.succeed("keys", "history", "--by", "1").splitlines()
    assert header.split() == ["key", "at", "(UTC)", "by", "action", "changes"]
    assert line.startswith("2 ")
    assert " key 1  created  name: - -> made by the thief;" in line
    (event,) = json.loads(command.succeed("keys", "history", "--by", "1", "--json"))
    assert (event["key"], event["by"], event["action"]) == (2, "key 1", "created")


def test_changes_to_people_are_among_those_of_a_key(command: Command) -> None:
    command.create_key()
    command.succeed("people", "add", "--name", "Grace", "--login", "grace", "--role", "clerk")
    command.create_key()
    command.execute("UPDATE api_key_events SET actor = 'key 1' WHERE key_id > 1")
    lines = command.succeed("keys", "history", "--by", "1").splitlines()
    assert [re.split("  +", line)[0] for line in lines] == ["key", "person 2", "person 2", "3"]
    events = json.loads(command.succeed("keys", "history", "--by", "1", "--json"))
    assert [(event.get("key"), event.get("person")) for event in events] == [
        *((None, 2), (None, 2)),
        (3, None),
    ]


def test_a_user_without_a_name_is_recorded_as_the_command_line(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)

    def nobody(_: int) -> None:
        msg = "getpwuid(): uid not found"
        raise KeyError(msg)

    monkeypatch.setattr("pwd.getpwuid", nobody)
    command.create_key()
    assert history(command)[0]["by"] == "command line"


def test_no_token_is_in_a_history(command: Command) -> None:
    tokens = [command.create_key(), command.succeed("keys", "rotate", "1").strip()]
    for form in ((), ("--json",)):
        told = command.succeed("keys", "history", "1", *form)
        assert not any(token.removeprefix("ps_live_") in told for token in tokens)


def test_a_key_older_than_the_history_has_an_empty_history(command: Command) -> None:
    command.create_key()
    store = apsw.Connection(str(command.database))
    store.execute("DELETE FROM api_key_events")
    store.close()
    result = command("keys", "history", "1")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "Nothing is known of what was done to key 1.\n"
    assert history(command) == []


def test_a_user_name_that_is_not_valid_text_is_recorded_with_replacements(command: Command) -> None:
    name = os.fsdecode(b"\xff")
    command.succeed("keys", "create", "--name", "app", "--plan", "free", LOGNAME=name)
    assert [event["by"] for event in history(command)] == ["command line (\ufffd)"]
