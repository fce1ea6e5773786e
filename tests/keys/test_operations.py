"""The operations on keys, used with an admin key."""

from collections.abc import AsyncIterator
from itertools import product
from pathlib import Path
from typing import Any

import apsw
import httpx
import pytest

from petstore.clock import DAY, SECOND, rfc3339
from petstore.keys.model import SCOPES, is_token
from support.cases import case
from support.error_body import assert_error
from support.history import told_of
from support.keys import revoke
from support.service import SERVICE_URL, Service, running_service
from support.stores import do

pytestmark = pytest.mark.anyio

DEFAULT_SCOPES = ["orders:read", "orders:write", "pets:read", "pets:write"]
BY_ID = [
    ("GET", ""),
    ("PATCH", ""),
    ("DELETE", ""),
    ("POST", "/rotate"),
    ("POST", "/unban"),
    ("GET", "/usage"),
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


# Refusals; each operation needs keys:admin in test_openapi.py


BAD_VALUES: dict[str, list[Any]] = {
    "name": ["", "   ", "n" * 101, "two\nlines", "\x1b[31m", "\u202e", 7, None],
    "plan": ["gold", "", "Free", 1, None],
    "perMinute": [0, -1, 2_147_483_647, 1.5, "5", True, []],
    "perDay": [0, -1, 2_147_483_647, 1.5, "5", True, []],
    "scopes": [[], ["pets"], ["pets:read", "all"], "pets:read", [1], {}, None],
    "expiresAt": [
        "soon",
        "2026-12-24",
        "2026-12-24T10:00:00",
        "2026-13-24T10:00:00Z",
        "2026-12-01T11:59:59Z",
        NOON,
        "2126-12-01T12:00:00Z",
        "0001-01-01T00:00:00+14:00",
        1_796_126_400,
        True,
    ],
    "allowedNetworks": [
        *("10.0.0.0/8", [7], {}, None, ["here"], [""], ["10.0.0.0/"], ["10.0.0.0/33"]),
        *(["10.0.0.1/8"], ["2001:db8::1/32"], ["10.0.0.0/255.0.0.0"], ["fe80::%eth0/64"]),
        *(
            ["10.0.0.0/8 "],
            ["1.2.3"],
            ["\N{SUPERSCRIPT TWO}.0.0.0"],
            [f"10.0.0.{n}" for n in range(33)],
        ),
    ],
}


@pytest.mark.parametrize(("field", "values"), BAD_VALUES.items(), ids=BAD_VALUES)
async def test_an_invalid_value_is_refused_naming_the_field(
    admin: Admin, field: str, values: list[Any]
) -> None:
    await admin.create(plan="enterprise", perMinute=5)
    before = await admin.snapshot()
    response = await admin.ask("POST", "", {"plan": "free"})
    assert assert_error(response, 400, "invalid_body").startswith("name: required")
    for method, path, body in (
        ("POST", "", {"name": "till", "plan": "enterprise"}),
        ("PATCH", "/2", {}),
    ):
        for value in values:
            with case(method, value):
                response = await admin.ask(method, path, {**body, field: value})
                message = assert_error(response, 400, "invalid_body")
                assert message.startswith(field)
                assert "expected" in message
    assert await admin.snapshot() == before


async def test_a_grace_period_that_is_not_a_number_of_seconds_is_refused(admin: Admin) -> None:
    await admin.create()
    graces = (-1, 1.5, "5", True, None, 3_153_600_001)
    for path, grace in product(("/2/rotate", "/current/rotate"), graces):
        with case(path, grace):
            response = await admin.ask("POST", path, {"graceSeconds": grace})
            message = assert_error(response, 400, "invalid_body")
            assert message.startswith("graceSeconds: expected an integer from 0 to 3153600000")


@pytest.mark.each_database
async def test_a_key_of_the_other_environment_is_not_found(service: Service, admin: Admin) -> None:
    other = await service.issue(environment="staging")
    for method, rest in BY_ID:
        with case(method, rest):
            response = await admin.ask(method, f"/{other.id}{rest}", {})
            assert assert_error(response, 404, "not_found") == f"there is no key {other.id}"
    assert [key["id"] for key in (await admin.ask("GET", "")).json()] == [1]


# Creating


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
        "scopes": DEFAULT_SCOPES,
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
    assert await status(service, token) == 200
    assert await admin.show(2) == created


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


async def test_an_expiry_can_be_at_most_a_hundred_years_away(
    service: Service, admin: Admin
) -> None:
    last = service.clock() + 36_500 * DAY
    assert (await admin.create(expiresAt=rfc3339(last)))["expiresAt"] == rfc3339(last)
    response = await admin.ask("POST", "", {"name": "till", "expiresAt": rfc3339(last + SECOND)})
    assert_error(response, 400, "invalid_body")


@pytest.mark.each_database
async def test_a_service_creates_and_lists_only_keys_of_its_own_environment(address: str) -> None:
    async with running_service(address) as production:
        await production.issue()
    async with running_service(address, environment="staging") as staging:
        admin = Admin(staging, (await staging.issue(scopes=frozenset(SCOPES))).token)
        created = await admin.create()
        assert created["environment"] == "staging"
        assert is_token(created["token"].encode(), "staging")
        assert await status(staging, created["token"]) == 200
        assert [key["id"] for key in (await admin.ask("GET", "")).json()] == [2, 3]


# Seeing


async def test_no_token_is_shown_again(admin: Admin) -> None:
    created = await admin.create()
    rotated = (await admin.ask("POST", "/2/rotate")).json()
    for response in (
        await admin.ask("GET", ""),
        await admin.ask("GET", "/2"),
        await admin.ask("PATCH", "/2", {"name": "new"}),
        await admin.service.request("GET", "/v1/events?resource=key/2", admin.token),
    ):
        assert response.status_code == 200
        assert '"token"' not in response.text
        for token in (created["token"], rotated["token"], admin.token):
            assert token.removeprefix("ps_live_") not in response.text


@pytest.mark.each_database
async def test_a_use_of_the_console_is_the_last_use_and_makes_another_version(
    service: Service, admin: Admin
) -> None:
    await admin.create()
    before = (await admin.ask("GET", "/2")).headers["ETag"]
    seen = "UPDATE callers SET seen_at = ?1 WHERE id = 2"
    await service.store.write(do(seen, service.clock() + 999))
    response = await admin.ask("GET", "/2")
    assert response.json()["lastUsedAt"] == NOON
    assert response.headers["ETag"] != before
    old, current = {"If-Match": before}, {"If-Match": response.headers["ETag"]}
    refused = await admin.ask("PATCH", "/2", {"name": "new"}, headers=old)
    assert_error(refused, 412, "precondition_failed")
    changed = await admin.ask("PATCH", "/2", {"name": "new"}, headers=current)
    assert changed.json()["lastUsedAt"] == NOON


# Changing


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


async def test_a_change_of_scopes_takes_effect_at_once(service: Service, admin: Admin) -> None:
    token = (await admin.create(scopes=["orders:read"]))["token"]
    assert await status(service, token) == 403
    await admin.ask("PATCH", "/2", {"scopes": ["pets:read"]})
    assert await status(service, token) == 200


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


# Rotating


@pytest.mark.parametrize("body", [None, {"graceSeconds": 0}])
async def test_a_rotation_ends_the_old_token_at_once(
    service: Service, admin: Admin, body: dict[str, int] | None
) -> None:
    created = await admin.create(plan="enterprise", perMinute=50)
    old = created.pop("token")
    response = await service.request("GET", "/v1/pets", old)
    assert response.headers["X-RateLimit-Remaining"] == "49"
    response = await admin.ask("POST", "/2/rotate", body)
    assert response.status_code == 200
    rotated = response.json()
    new = rotated.pop("token")
    assert {**rotated, "lastUsedAt": None} == created | {"tokenEnds": new[-4:]}
    assert is_token(new.encode(), "production")
    assert await status(service, old) == 401
    response = await service.request("GET", "/v1/pets", new)
    assert response.headers["X-RateLimit-Remaining"] == "48"


async def test_keys_are_listed_by_name(admin: Admin) -> None:
    await admin.create(name="Kennel bot")
    found = await admin.ask("GET", "?name=bot kennel")
    assert [key["id"] for key in found.json()] == [2]
    assert_error(await admin.ask("GET", "?name="), 400, "invalid_parameter")


@pytest.mark.each_database
async def test_an_administrator_sees_the_usage_of_a_key(service: Service, admin: Admin) -> None:
    other = await service.issue("enterprise", per_minute=2, per_day=9)
    for _ in range(3):
        await service.request("GET", "/v1/pets", other.token)
    await service.limiter.save()
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


# Revoking and unbanning


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


# Secrets


async def test_no_token_is_in_the_log_or_the_database(
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
    await revoke(service.store, service.clock, 2)
    await service.limiter.save()
    stored = b"".join(file.read_bytes() for file in database.parent.glob("petstore.db*"))
    assert b"till 2" in stored
    for token in tokens:
        secret = token.removeprefix("ps_live_")[:32].encode()
        assert secret not in stored
        assert secret not in service.log.getvalue()
