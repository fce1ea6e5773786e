"""``petstore keys``, on a database itself and over HTTP, and beside a running service."""

import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from petstore.keys.model import is_token
from support.command import Command
from support.process import ServerProcess, free_port
from support.shop import Shop
from support.waiting import within

NEW = ("--name", "app", "--plan", "enterprise")


def issued(shop: Shop, *options: str) -> dict[str, Any]:
    """Return a new key, with its token."""
    key: dict[str, Any] = shop.ask("keys", "create", *NEW, *options)
    return key


def status(server: ServerProcess, token: str) -> int:
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.get(f"{server.url}/v1/pets", headers=headers).status_code


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("--plan", "gold"), ("--per-minute", "0"), ("--per-day", "2147483647")),
        *(("--scope", "pets"), ("--scope", "pets:read pets:write"), ("--environment", "test")),
        *(("--expires-in", text) for text in ("30", "0s", "\uff11d", "1y", "36501d")),
    ],
)
def test_an_invalid_value_is_refused_naming_the_option(
    command: Command, option: str, value: str
) -> None:
    words = command.fail("keys", "create", *NEW, option, value, status=2)
    assert words.startswith(f"Invalid value for '{option}'")
    assert "\n" not in words
    assert not command.database.exists()


def test_a_store_is_created_neither_by_mistake_nor_through_a_dangling_symlink(
    command: Command, database: Path
) -> None:
    for arguments in (("keys", "list"), ("keys", "revoke", "1")):
        assert command.fail(*arguments, status=1) == (
            f"there is no store at {database}; petstore serve or petstore keys create creates one;"
            " to work over HTTP, set PETSTORE_KEY"
        )
    assert not database.exists()
    database.symlink_to("elsewhere.db")
    serve = ("serve", "--port", str(free_port()))
    for using in (("keys", "list"), ("keys", "create", *NEW), ("backup", "backup.db"), serve):
        assert command.fail(*using, status=1) == f"{database}: it is a link that leads nowhere"
    assert [*database.parent.iterdir()] == [database]


def test_no_key_is_created_if_its_token_cannot_be_written(command: Command, tmp_path: Path) -> None:
    program = (sys.executable, "-m", "petstore")
    ran = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" >&-', "sh", *program, "keys", "create", *NEW],
        cwd=tmp_path,
        env={**os.environ, "PETSTORE_DATABASE": command.url},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert ran.stderr == "Error: cannot write the output: standard output is closed\n"
    assert not command.database.exists()


def test_a_value_that_the_service_refuses_is_named_as_the_option(admin_shop: Shop) -> None:
    for option, value in (("--name", "   "), ("--network", "here"), ("--network", "10.0.0.1/8")):
        words = admin_shop.fail("keys", "create", *NEW, option, value, status=2)
        assert words.startswith(f"{option}: expected ")


def test_a_new_key_lasts_as_long_as_wanted_and_its_token_is_alone(admin_shop: Shop) -> None:
    key = issued(admin_shop, "--expires-in", "30d")
    left = datetime.fromisoformat(key["expiresAt"]) - datetime.now(UTC)
    assert abs(left - timedelta(days=30)) < timedelta(seconds=20)
    result = admin_shop("keys", "create", "--name", "mobile app", "--plan", "free")
    assert is_token(result.stdout.removesuffix("\n").encode(), "production")
    said = r"Key \d+ \(mobile app\): this token is shown only once\.\n"
    assert re.fullmatch(said, result.stderr)


def test_the_operator_works_in_one_environment(command: Command) -> None:
    assert command.create_key().startswith("ps_live_")
    token = command.succeed("keys", "create", *NEW, PETSTORE_ENVIRONMENT="staging")
    assert token.startswith("ps_test_")
    assert command.fail("keys", "show", "2", status=3) == "there is no key 2"
    for option, key_id in (((), 1), (("--environment", "staging"), 2)):
        listed = json.loads(command.succeed("keys", "list", "--json", *option))
        assert [key["id"] for key in listed] == [key_id]


def test_a_name_cannot_control_the_terminal(command: Command) -> None:
    """As only a store that another program has changed can have it."""
    command.create_key()
    command.execute("UPDATE api_keys SET name = char(27) || '[2Jowned'")
    assert r"\x1b[2Jowned" in command.succeed("keys", "show", "1")
    assert r"\x1b[2Jowned" in command.succeed("keys", "list")
    assert r"(\x1b[2Jowned)" in command("keys", "rotate", "1").stderr


def test_a_change_says_what_is_done(admin_shop: Shop) -> None:
    key_id = issued(admin_shop)["id"]
    for action, done in (("unban", "unbanned"), ("revoke", "revoked")):
        assert admin_shop.ask("keys", action, key_id) == {"id": key_id, done: True}
        result = admin_shop("keys", action, key_id)
        assert (result.stdout, result.stderr) == ("", f"Key {key_id} {done}.\n")


def test_a_running_service_learns_of_each_change(server: ServerProcess) -> None:
    beside = Shop.on_database(server.database)
    key = issued(beside, "--per-minute", "5000", "--per-day", "100000")
    token = key["token"]
    assert status(server, token) == 200
    beside.succeed("keys", "change", key["id"], "--plan", "business")

    def limit() -> str:
        response = httpx.get(f"{server.url}/v1/pets", headers={"Authorization": f"Bearer {token}"})
        return response.headers["X-RateLimit-Limit"]

    assert within(30, lambda: limit() == "1000")
    assert within(30, lambda: beside.ask("keys", "show", key["id"])["lastUsedAt"] is not None)
    beside.succeed("keys", "revoke", key["id"])
    assert within(30, lambda: status(server, token) == 401)
