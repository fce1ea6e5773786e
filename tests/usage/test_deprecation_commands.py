"""``petstore deprecations``: which keys still call deprecated operations."""

import asyncio
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


def test_calls_are_listed_as_a_table_and_as_json(command: Command) -> None:
    for environment in ("production", "production", "staging"):
        command.create_key("--environment", environment)
    call(command, "old", at=system_clock() - 31 * DAY)
    now = call(command, "shop/1.4", "till", "test")
    header, first, second = command.succeed("deprecations").splitlines()
    assert " ".join(header.split()) == ("key key name operation calls last called sunset use")
    use = "GET /v1/pets, with id for one pet or with status"
    assert " ".join(first.split()) == f"1 app getPet 1 {rfc3339(now)} 2030-12-05T00:00:00Z {use}"
    assert second.split()[0] == "2"
    one, _ = json.loads(command.succeed("deprecations", "--json"))
    assert {*one} == {*COLUMNS}
    assert (one["keyId"], one["keyName"], one["calls"]) == (1, "app", 1)
    assert one["lastCalledAt"] == rfc3339(now)
