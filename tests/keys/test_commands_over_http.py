"""``petstore keys`` beside a service that is running, which follows without a restart."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from petstore.cli.client_failures import ExitStatus
from petstore.clock import SECOND, system_clock
from support.command import Command
from support.manual_clock import ManualClock
from support.process import ServerProcess
from support.service import Service, running_service
from support.shop import Shop
from support.waiting import eventually, within

HOUR = 3600


@pytest.fixture
def keys(server: ServerProcess) -> Command:
    """The command, on the database of the running service."""
    return Command(server.folder / "petstore.db")


def issue(keys: Command, *options: str) -> tuple[str, str]:
    """Issue a key and return its id and its token."""
    result = keys("keys", "create", "--name", "app", "--plan", "enterprise", *options)
    return result.stderr.split()[1], result.stdout.strip()


def ask(server: ServerProcess, token: str, method: str = "GET") -> httpx.Response:
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.request(method, f"{server.url}/v1/pets", headers=headers)


def test_a_key_that_was_revoked_is_refused(server: ServerProcess, keys: Command) -> None:
    number, token = issue(keys)
    assert ask(server, token).status_code == 200
    keys.succeed("keys", "revoke", number)
    assert within(30, lambda: ask(server, token).status_code == 401)


def test_a_change_of_plan_takes_effect_and_keeps_the_usage(
    server: ServerProcess, keys: Command
) -> None:
    number, token = issue(keys, "--per-minute", "5000", "--per-day", "100000")
    assert ask(server, token).headers["X-RateLimit-Remaining"] == "4999"
    keys.succeed("keys", "change", number, "--plan", "business")
    responses: list[httpx.Response] = []

    def is_business() -> bool:
        responses.append(ask(server, token))
        return responses[-1].headers["X-RateLimit-Limit"] == "1000"

    assert within(30, is_business)
    assert responses[-1].headers["X-RateLimit-Remaining"] == str(1000 - 1 - len(responses))


def test_a_used_key_shows_its_last_use(server: ServerProcess, keys: Command) -> None:
    number, token = issue(keys)
    assert keys.show_key(int(number))["lastUsedAt"] is None
    ask(server, token)
    assert within(30, lambda: keys.show_key(int(number))["lastUsedAt"] is not None)
    to_the_minute = keys.show_key(int(number))["lastUsedAt"][:16].replace("T", " ")
    lines = keys.succeed("keys", "list").splitlines()
    (line,) = [line for line in lines if line.startswith(f"{number} ")]
    assert line.rstrip().endswith(f" {to_the_minute}")


class TestByTheClock:
    """Changes that take hours, on a service in this process with a manual clock."""

    pytestmark = pytest.mark.anyio

    @pytest.fixture
    async def service(self, database: Path) -> AsyncIterator[Service]:
        # A little behind the command's, so that what it says comes after what happened here.
        clock = ManualClock(system_clock() - 10 * SECOND)
        async with running_service(database, clock, ban_strikes=1) as service:
            yield service

    async def test_a_ban_is_shown_and_can_be_lifted(
        self, service: Service, command: Command
    ) -> None:
        token = await asyncio.to_thread(command.create_key, "--per-minute", "1")

        async def code() -> str | None:
            response = (await service.request("GET", "/v1/pets", token)).json()
            return response["code"] if isinstance(response, dict) else None

        assert [await code() for _ in range(2)] == [None, "rate_limit_exceeded"]
        service.clock.advance(2)
        assert await code() == "api_key_banned"
        await service.limiter.save()
        key = await asyncio.to_thread(command.show_key)
        assert key["bannedUntil"] is not None
        assert key["state"] == "active"
        assert " banned " in await asyncio.to_thread(command.succeed, "keys", "list")

        await asyncio.to_thread(command.succeed, "keys", "unban", "1")

        async def is_free() -> bool:
            return await code() != "api_key_banned"

        await eventually(is_free)
        assert (await asyncio.to_thread(command.show_key))["bannedUntil"] is None


def test_an_owner_rotates_the_own_key_with_an_hour_of_grace(
    server: ServerProcess, keys: Command
) -> None:
    number, token = issue(keys, "--scope", "pets:read")
    rotated = Shop(server.url, token)("rotate-key")
    assert rotated.stderr == f"Key {number} (app) rotated. The token is shown this once.\n"
    new = rotated.stdout.strip()
    assert [ask(server, each).status_code for each in (token, new)] == [200, 200]
    refused = Shop(server.url, token)("rotate-key")
    assert (refused.exit_code, refused.stdout) == (ExitStatus.KEY, "")
    assert "only its newest token can do that" in refused.stderr
    last = Shop(server.url, new).succeed("rotate-key", "--grace", "0s").strip()
    assert [ask(server, each).status_code for each in (token, new, last)] == [401, 401, 200]
