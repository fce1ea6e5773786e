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


def test_standard_output_has_only_the_secret(shop: Shop) -> None:
    result = shop("webhooks", "create", URL, "--description", "The till")
    assert result.exit_code == 0
    assert result.stdout.startswith("whsec_")
    assert len(result.stdout.splitlines()) == 1
    *_, newest = shop.ask("webhooks", "list", "--all")
    assert (newest["types"], newest["description"]) == ([], "The till")
    assert result.stderr == f"Webhook {newest['id']}: this secret is shown only once.\n"
    rotated = shop("webhooks", "rotate", newest["id"], "--grace", "1h")
    assert rotated.stdout.startswith("whsec_")
    assert rotated.stdout != result.stdout
    assert rotated.stderr == f"Webhook {newest['id']}: this secret is shown only once.\n"


@pytest.mark.parametrize("arguments", [["create", URL], ["rotate", "7"]])
def test_a_secret_that_would_control_the_terminal_is_escaped(arguments: list[str]) -> None:
    webhook = {"id": 7, "url": URL, "types": [], "enabled": True, "secret": "whsec_\x1b[2J"}
    webhook |= {"createdAt": "2026-12-01T12:00:00Z", "owner": {"type": "key", "id": 3}}
    with odd_service(response(200, webhook)) as service:
        printed = Shop(service.url, "a-key").succeed("webhooks", *arguments)
    assert printed == "whsec_\\x1b[2J\n"


def test_a_webhook_is_disabled_tested_and_recovered(shop: Shop) -> None:
    assert shop.succeed("webhooks", "create", URL, "--type", "pet.created").startswith("whsec_")
    webhook_id = shop.ask("webhooks", "list", "--all")[-1]["id"]
    for step, enabled in (("disable", False), ("enable", True)):
        assert shop.ask("webhooks", step, webhook_id)["enabled"] is enabled
    assert shop.succeed("webhooks", "test", webhook_id).startswith("event  evt_")
    since = ("--since", "2026-12-01T12:00:00Z")
    assert shop.ask("webhooks", "recover", webhook_id, *since)["id"] == webhook_id
    assert shop.ask("webhooks", "change", webhook_id, "--no-type")["types"] == []
