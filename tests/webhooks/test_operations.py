"""The operations on webhooks, used with a key that may manage its own."""

import asyncio
from base64 import b64decode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from petstore.clock import SECOND
from petstore.databases.contract import Statement
from petstore.keys.model import SCOPES
from petstore.settings import SettingError
from petstore.webhooks.deliveries import due_deliveries
from petstore.webhooks.signing import master_of_text, secret_text, webhook_secrets
from support.cases import case
from support.error_body import assert_error
from support.history import forget_keys, published
from support.manual_clock import ManualClock
from support.sending import Send, sender
from support.service import SERVICE_URL, Service, running_service
from support.stores import do
from support.waiting import eventually
from support.webhooks import NOW, URL, add_deliveries, add_events, publish

pytestmark = pytest.mark.anyio

BY_ID = [
    ("GET", ""),
    ("PATCH", ""),
    ("DELETE", ""),
    ("POST", "/rotate"),
    ("POST", "/test"),
    ("GET", "/deliveries"),
    ("POST", "/recover"),
    ("POST", "/deliveries/1/retry"),
]
BODY = {"url": URL, "since": "2026-01-01T00:00:00Z"}
WEBHOOK = {
    "id": 1,
    "url": URL,
    "types": [],
    "description": None,
    "enabled": True,
    "disabledReason": None,
    "createdAt": "2026-12-01T12:00:00Z",
    "lastSuccessAt": None,
    "failingSince": None,
    "owner": {"type": "key", "id": 1},
}
MANAGER = frozenset(SCOPES) - {"keys:admin"}


@pytest.fixture
async def service(address: str, clock: ManualClock) -> AsyncIterator[Service]:
    """The service in this process; it writes nothing by itself."""
    async with running_service(address, clock, limits_save_seconds=60) as service:
        yield service


@pytest.fixture
async def send(service: Service) -> Send:
    """Sends requests with a key that may do everything, whose creation is no event here."""
    send = await sender(service, scopes=frozenset(SCOPES))
    await published(service.store)
    await forget_keys(service.store)
    return send


async def create(send: Send, **wanted: Any) -> dict[str, Any]:
    response = await send("POST", "/webhooks", json={"url": URL, **wanted})
    assert response.status_code == 201, response.text
    created: dict[str, Any] = response.json()
    return created


async def rows(service: Service, sql: str) -> list[Any]:
    return await service.store.read(Statement(sql))


@pytest.mark.each_database
async def test_the_webhook_of_another_key_or_environment_is_not_found(
    service: Service, send: Send
) -> None:
    await create(send)
    await add_events(service.store, [NOW])
    await add_deliveries(service.store, 1, "failed")
    other = await sender(service, scopes=MANAGER)
    bodies = [(method, rest, BODY) for method, rest in BY_ID]
    for method, rest, body in (*bodies, ("PATCH", "", {"enabled": False})):
        with case(method, rest, body):
            response = await other(method, f"/webhooks/1{rest}", json=body)
            assert assert_error(response, 404, "not_found") == "there is no webhook 1"
    for query in ("", "?failing=true"):
        assert (await other("GET", f"/webhooks{query}")).json() == []
    assert (await send("GET", "/webhooks/1")).json() == WEBHOOK
    await service.store.write(do("UPDATE webhooks SET environment = 'staging', key_id = 2"))
    for method in ("GET", "PATCH"):
        response = await send(method, "/webhooks/1", json={"enabled": False})
        assert_error(response, 404, "not_found")
    assert (await send("GET", "/webhooks")).json() == []


@pytest.mark.each_database
async def test_an_administrator_can_see_and_disable_every_webhook(service: Service) -> None:
    owner = await sender(service, scopes=MANAGER)
    admin = await sender(service, scopes=frozenset(SCOPES))
    await create(owner)
    assert (await admin("GET", "/webhooks/1")).json() == WEBHOOK
    assert (await admin("GET", "/webhooks")).json() == [WEBHOOK]
    for body in (BODY, {"enabled": True}, {"enabled": False, "url": URL}, {}):
        message = assert_error(await admin("PATCH", "/webhooks/1", json=body), 403, "not_owner")
        assert message.startswith("webhook 1 belongs to key 1, which alone can do this")
    disabled = WEBHOOK | {"enabled": False}
    for _ in range(2):
        response = await admin("PATCH", "/webhooks/1", json={"enabled": False})
        assert response.json() == disabled
    await publish(service.store)
    events = (await owner("GET", "/events?type=webhook.disabled")).json()
    assert [(each["actor"], each["data"]) for each in events] == [
        ({"type": "key", "id": 2}, disabled)
    ]
    assert (await owner("PATCH", "/webhooks/1", json={"enabled": True})).json() == WEBHOOK


@pytest.mark.each_database
async def test_failing_webhooks_are_listed_alone(service: Service, send: Send) -> None:
    for _ in range(4):
        await create(send)
    await service.store.write(
        do("UPDATE webhooks SET failures = id + 1, failing_since = ?1 WHERE id < 3", NOW)
    )
    gone = "UPDATE webhooks SET enabled = 0, disabled_reason = 'gone' WHERE id = 4"
    await service.store.write(do(gone))
    first = await send("GET", "/webhooks?failing=true&limit=1")
    assert [each["failingSince"] for each in first.json()] == ["2026-12-01T12:00:00Z"]
    rest = await send("GET", first.links["next"]["url"].removeprefix(f"{SERVICE_URL}/v1"))
    assert [(each["id"], each["failingSince"]) for each in rest.json()] == [(4, None)]
    response = await send("GET", "/webhooks?failing=false")
    assert assert_error(response, 400, "invalid_parameter").startswith("failing: expected 'true'")


async def test_an_outdated_if_match_is_refused(service: Service, send: Send) -> None:
    await create(send)
    await add_events(service.store, [NOW])
    await add_deliveries(service.store, 1, "failed")
    tag = (await send("GET", "/webhooks/1")).headers["ETag"]
    for method, rest in sorted(BY_ID, reverse=True):  # the deletion comes last
        if rest != "/deliveries":
            with case(method, rest):
                path = f"/webhooks/1{rest}"
                response = await send(
                    method, path, json=BODY, headers={"If-Match": '"of another version"'}
                )
                assert_error(response, 412, "precondition_failed")
                response = await send(method, path, json=BODY, headers={"If-Match": tag})
                assert response.is_success


async def test_an_invalid_value_is_refused_naming_the_field(send: Send) -> None:
    await create(send)
    for field, value, code in (
        ("url", None, "invalid_body"),
        ("url", "http://shop.example/", "invalid_webhook_url"),
        ("types", ["pet.sold"], "invalid_body"),
        ("types", [None], "invalid_body"),
        ("description", "two\nlines", "invalid_body"),
        ("description", "a\0", "invalid_body"),
    ):
        for method, path in (("POST", "/webhooks"), ("PATCH", "/webhooks/1")):
            with case(method, field, value):
                response = await send(method, path, json={"url": URL, field: value})
                assert assert_error(response, 400, code).startswith(f"{field}: expected ")
    assert (await send("GET", "/webhooks")).json() == [WEBHOOK]


async def test_the_operator_may_allow_networks(address: str) -> None:
    async with running_service(address, webhook_network=("127.0.0.0/8",)) as service:
        send = await sender(service, scopes=frozenset(SCOPES))
        assert (await create(send, url="http://127.0.0.1:3000/hooks"))["id"] == 1


async def test_a_type_that_the_key_cannot_read_is_refused(service: Service) -> None:
    send = await sender(service, scopes=frozenset({"webhooks:write", "pets:read"}))
    await create(send, types=["pet.created", "key.banned"])
    for method, path in (("POST", "/webhooks"), ("PATCH", "/webhooks/1")):
        response = await send(method, path, json={"url": URL, "types": ["order.placed"]})
        message = assert_error(response, 403, "missing_scope")
        assert message == "this key lacks the scope orders:read to read order.placed"
        assert 'scope="orders:read"' in response.headers["WWW-Authenticate"]


@pytest.mark.each_database
async def test_a_webhook_is_returned_as_given_and_only_the_named_fields_change(send: Send) -> None:
    types = ["order.placed", "pet.created", "order.placed"]
    wanted = {"url": URL, "types": types, "description": "é"}
    response = await send("POST", "/webhooks", json=wanted)
    created = response.json()
    assert response.headers.get_list("Location") == [f"{SERVICE_URL}/v1/webhooks/1"]
    assert response.headers["Cache-Control"] == "no-store"
    assert len(b64decode(created.pop("secret").removeprefix("whsec_"), validate=True)) == 32
    expected = WEBHOOK | {"types": ["pet.created", "order.placed"], "description": "é"}
    assert created == expected
    patches: tuple[dict[str, Any], ...] = (
        *({}, {"url": "https://shop.example/other", "id": 9}, {"types": []}),
        *({"description": None}, {"enabled": False}, {"enabled": True}),
    )
    for patch in patches:
        expected |= patch | {"id": 1}
        response = await send("PATCH", "/webhooks/1", json=patch)
        assert (response.status_code, response.json()) == (200, expected)
        assert (await send("GET", "/webhooks/1")).json() == expected
        assert (await send("GET", "/webhooks")).json() == [expected]


@pytest.mark.each_database
async def test_a_deleted_webhook_has_no_deliveries(service: Service, send: Send) -> None:
    await create(send)
    await add_deliveries(service.store, 1, "pending", "failed")
    assert (await send("DELETE", "/webhooks/1")).status_code == 204
    for method, path in (
        *(("GET", ""), ("DELETE", ""), ("GET", "/deliveries")),
        *(("POST", "/deliveries/1/retry"), ("POST", "/deliveries/2/retry")),
    ):
        assert_error(await send(method, f"/webhooks/1{path}"), 404, "not_found")
    assert await due_deliveries(service.store, 1, service.clock()) == []


# Secrets


@pytest.mark.each_database
async def test_a_rotated_secret_works_until_its_grace_period_ends(
    service: Service, send: Send
) -> None:
    created = await create(send)
    secrets = [created["secret"]]
    assert await secrets_of(service) == secrets
    for body, grace in ((None, 86_400), ({"graceSeconds": 604_800}, 604_800)):
        response = await send("POST", "/webhooks/1/rotate", json=body)
        assert response.status_code == 200
        secrets.append(response.json()["secret"])
        assert response.json() == created | {"secret": secrets[-1]}
        service.clock.advance(grace - 1)
        assert await secrets_of(service) == [secrets[-1], secrets[-2]]
        service.clock.advance(1)
        assert await secrets_of(service) == [secrets[-1]]
    response = await send("POST", "/webhooks/1/rotate", json={"graceSeconds": 0})
    secrets.append(response.json()["secret"])
    assert await secrets_of(service) == [secrets[-1]]
    await eventually(lambda: service.log.getvalue().count(b"rotateWebhook") == 3)
    assert len(set(secrets)) == 4
    assert not any(secret.encode() in service.log.getvalue() for secret in secrets)


async def secrets_of(service: Service) -> list[str]:
    path = service.settings.secret_path
    assert path is not None
    sql = "SELECT id, secret_version, previous_secret_ends_at FROM webhooks"
    ((webhook_id, version, ends_at),) = await rows(service, sql)
    master = master_of_text(path.read_bytes())
    secrets = webhook_secrets(master, webhook_id, version, ends_at, service.clock())
    return [secret_text(secret) for secret in secrets]


async def test_a_lost_master_secret_is_not_replaced_while_webhooks_exist(database: Path) -> None:
    secret = database.with_name(f"{database.name}.secret")
    async with running_service(database) as service:
        await create(await sender(service, scopes=frozenset(SCOPES)))
    secret.unlink()
    async with running_service(database) as service:
        send = await sender(service, scopes=frozenset(SCOPES))
        key = {"Idempotency-Key": "a"}
        response = await send("POST", "/webhooks", json={"url": URL}, headers=key)
        assert_error(response, 409, "webhooks_not_configured")
        assert not secret.exists()
        await service.store.write(do("DELETE FROM webhooks"))
        response = await send("POST", "/webhooks", json={"url": URL}, headers=key)
        assert response.status_code == 201  # such a refusal is not kept for retries
        assert secret.exists()


async def test_a_service_does_not_start_with_an_invalid_master_secret(database: Path) -> None:
    database.with_name(f"{database.name}.secret").touch(0o600)
    database.with_name(f"{database.name}.secret").write_text("x")
    with pytest.raises(SettingError, match=r"^secret-file: .*\.secret: expected one line, 32 "):
        async with running_service(database):
            pass


# Tests, deliveries, recoveries


@pytest.mark.each_database
async def test_deliveries_are_listed_newest_first(service: Service, send: Send) -> None:
    for _ in range(2):
        await create(send)
    await add_deliveries(service.store, 1, "succeeded", "failed", "pending")
    await add_deliveries(service.store, 2, "pending")
    first = await send("GET", "/webhooks/1/deliveries?limit=2")
    newest, second = first.json()
    assert newest == {
        "id": 3,
        "eventId": f"evt_{3:024x}",
        "type": "pet.created",
        "resource": "pet/7",
        "state": "pending",
        "attempts": 3,
        "createdAt": "2026-12-01T12:00:00.000Z",
        "lastAttemptAt": "2026-12-01T12:00:01.000Z",
        "nextAttemptAt": "2026-12-01T12:00:05.000Z",
        "responseStatus": 500,
        "responseBody": "no",
        "error": "not 2xx",
    }
    assert (second["id"], second["state"], second["nextAttemptAt"]) == (2, "failed", None)
    last = await send("GET", first.links["next"]["url"].removeprefix(f"{SERVICE_URL}/v1"))
    assert [each["id"] for each in last.json()] == [1]
    assert "Link" not in last.headers
    failed = await send("GET", "/webhooks/1/deliveries?state=failed")
    assert [each["id"] for each in failed.json()] == [2]
    assert "Link" not in (await send("GET", "/webhooks/1/deliveries?limit=3")).headers


async def test_a_recovery_is_left_to_the_deliverer(service: Service, send: Send) -> None:
    await create(send)
    await add_events(service.store, [NOW, NOW + SECOND])
    for since, recovered_to in (("2026-12-01T12:00:01Z", 1), ("0001-01-01T00:00:00Z", 0)):
        response = await send("POST", "/webhooks/1/recover", json={"since": since})
        assert (response.status_code, response.json()) == (202, WEBHOOK)
        assert await rows(service, "SELECT recovered_to FROM webhooks") == [(recovered_to,)]
    response = await send("POST", "/webhooks/1/recover", json={"since": "2026-12-24T10:00:00"})
    assert assert_error(response, 400, "invalid_body").startswith("since: expected a date and time")


async def test_a_delivery_can_be_sent_again(service: Service, send: Send) -> None:
    await create(send)
    await add_events(service.store, [NOW])
    await add_deliveries(service.store, 1, "failed")
    made = await send("POST", "/webhooks/1/deliveries/1/retry")
    assert made.status_code == 202
    (newest, failed) = (await send("GET", "/webhooks/1/deliveries")).json()
    assert newest == made.json()
    assert (newest["id"], newest["eventId"], newest["state"]) == (2, failed["eventId"], "pending")
    for unknown in ("9", "0", "x", "01", "9223372036854775808"):
        response = await send("POST", f"/webhooks/1/deliveries/{unknown}/retry")
        assert_error(response, 404, "not_found")


@pytest.mark.each_database
async def test_a_disabled_webhook_gets_no_retry(service: Service, send: Send) -> None:
    await create(send)
    await add_events(service.store, [NOW] * 8)
    await add_deliveries(service.store, 1, *["failed"] * 8)
    paths = [f"/webhooks/1/deliveries/{number}/retry" for number in range(1, 9)]
    requests = [send("POST", path) for path in paths]
    requests.insert(4, send("PATCH", "/webhooks/1", json={"enabled": False}))
    responses = await asyncio.gather(*requests)
    sent = sum(response.status_code == 202 for response in responses)
    assert {response.status_code for response in responses} <= {200, 202, 409}
    pending = "SELECT count(*) FROM webhook_deliveries WHERE state = 'pending'"
    assert await rows(service, pending) == [(sent,)]
