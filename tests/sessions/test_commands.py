"""``petstore console``: links that sign people in."""

import asyncio
import re

import pytest

from petstore.clock import system_clock
from petstore.sessions.store import use_link
from support.command import Command
from support.stores import open_store

LINK = re.compile(r"(.+)/console/link/([A-Za-z0-9_-]{43})\n")


def test_a_link_for_an_unknown_key_is_refused(command: Command) -> None:
    command.make_store()
    assert command.fail("console", "link", "7", status=1) == "there is no key 7"


def test_the_link_command_does_not_create_a_store(command: Command) -> None:
    assert "there is no store" in command.fail("console", "link", "1", status=1)
    assert not command.database.exists()


@pytest.mark.parametrize(
    ("option", "value"), [("--public-url", "shop.example"), ("--port", "0"), ("--port", "x")]
)
def test_an_invalid_address_is_refused(command: Command, option: str, value: str) -> None:
    command.create_key()
    assert option in command.fail("console", "link", "1", option, value, status=2)


@pytest.mark.parametrize(
    ("options", "address"),
    [
        ((), "http://127.0.0.1:8000"),
        (("--host", "::1", "--port", "81"), "http://[::1]:81"),
        (("--public-url", "https://shop.example/a/"), "https://shop.example/a"),
    ],
)
def test_the_link_begins_with_the_address_of_the_service(
    command: Command, options: tuple[str, ...], address: str
) -> None:
    command.create_key()
    printed = LINK.fullmatch(command.succeed("console", "link", "1", *options))
    assert printed is not None
    assert printed[1] == address


def test_the_settings_of_the_service_apply_to_links(command: Command) -> None:
    command.create_key()
    printed = command.succeed("console", "link", "1", PETSTORE_PUBLIC_URL="https://a.example")
    assert printed.startswith("https://a.example/console/link/")


def test_the_explanation_of_a_link_is_not_on_standard_output(command: Command) -> None:
    command.create_key()
    result = command("console", "link", "1")
    assert LINK.fullmatch(result.stdout)
    assert result.stderr == (
        "This link signs one person in with key 1, once, within 10 minutes, at"
        " http://127.0.0.1:8000 (--port and --public-url choose another):\n"
    )
    result = command("console", "link", "1", "--public-url", "https://shop.example")
    assert result.stderr == "This link signs one person in with key 1, once, within 10 minutes:\n"


def test_the_link_works_once(command: Command) -> None:
    command.create_key()
    printed = LINK.fullmatch(command.succeed("console", "link", "1"))
    assert printed is not None
    secret = printed[2]

    async def use_twice() -> list[str | None]:
        async with open_store(command.database) as store:
            units = [use_link(secret, "production", system_clock()) for _ in range(2)]
            return [await store.write(unit) for unit in units]

    first, second = asyncio.run(use_twice())
    assert first is not None
    assert second is None
