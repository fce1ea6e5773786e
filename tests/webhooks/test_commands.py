"""``petstore webhooks``: from a new webhook to one that is enabled again."""

import pytest

from support.odd_service import odd_service, response
from support.process import ServerProcess
from support.shop import Shop

URL = "https://shop.example/hooks"
WEBHOOK = {
    "id": 7,
    "url": URL,
    "types": ["order.placed", "pet.created"],
    "description": "The till",
    "enabled": False,
    "disabledReason": "failing",
    "createdAt": "2026-12-01T12:00:00Z",
    "lastSuccessAt": "2026-12-01T12:30:59Z",
    "failingSince": None,
    "owner": {"type": "key", "id": 3},
}
DELIVERY = {
    "id": 3,
    "eventId": "evt_3",
    "type": "pet.created",
    "resource": "pet/7",
    "state": "pending",
    "attempts": 1,
    "createdAt": "2026-12-01T12:00:00.000Z",
    "lastAttemptAt": None,
    "nextAttemptAt": "2026-12-01T12:05:00.000Z",
    "responseStatus": None,
    "responseBody": None,
    "error": "it did not respond",
}


@pytest.fixture(scope="module")
def token(server: ServerProcess) -> str:
    """The token of a key that may manage webhooks."""
    scopes = ("webhooks:write", "pets:read", "pets:write")
    return server.issue("enterprise", *(word for scope in scopes for word in ("--scope", scope)))


@pytest.fixture
def webhook_id(shop: Shop) -> int:
    """The id of a new webhook."""
    secret = shop.succeed("webhooks", "create", URL, "--type", "pet.created")
    assert secret.startswith("whsec_")
    *_, newest = shop.ask("webhooks", "list", "--all")
    return int(newest["id"])


def test_standard_output_has_only_the_secret(shop: Shop) -> None:
    result = shop("webhooks", "create", URL, "--description", "The till")
    assert result.exit_code == 0
    assert result.stdout.startswith("whsec_")
    assert len(result.stdout.splitlines()) == 1
    *_, newest = shop.ask("webhooks", "list", "--all")
    assert (newest["types"], newest["description"]) == ([], "The till")
    assert result.stderr == f"Webhook {newest['id']} created. The secret is shown this once.\n"
    rotated = shop("webhooks", "rotate", newest["id"], "--grace", "1h")
    assert rotated.stdout.startswith("whsec_")
    assert rotated.stdout != result.stdout
    assert rotated.stderr == f"Webhook {newest['id']} rotated. The secret is shown this once.\n"


def test_the_event_of_a_delivery_is_sent_again() -> None:
    with odd_service(response(202, DELIVERY | {"id": 9})) as service:
        printed = Shop(service.url, "a-key").succeed("webhooks", "retry", 7, 3)
    assert printed == "Delivery 9 will send event evt_3.\n"


def test_a_webhook_is_disabled_and_enabled(shop: Shop, webhook_id: int) -> None:
    line = shop.succeed("webhooks", "show", webhook_id)
    assert line.startswith(f"Webhook {webhook_id}: {URL}, enabled, pet.created")
    disabled = line.replace("enabled", "disabled")
    assert shop.succeed("webhooks", "disable", webhook_id) == disabled
    words = shop.fail("webhooks", "test", webhook_id, status=4)
    assert words == f"webhook {webhook_id} is disabled; enable it first"
    assert shop.succeed("webhooks", "enable", webhook_id) == line


def test_a_test_delivery_names_its_event(shop: Shop, webhook_id: int) -> None:
    printed = shop.succeed("webhooks", "test", webhook_id)
    assert printed.startswith("Event evt_")
    assert printed.endswith(" will be sent; see petstore webhooks deliveries.\n")


def test_missed_events_can_be_sent(shop: Shop, webhook_id: int) -> None:
    since = ("--since", "2026-12-01T12:00:00Z")
    printed = shop.succeed("webhooks", "recover", webhook_id, *since)
    assert printed == f"Events that webhook {webhook_id} missed will be sent.\n"
    assert shop.ask("webhooks", "recover", webhook_id, *since)["id"] == webhook_id


def test_a_webhook_is_printed_in_one_line() -> None:
    with odd_service(response(200, WEBHOOK)) as service:
        printed = Shop(service.url, "a-key").succeed("webhooks", "show", 7)
    assert printed == (
        f"Webhook 7: {URL}, disabled (failing), order.placed pet.created, last"
        " success 2026-12-01 12:30 UTC, The till\n"
    )
    webhook = WEBHOOK | {"types": [], "lastSuccessAt": None, "description": None, "enabled": True}
    with odd_service(response(200, webhook)) as service:
        printed = Shop(service.url, "a-key").succeed("webhooks", "show", 7)
    assert printed == f"Webhook 7: {URL}, enabled, all\n"


def test_a_table_has_a_line_for_each_webhook() -> None:
    other = WEBHOOK | {"types": [], "lastSuccessAt": None, "description": None, "enabled": True}
    with odd_service(response(200, [WEBHOOK, other])) as service:
        head, first, second = Shop(service.url, "a-key").succeed("webhooks", "list").splitlines()
    head = head.replace("last success (UTC)", "success")
    assert head.split() == ["id", "url", "state", "types", "success", "owner", "description"]
    words = "disabled (failing) order.placed pet.created 2026-12-01 12:30 key 3 The till"
    assert first.split() == ["7", URL, *words.split()]
    assert second.split() == ["7", URL, "enabled", "all", "-", "key", "3", "-"]


@pytest.mark.parametrize("arguments", [["create", URL], ["rotate", "7"]])
def test_a_secret_that_would_control_the_terminal_is_escaped(arguments: list[str]) -> None:
    with odd_service(response(200, WEBHOOK | {"secret": "whsec_\x1b[2J"})) as service:
        printed = Shop(service.url, "a-key").succeed("webhooks", *arguments)
    assert printed == "whsec_\\x1b[2J\n"
