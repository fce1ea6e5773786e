"""``petstore webhooks``: what their secrets look like."""

import pytest

from support.odd_service import odd_service, response
from support.process import ServerProcess
from support.shop import Shop

URL = "https://shop.example/hooks"


@pytest.fixture(scope="module")
def token(server: ServerProcess) -> str:
    scopes = ("webhooks:write", "pets:read", "pets:write")
    return server.issue("enterprise", *(word for scope in scopes for word in ("--scope", scope)))


@pytest.mark.parametrize("arguments", [["create", URL], ["rotate", "7"]])
def test_a_secret_that_would_control_the_terminal_is_escaped(arguments: list[str]) -> None:
    webhook = {"id": 7, "url": URL, "types": [], "enabled": True, "secret": "whsec_\x1b[2J"}
    webhook |= {"createdAt": "2026-12-01T12:00:00Z", "owner": {"type": "key", "id": 3}}
    with odd_service(response(200, webhook)) as service:
        printed = Shop(service.url, "a-key").succeed("webhooks", *arguments)
    assert printed == "whsec_\\x1b[2J\n"


def test_the_secret_of_a_new_or_rotated_webhook_stands_alone(shop: Shop) -> None:
    created = shop("webhooks", "create", URL, "--description", "The till", "--type", "pet.created")
    *_, newest = shop.ask("webhooks", "list", "--all")
    assert (newest["types"], newest["description"]) == (["pet.created"], "The till")
    webhook_id = newest["id"]
    rotated = shop("webhooks", "rotate", webhook_id, "--grace", "1h")
    for result in (created, rotated):
        assert (result.exit_code, result.stdout[:6]) == (0, "whsec_")
        assert len(result.stdout.splitlines()) == 1
        assert result.stderr == f"Webhook {webhook_id}: this secret is shown only once.\n"
    assert rotated.stdout != created.stdout
