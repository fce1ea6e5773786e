"""The operations on keys, used with an admin key."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import apsw
import httpx
import pytest

from petstore.clock import DAY, SECOND, rfc3339
from petstore.keys.model import SCOPES, KeyWithToken, is_token
from petstore.keys.store import MAX_OWN_ROTATIONS
from support.cases import case
from support.error_body import assert_error
from support.history import told_of
from support.keys import change, revoke, rotate
from support.service import SERVICE_URL, Service, running_service

pytestmark = pytest.mark.anyio

BY_ID = [
    *(("GET", ""), ("PATCH", ""), ("DELETE", "")),
    *(("POST", "/rotate"), ("POST", "/unban"), ("GET", "/usage")),
]
NOON = "2026-12-01T12:00:00Z"


class Admin:
    """Manages the keys of a service with a key of its own, which is key 1 and may do all."""

    def __init__(self, service: Service, token: str) -> None:
        self.service = service
        self.token = token

    async def ask(self, method: str, path: str, body: Any = None, **options: Any) -> httpx.Response:
        """Send one request to ``/v1/keys`` and what is behind it."""
        if body is not None:
            options["json"] = body
        return await self.service.request(method, f"/v1/keys{path}", self.token, **options)

    async def create(self, **wanted: Any) -> dict[str, Any]:
        """Create a key, named till unless another name is wanted."""
        response = await self.ask("POST", "", {"name": "till", **wanted})
        assert response.status_code == 201, response.text
        created: dict[str, Any] = response.json()
        return created

    async def show(self, key_id: int) -> dict[str, Any]:
        response = await self.ask("GET", f"/{key_id}")
        assert response.status_code == 200, response.text
        key: dict[str, Any] = response.json()
        return key

    async def snapshot(self) -> list[Any]:
        """Return all keys, without their last use, and all that was done to them."""
        keys = (await self.ask("GET", "?limit=100")).json()
        return [{**key, "lastUsedAt": None} for key in keys] + await told_of(self.service.store)


async def administrator(service: Service) -> Admin:
    return Admin(service, (await service.issue(scopes=frozenset(SCOPES))).token)


@pytest.fixture
async def service(address: str) -> AsyncIterator[Service]:
    """A service that would notice changes made elsewhere after a minute only."""
    async with running_service(address, key_refresh_seconds=60, ban_strikes=1) as service:
        yield service


@pytest.fixture
async def admin(service: Service) -> Admin:
    return await administrator(service)


async def status(service: Service, token: str, path: str = "/v1/pets") -> int:
    return (await service.request("GET", path, token)).status_code


async def test_an_invalid_value_is_refused_naming_the_field(service: Service, admin: Admin) -> None:
    """All values that are refused without a clock are tested in ``test_model.py``."""
    await admin.create(plan="enterprise", perMinute=5)
    before = await admin.snapshot()
    last = service.clock() + 36_500 * DAY
    for field, value in (
        *(("plan", "gold"), ("allowedNetworks", ["10.0.0.1/8"]), ("expiresAt", NOON)),
        *(("expiresAt", "2026-12-01T11:59:59Z"), ("expiresAt", "0001-01-01T00:00:00+14:00")),
        ("expiresAt", rfc3339(last + SECOND)),
    ):
        for method, path, body in (("POST", "", {"name": "till"}), ("PATCH", "/2", {})):
            with case(method, field, value):
                response = await admin.ask(method, path, {**body, field: value})
                message = assert_error(response, 400, "invalid_body")
                assert message.startswith(f"{field}: expected ")
    response = await admin.ask("POST", "", {"plan": "free"})
    assert assert_error(response, 400, "invalid_body").startswith("name: required")
    assert await admin.snapshot() == before
    assert (await admin.create(expiresAt=rfc3339(last)))["expiresAt"] == rfc3339(last)


async def test_a_grace_period_that_is_not_a_number_of_seconds_is_refused(admin: Admin) -> None:
    await admin.create()
    graces = (-1, 1.5, "5", True, None, 3_153_600_001)
    for path, grace in product(("/2/rotate", "/current/rotate"), graces):
        with case(path, grace):
            response = await admin.ask("POST", path, {"graceSeconds": grace})
            message = assert_error(response, 400, "invalid_body")
            assert message.startswith("graceSeconds: expected an integer from 0 to 3153600000")


async def test_a_new_key_has_the_free_plan_and_every_scope_except_key_management(
    service: Service, admin: Admin
) -> None:
    response = await admin.ask("POST", "", {"name": "Till 2"})
    assert response.status_code == 201
    assert response.headers["Location"] == f"{SERVICE_URL}/v1/keys/2"
    created = response.json()
    token = created.pop("token")
    assert created == {
        "id": 2,
        "name": "Till 2",
        "plan": "free",
        "perMinute": 60,
        "perDay": 1000,
        "scopes": ["orders:read", "orders:write", "pets:read", "pets:write"],
        "allowedNetworks": [],
        "environment": "production",
        "tokenEnds": token[-4:],
        "state": "active",
        "bannedUntil": None,
        "createdAt": NOON,
        "expiresAt": None,
        "lastUsedAt": None,
    }
    assert is_token(token.encode(), "production")
    assert await admin.show(2) == created
    assert (await admin.ask("GET", "?name=2 till")).json() == [created]
    assert_error(await admin.ask("GET", "?name="), 400, "invalid_parameter")
    assert await status(service, token) == 200


@pytest.mark.each_database
async def test_a_new_key_has_the_requested_fields(service: Service, admin: Admin) -> None:
    wanted = {
        "name": "The shop \N{DOG FACE}",
        "plan": "enterprise",
        "perMinute": 5,
        "perDay": 70,
        "scopes": ["pets:read", "keys:admin", "pets:read"],
        "expiresAt": "2027-01-01T01:00:00.5+01:00",
        "allowedNetworks": ["2001:db8::/32", "192.0.2.7", "::ffff:192.0.2.7", "127.0.0.0/8"],
    }
    ignored = {"id": 70, "token": "mine", "state": "revoked", "colour": "red"}
    created = await admin.create(**wanted, **ignored)
    assert created == await admin.show(2) | {"token": created["token"]}
    assert created["id"] == 2
    assert created["state"] == "active"
    assert {name: created[name] for name in wanted} == {
        **wanted,
        "scopes": ["keys:admin", "pets:read"],
        "allowedNetworks": ["127.0.0.0/8", "192.0.2.7/32", "2001:db8::/32"],
        "expiresAt": "2027-01-01T00:00:00Z",
    }
    response = await service.request("GET", "/v1/pets", created["token"])
    assert response.headers["X-RateLimit-Limit"] == "5"


@pytest.mark.each_database
async def test_a_service_knows_only_keys_of_its_own_environment(address: str) -> None:
    async with running_service(address) as production:
        other = await production.issue()
    async with running_service(address, environment="staging") as staging:
        admin = await administrator(staging)
        created = await admin.create()
        assert created["environment"] == "staging"
        assert is_token(created["token"].encode(), "staging")
        assert await status(staging, created["token"]) == 200
        assert [key["id"] for key in (await admin.ask("GET", "")).json()] == [2, 3]
        for method, rest in BY_ID:
            with case(method, rest):
                response = await admin.ask(method, f"/{other.id}{rest}", {})
                assert assert_error(response, 404, "not_found") == f"there is no key {other.id}"


@pytest.mark.each_database
async def test_a_change_keeps_the_fields_that_it_does_not_name(admin: Admin) -> None:
    await admin.create(plan="enterprise", perMinute=5, perDay=70, expiresAt="2027-01-01T00:00:00Z")
    expected = await admin.show(2)
    ignored = {"id": 7, "state": "revoked", "colour": "red"}
    for body in (
        {},
        {"name": "new"},
        {"perMinute": 7},
        {"perMinute": None},
        {"perDay": None, "perMinute": 9},
        {"scopes": ["pets:read"]},
        {"expiresAt": None},
        {"expiresAt": "2026-12-01T12:00:01Z"},
        {"plan": "pro"},
    ):
        with case(body):
            limits = {"perMinute": 300, "perDay": 10_000} if "plan" in body else {}
            expected |= body | limits
            response = await admin.ask("PATCH", "/2", body | ignored)
            assert (response.status_code, response.json()) == (200, expected)
            assert await admin.show(2) == expected


async def test_a_change_of_scopes_or_networks_takes_effect_at_once(
    service: Service, admin: Admin
) -> None:
    token = (await admin.create(scopes=["orders:read"]))["token"]
    for wanted, expected in (
        ({}, 403),
        ({"scopes": ["pets:read"]}, 200),
        ({"allowedNetworks": [*ELSEWHERE]}, 403),
        ({"allowedNetworks": ["127.0.0.1/32"]}, 200),
        ({"allowedNetworks": []}, 200),
    ):
        changed = await admin.ask("PATCH", "/2", wanted)
        assert changed.json().items() >= wanted.items()
        assert await status(service, token) == expected


async def test_a_change_is_made_even_if_the_key_cache_cannot_be_refreshed(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[apsw.Connection] = []
    monkeypatch.setattr(apsw, "connection_hooks", [*apsw.connection_hooks, opened.append])
    async with running_service(database, key_refresh_seconds=60) as service:
        admin = await administrator(service)
        await admin.create()
        reader = opened[-1]
        reader.set_progress_handler(lambda: True, 1)  # whatever it reads is interrupted
        assert (await admin.ask("GET", "/2")).status_code == 503
        assert (await admin.ask("PATCH", "/2", {"name": "new"})).status_code == 200
        reader.set_progress_handler(None)
        assert (await admin.show(2))["name"] == "new"


@pytest.mark.each_database
async def test_an_administrator_sees_the_usage_of_a_key(service: Service, admin: Admin) -> None:
    other = await service.issue("enterprise", per_minute=2, per_day=9)
    for _ in range(3):
        await service.request("GET", "/v1/pets", other.token)
    await service.limiter.save()
    await service.app.services.counter.save()
    own = (await service.request("GET", "/v1/usage", other.token)).json()
    before = await admin.show(other.id)
    usage = (await admin.ask("GET", f"/{other.id}/usage")).json()
    assert usage == own
    assert usage["day"]["remaining"] == 7
    assert [each["requests"] for each in usage["refused"]] == [1]
    assert await admin.show(other.id) == before  # nobody has used it
    clerk = await service.issue("enterprise")
    refused = await service.request("GET", f"/v1/keys/{other.id}/usage", clerk.token)
    assert_error(refused, 403, "missing_scope")


async def test_a_revoked_key_is_refused_for_good(service: Service, admin: Admin) -> None:
    old = (await admin.create())["token"]
    new = (await admin.ask("POST", "/2/rotate", {"graceSeconds": 60})).json()["token"]
    assert [await status(service, token) for token in (old, new)] == [200, 200]
    response = await admin.ask("DELETE", "/2")
    assert (response.status_code, response.content) == (204, b"")
    changed = await admin.ask("PATCH", "/2", {"name": "new", "expiresAt": "2027-01-01T00:00:00Z"})
    assert (changed.status_code, changed.json()["state"]) == (200, "revoked")
    assert (await admin.ask("POST", "/2/unban")).status_code == 204
    for token in (old, new):
        response = await service.request("GET", "/v1/pets", token)
        assert_error(response, 401, "invalid_api_key")
    assert (await admin.show(2))["state"] == "revoked"


@pytest.mark.each_database
async def test_a_ban_shows_and_can_be_lifted_at_once(service: Service, admin: Admin) -> None:
    token = (await admin.create(plan="enterprise", perMinute=1))["token"]
    assert [await status(service, token) for _ in range(2)] == [200, 429]
    service.clock.advance(2)
    assert_error(await service.request("GET", "/v1/pets", token), 429, "api_key_banned")
    await service.limiter.save()
    banned = await admin.show(2)
    assert (banned["state"], banned["bannedUntil"]) == ("active", "2026-12-01T12:05:02Z")
    service.clock.advance(60)
    assert_error(await service.request("GET", "/v1/pets", token), 429, "api_key_banned")
    response = await admin.ask("POST", "/2/unban")
    assert (response.status_code, response.content) == (204, b"")
    assert (await admin.show(2))["bannedUntil"] is None
    assert await status(service, token) == 200


async def test_no_token_is_shown_again_or_is_in_the_log_or_the_database(
    service: Service, admin: Admin, database: Path
) -> None:
    retry = {"Idempotency-Key": "once"}
    created = await admin.ask("POST", "", {"name": "till 2"}, headers=retry)
    again = await admin.ask("POST", "", {"name": "till 2"}, headers=retry)
    assert_error(again, 409, "secret_already_shown")
    retry = {"Idempotency-Key": "twice"}
    rotated = await admin.ask("POST", "/2/rotate", {"graceSeconds": 60}, headers=retry)
    tokens = [admin.token, created.json()["token"], rotated.json()["token"]]
    for token in tokens:
        await service.request("GET", "/v1/pets", token)
        await service.request("GET", "/v1/pets", token, params={"key": token})
        await service.request("GET", "/v1/pets", f"{token[:-1]}_")
    shown = [
        await admin.ask("GET", ""),
        await admin.ask("GET", "/2"),
        await admin.ask("PATCH", "/2", {"plan": "pro"}),
        await service.request("GET", "/v1/events?resource=key/2", admin.token),
    ]
    assert [response.status_code for response in shown] == [200] * 4
    texts = "".join(response.text for response in shown)
    assert '"token"' not in texts
    await revoke(service.store, service.clock, 2)
    await service.limiter.save()
    stored = b"".join(file.read_bytes() for file in database.parent.glob("petstore.db*"))
    assert b"till 2" in stored
    for token in tokens:
        secret = token.removeprefix("ps_live_")[:32].encode()
        assert secret not in stored + service.log.getvalue() + texts.encode()


# Keys that may be used from some networks alone


ELSEWHERE = ("192.0.2.0/24",)


async def list_pets(service: Service, token: str, client: str | None = None) -> httpx.Response:
    """List pets as ``client``, whose address a proxy passes on."""
    headers = {} if client is None else {"X-Forwarded-For": client}
    return await service.request("GET", "/v1/pets", token, headers=headers)


async def test_a_key_is_refused_outside_its_networks_whatever_it_requests(service: Service) -> None:
    key = await service.issue(scopes=frozenset(SCOPES), allowed_networks=ELSEWHERE)
    for method, path in (
        *(("GET", "/v1/pets"), ("GET", "/v1/pets"), ("POST", "/v1/pets")),  # from memory, too
        *(("GET", "/v1/usage"), ("GET", "/v1/nothing"), ("POST", "/v1/keys/current/rotate")),
    ):
        response = await service.request(method, path, key.token)
        message = assert_error(response, 403, "network_not_allowed")
        assert "127.0.0.1" in message
        assert "192.0.2" not in message


async def test_the_client_behind_trusted_proxies_is_checked_before_the_limits_of_the_key(
    database: Path,
) -> None:
    async with running_service(database, trusted_proxy=["127.0.0.1"]) as service:
        networks = ("192.0.2.0/24", "2001:db8::/32")
        key = await service.issue(per_minute=1, allowed_networks=networks)
        for _ in range(50):
            service.clock.advance(0.5)
            await list_pets(service, key.token)
        for client, expected in (
            *(("192.0.2.7", 200), ("::ffff:192.0.2.7", 429), ("192.0.3.7", 403)),
            *(("2001:db8::7", 429), ("2001:db9::7", 403), (None, 403), ("127.0.0.1", 403)),
        ):
            with case(client):
                response = await list_pets(service, key.token, client)
                assert response.status_code == expected
        headers = {"X-Forwarded-For": "192.0.2.7"}
        usage = (await service.request("GET", "/v1/usage", key.token, headers=headers)).json()
        assert usage["day"]["remaining"] == usage["day"]["limit"]
        assert sum(day["requests"] for day in usage["days"]) == 1


async def test_a_refusal_counts_against_the_address(database: Path) -> None:
    async with running_service(database, anonymous_per_minute=3) as service:
        key = await service.issue(allowed_networks=ELSEWHERE)
        other = await service.issue()
        for left in (2, 1, 0):
            response = await list_pets(service, key.token)
            assert_error(response, 403, "network_not_allowed")
            assert response.headers["X-RateLimit-Limit"] == "3"
            assert response.headers["X-RateLimit-Remaining"] == str(left)
        response = await list_pets(service, key.token)
        message = assert_error(response, 429, "rate_limit_exceeded")
        assert message.startswith("the limit of this address without a valid key, ")
        assert response.headers["Retry-After"] == "60"
        assert (await list_pets(service, other.token)).status_code == 200


async def test_the_last_admin_key_cannot_exclude_its_own_address(
    service: Service, admin: Admin
) -> None:
    away = {"allowedNetworks": [*ELSEWHERE]}
    assert_error(await admin.ask("PATCH", "/1", away), 409, "last_admin_key")
    near = {"allowedNetworks": [*ELSEWHERE, "127.0.0.1"]}
    assert (await admin.ask("PATCH", "/1", near)).status_code == 200
    await service.issue(scopes=frozenset(SCOPES))
    assert (await admin.ask("PATCH", "/1", away)).status_code == 200
    assert_error(await admin.ask("GET", ""), 403, "network_not_allowed")


# A key rotates itself: its owner needs the newest token, and nothing else


FOR_AN_HOUR = {"graceSeconds": 3600}
A_NAME = {"Idempotency-Key": "a"}
FROM_NOON = 12 * 3600


async def rotate_own(service: Service, token: str, **options: Any) -> httpx.Response:
    return await service.request("POST", "/v1/keys/current/rotate", token, **options)


async def new_token(service: Service, token: str, **options: Any) -> str:
    response = await rotate_own(service, token, **options)
    assert response.status_code == 200, response.text
    return str(response.json()["token"])


async def statuses(service: Service, *tokens: str) -> Sequence[int]:
    return [(await service.request("GET", "/v1/usage", each)).status_code for each in tokens]


async def rotations(service: Service, key_id: int) -> Sequence[str]:
    """Return who has rotated a key."""
    admin = await service.issue(scopes=frozenset({"keys:admin"}))
    query = {"limit": 100, "resource": f"key/{key_id}", "type": "key.rotated", "sort": "-sequence"}
    found = (await service.request("GET", "/v1/events", admin.token, params=query)).json()
    return ["{type} {id}".format(**event["actor"]) for event in found]


@pytest.fixture
async def owner(service: Service) -> KeyWithToken:
    """The key of an owner, which has no scope."""
    return await service.issue(scopes=frozenset())


@pytest.mark.each_database
@pytest.mark.parametrize("grace", [3600, 3_153_600_000])
async def test_a_leaked_old_token_cannot_lock_the_owner_out_in_its_grace_period(
    service: Service, grace: int
) -> None:
    # A grace period beyond the end of the key leaves the old token all the life that the key has.
    owner = await service.issue(expires_in=7200)
    new = await new_token(service, owner.token, json={"graceSeconds": grace})
    assert await statuses(service, owner.token, new) == [200, 200]
    for body in ({}, {"graceSeconds": 60}):
        message = assert_error(
            await rotate_own(service, owner.token, json=body), 403, "beyond_own_rights"
        )
        assert "this token was replaced; use the newest token" in message
    assert await statuses(service, owner.token, new) == [200, 200]
    assert await rotations(service, owner.id) == [f"key {owner.id}"]


@pytest.mark.parametrize("ends", ["rotated", "revoked", "elsewhere"])
async def test_a_rotation_by_a_token_that_just_ended_is_refused(address: str, ends: str) -> None:
    async with running_service(address, key_refresh_seconds=60) as service:
        owner = await service.issue(scopes=frozenset())
        # In memory from now on, as it was.
        assert await statuses(service, owner.token) == [200]
        if ends == "rotated":
            await rotate(service.store, service.clock, owner.id)
        elif ends == "revoked":
            await revoke(service.store, service.clock, owner.id)
        else:
            networks = ("203.0.113.0/24",)
            await change(service.store, service.clock, owner.id, allowed_networks=networks)
        refused = await rotate_own(service, owner.token)
        if ends == "elsewhere":
            assert_error(refused, 403, "network_not_allowed")
        else:
            assert_error(refused, 401, "invalid_api_key")
            assert "invalid_token" in refused.headers["WWW-Authenticate"]


@pytest.mark.each_database
@pytest.mark.parametrize("options", [{}, {"json": {}}, {"json": {"graceSeconds": 0}}])
async def test_a_key_without_scopes_rotates_itself_and_its_old_token_ends_at_once(
    service: Service, owner: KeyWithToken, options: dict[str, Any]
) -> None:
    response = await rotate_own(service, owner.token, **options)
    assert (response.status_code, response.headers["Cache-Control"]) == (200, "no-store")
    rotated = response.json()
    assert (rotated["id"], rotated["scopes"]) == (owner.id, [])
    assert is_token(rotated["token"].encode(), "production")
    assert await statuses(service, owner.token, rotated["token"]) == [401, 200]
    assert await rotations(service, owner.id) == [f"key {owner.id}"]


@pytest.mark.each_database
async def test_a_key_rotates_itself_five_times_a_day_whatever_others_do_and_is_refused(
    service: Service, owner: KeyWithToken
) -> None:
    for _ in range(MAX_OWN_ROTATIONS):
        old = (await rotate(service.store, service.clock, owner.id)).token
    service.clock.advance(0.001)
    token = await new_token(service, old, json=FOR_AN_HOUR, headers=A_NAME)
    for _ in range(MAX_OWN_ROTATIONS):
        replayed = await rotate_own(service, old, json=FOR_AN_HOUR, headers=A_NAME)
        assert_error(replayed, 409, "secret_already_shown")
        assert (await rotate_own(service, old)).status_code == 403
    replayed = await rotate_own(service, token, json=FOR_AN_HOUR, headers=A_NAME)
    message = assert_error(replayed, 409, "secret_already_shown")
    assert message.startswith(f"the first request rotated key {owner.id} ")
    assert token not in replayed.text
    for _ in range(MAX_OWN_ROTATIONS - 1):
        token = await new_token(service, token)
    refused = await rotate_own(service, token)
    message = assert_error(refused, 429, "too_many_rotations")
    assert message == (
        "this key has rotated itself 5 times today, the maximum: wait 43200 seconds, or ask an"
        " administrator of the keys"
    )
    assert refused.headers["Retry-After"] == str(FROM_NOON)
    assert await statuses(service, token) == [200]
    service.clock.advance(FROM_NOON - 0.002)
    assert (await rotate_own(service, token)).headers["Retry-After"] == "1"
    service.clock.advance(0.001)
    assert await statuses(service, await new_token(service, token)) == [200]


@pytest.fixture
async def beside(address: str, service: Service) -> AsyncIterator[Service]:
    """Another process of the same service."""
    async with running_service(address, service.clock) as other:
        yield other


@pytest.mark.each_database
async def test_of_concurrent_rotations_by_two_processes_one_succeeds(
    service: Service, beside: Service, owner: KeyWithToken
) -> None:
    for each in (service, beside):
        assert await statuses(each, owner.token) == [200]
    responses = await asyncio.gather(
        *(rotate_own(each, owner.token, json=FOR_AN_HOUR) for each in 10 * (service, beside))
    )
    assert sorted(each.status_code for each in responses) == [200, *[403] * 19]
    (token,) = [each.json()["token"] for each in responses if each.is_success]
    assert await statuses(service, token) == [200]
    assert await rotations(service, owner.id) == [f"key {owner.id}"]
