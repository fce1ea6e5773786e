"""``petstore webhooks``: from a new webhook to one that is enabled again."""

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


def test_secrets_stand_alone_and_a_webhook_is_disabled_tested_and_recovered(shop: Shop) -> None:
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
    for step, enabled in (("disable", False), ("enable", True)):
        assert shop.ask("webhooks", step, webhook_id)["enabled"] is enabled
    assert shop.succeed("webhooks", "test", webhook_id).startswith("event  evt_")
    since = ("--since", "2026-12-01T12:00:00Z")
    assert shop.ask("webhooks", "recover", webhook_id, *since)["id"] == webhook_id
    assert shop.ask("webhooks", "change", webhook_id, "--no-type")["types"] == []
