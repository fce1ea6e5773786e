"""``petstore deprecations``: which keys still call deprecated operations."""

import asyncio
import csv
import io
import json

from petstore.clock import DAY, Milliseconds, rfc3339, system_clock
from petstore.usage.counter import Counter, first_hour
from support.command import Command
from support.stores import open_store

COLUMNS = [
    *("keyId", "keyName", "operation", "method", "path", "since", "sunset", "use"),
    *("documentation", "calls", "lastCalledAt", "lastUserAgent", "lastRequestId"),
]


def call(command: Command, *user_agents: str, at: Milliseconds | None = None) -> Milliseconds:
    """Save a call of key 1, and of each next one, with these user agents; return their time."""
    now = at or system_clock()

    async def save() -> None:
        async with open_store(command.database) as store:
            counter, hour = Counter(store), first_hour(now // DAY)
            for key_id, user_agent in enumerate(user_agents, 1):
                latest = (now, user_agent.encode(), f"r{key_id}")
                counter.count("deprecated", key_id, "getPet", hour, latest)
            await counter.save()

    asyncio.run(save())
    return now


def test_without_calls_the_list_is_empty(command: Command) -> None:
    command.make_store()
    result = command("deprecations")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "None found.\n"
    assert command.succeed("deprecations", "--json") == "[]\n"
    assert command.succeed("deprecations", "--csv") == ",".join(COLUMNS) + "\n"


def test_calls_are_listed_as_a_table_and_as_json(command: Command) -> None:
    for environment in ("production", "production", "staging"):
        command.create_key("--environment", environment)
    call(command, "old", at=system_clock() - 31 * DAY)
    now = call(command, "shop/1.4", "till", "test")
    header, first, second = command.succeed("deprecations").splitlines()
    assert " ".join(header.split()) == (
        "key name operation calls last called (UTC) user agent request id ends use"
    )
    called = rfc3339(now)[:16].replace("T", " ")
    use = "GET /v1/pets, with id for one pet or with status"
    assert " ".join(first.split()) == f"1 app getPet 1 {called} shop/1.4 r1 2030-12-05 {use}"
    assert second.split()[0] == "2"
    one, _ = json.loads(command.succeed("deprecations", "--json"))
    assert {*one} == {*COLUMNS}
    assert (one["keyId"], one["keyName"], one["calls"]) == (1, "app", 1)
    assert one["lastCalledAt"] == rfc3339(now)
    rows = list(csv.DictReader(io.StringIO(command.succeed("deprecations", "--csv"))))
    assert [*rows[0]] == COLUMNS
    assert rows[0] == {name: str(value) for name, value in one.items()}


def test_csv_cells_are_not_read_as_formulas(command: Command) -> None:
    user_agent = "=cmd|' /C calc'!A0"
    command.succeed("keys", "create", "--name", "=1+1", "--plan", "free")
    call(command, user_agent)
    (row,) = csv.DictReader(io.StringIO(command.succeed("deprecations", "--csv")))
    assert row["lastUserAgent"] == f"'{user_agent}"
    assert row["keyName"] == "'=1+1"
    (use,) = json.loads(command.succeed("deprecations", "--json"))
    assert use["lastUserAgent"] == user_agent
