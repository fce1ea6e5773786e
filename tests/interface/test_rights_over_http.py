"""The bounds of an admin key: it cannot give more than it has, or end the last admin key."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from petstore.keys.model import DEFAULT_SCOPES, SCOPES, KeyWithToken
from support.cases import case
from support.error_body import assert_error
from support.history import published, told_of
from support.keys import change, revoke, rotate, stored_key
from support.service import Service, running_service

pytestmark = pytest.mark.anyio

ALL = frozenset(SCOPES)
ADMIN = frozenset({"keys:admin", "pets:read"})
HOUR = 3_600
ENDS = "2026-12-01T13:00:00Z"


@pytest.fixture
async def service(address: str) -> AsyncIterator[Service]:
    """A service that would notice changes made elsewhere after a minute only."""
    async with running_service(address, key_refresh_seconds=60) as service:
        yield service


@pytest.fixture
async def giver(service: Service) -> KeyWithToken:
    """Key 1: a key that manages keys, of the plan pro, which may read pets and ends in an hour."""
    return await service.issue("pro", scopes=ADMIN, expires_in=HOUR)


async def events(service: Service) -> int:
    """Return how many changes to keys were written down."""
    await published(service.store)
    return len(await told_of(service.store))


async def assert_refused(
    service: Service, method: str, path: str, token: str, body: Any = None
) -> str:
    """Check that a request exceeds the rights of its key, and changes nothing."""
    before = await events(service)
    response = await service.request(method, f"/v1/keys{path}", token, json=body)
    message = assert_error(response, 403, "beyond_own_rights")
    assert await events(service) == before
    return message


# Rights that have just ended; other processes learn of it in a moment


LOSSES: dict[str, Callable[..., Awaitable[object]]] = {
    "revoked": revoke,
    "rotated": rotate,
    "without the scope": partial(change, scopes=frozenset({"pets:read"})),
    "elsewhere": partial(change, allowed_networks=("192.0.2.0/24",)),
}


@pytest.mark.each_database
@pytest.mark.parametrize("lost", LOSSES)
async def test_a_key_that_just_lost_its_rights_cannot_change_keys(
    service: Service, lost: str
) -> None:
    giver, other = await service.issue(scopes=ALL), await service.issue(scopes=ALL)
    # It is in memory, where a change by the command line shows a moment later only.
    assert (await service.request("GET", "/v1/keys", giver.token)).status_code == 200
    await LOSSES[lost](service.store, service.clock, giver.id)
    before = await events(service)
    for method, path, body in [
        ("POST", "", {"name": "left behind"}),
        ("POST", "/1/rotate", None),
        ("POST", "/2/rotate", None),
        ("PATCH", "/2", {"name": "changed"}),
        ("DELETE", "/2", None),
    ]:
        with case(method, path):
            response = await service.request(method, f"/v1/keys{path}", giver.token, json=body)
            message = assert_error(response, 403, "missing_scope")
            assert message == "key 1 may no longer administer keys"
    assert await events(service) == before
    assert (await service.request("GET", "/v1/keys", other.token)).status_code == 200


# Giving; the rule is tested in keys/test_model.py


async def test_a_key_gives_no_more_than_it_has_as_it_creates_changes_or_rotates_another(
    service: Service, giver: KeyWithToken
) -> None:
    await service.issue(scopes=ALL)  # or the giver would be the last one
    weak = await service.issue("free", scopes=frozenset({"pets:read"}), expires_in=60)
    larger = await service.issue("pro", scopes=ADMIN)
    weakest = {"name": "till", "scopes": ["pets:read"], "expiresAt": ENDS}
    for method, path, body, field in [
        ("POST", "", {"name": "till"}, "scopes"),
        ("POST", "", {"name": "till", "scopes": ["pets:read"]}, "expiresAt"),
        ("POST", "", {**weakest, "plan": "business"}, "plan"),
        ("PATCH", f"/{weak.id}", {"scopes": ["pets:read", "orders:write"]}, "scopes"),
        (
            "PATCH",
            f"/{giver.id}",
            {"plan": "enterprise", "perMinute": 301, "perDay": 1},
            "perMinute",
        ),
        ("POST", f"/{larger.id}/rotate", None, "expiresAt"),
    ]:
        with case(method, path, body):
            message = await assert_refused(service, method, path, giver.token, body)
            assert message.startswith(f"{field}: your key cannot give ")
    for method, path, body in [
        ("POST", "", weakest),
        ("PATCH", f"/{weak.id}", {"plan": "pro", "expiresAt": ENDS}),
        ("POST", f"/{weak.id}/rotate", None),
        # To take something away needs no right to give it.
        ("PATCH", f"/{larger.id}", {"scopes": ["pets:read"]}),
        ("POST", f"/{larger.id}/unban", None),
        ("DELETE", f"/{larger.id}", None),
    ]:
        with case(method, path, body):
            response = await service.request(method, f"/v1/keys{path}", giver.token, json=body)
            assert response.is_success


# The last key that manages keys


NO_LONGER = [("DELETE", None), ("PATCH", {"scopes": ["pets:read"]})]
LAST: list[tuple[str, Any, dict[str, Any] | None]] = [
    *(
        (*how, other)
        for how in NO_LONGER
        for other in (
            None,
            {"expires_in": 1},
            {"revoked": True},
            {"environment": "staging"},
            {"scopes": frozenset(DEFAULT_SCOPES)},
            {"expires_in": HOUR},  # sooner than the last one
        )
    ),
    ("PATCH", {"expiresAt": "2026-12-01T12:00:02Z"}, None),
    ("PATCH", {"expiresAt": "2099-01-01T00:00:00Z"}, None),
]


@pytest.mark.each_database
@pytest.mark.parametrize(("method", "body", "other"), LAST)
async def test_the_last_admin_key_cannot_end(
    service: Service, method: str, body: Any, other: dict[str, Any] | None
) -> None:
    last = await service.issue(scopes=ALL)
    if other is not None:
        fields = {"scopes": ALL} | other
        is_revoked = fields.pop("revoked", False)
        second = await service.issue(**fields)
        if is_revoked:
            await revoke(service.store, service.clock, second.id)
    service.clock.advance(1)
    before = await events(service)
    response = await service.request(method, "/v1/keys/1", last.token, json=body)
    message = assert_error(response, 409, "last_admin_key")
    assert message.startswith("key 1 is the last one that can administer keys")
    assert await events(service) == before
    kept = await service.request("GET", "/v1/keys/1", last.token)
    assert kept.json()["expiresAt"] is None


@pytest.mark.parametrize(("method", "body"), NO_LONGER)
async def test_an_admin_key_can_end_while_another_lasts_as_long(
    service: Service, method: str, body: Any
) -> None:
    first, second, ended = [
        await service.issue(scopes=ALL, expires_in=seconds) for seconds in (HOUR, HOUR, 1)
    ]
    service.clock.advance(1)
    for key, is_left in ((ended, True), (first, True), (second, False)):
        response = await service.request(method, f"/v1/keys/{key.id}", second.token, json=body)
        assert response.is_success == is_left
    assert_error(response, 409, "last_admin_key")
    assert not (await service.request("GET", "/v1/keys", first.token)).is_success


@pytest.mark.parametrize("life", [None, HOUR])
async def test_other_changes_to_the_last_admin_key_are_allowed(
    service: Service, life: int | None
) -> None:
    last = await service.issue(scopes=ALL, expires_in=life)
    changes = {"name": "new", "plan": "pro", "scopes": ["keys:admin"]}
    changes |= {"expiresAt": ENDS} if life else {}
    response = await service.request("PATCH", "/v1/keys/1", last.token, json=changes)
    assert response.status_code == 200
    assert response.json()["scopes"] == ["keys:admin"]


async def test_the_command_line_can_end_even_the_last_admin_key(service: Service) -> None:
    last, another = await service.issue(scopes=ALL), await service.issue(scopes=ALL)
    await revoke(service.store, service.clock, another.id)
    await change(service.store, service.clock, last.id, scopes=frozenset({"pets:read"}))
    left = [await stored_key(service.store, key.id) for key in (last, another)]
    assert left[0].scopes == frozenset({"pets:read"})
    assert left[1].state(service.clock()) == "revoked"


@pytest.mark.each_database
@pytest.mark.parametrize(("method", "body"), NO_LONGER)
@pytest.mark.parametrize("count", [2, 5])
async def test_if_admin_keys_revoke_each_other_at_once_one_remains(
    service: Service, method: str, body: Any, count: int
) -> None:
    keys = [await service.issue(scopes=ALL) for _ in range(count)]
    for key in keys:  # all are in memory, so all get to the database
        assert (await service.request("GET", "/v1/keys", key.token)).status_code == 200
    responses = await asyncio.gather(
        *(
            service.request(method, f"/v1/keys/{key.id % count + 1}", key.token, json=body)
            for key in keys
        )
    )
    # Either it would have been the last, or it had been ended itself by then.
    refused = [response for response in responses if not response.is_success]
    assert {(response.status_code, response.json()["code"]) for response in refused} <= {
        (409, "last_admin_key"),
        (403, "missing_scope"),
    }
    managing = [
        key for key in keys if (await service.request("GET", "/v1/keys", key.token)).is_success
    ]
    assert len(managing) >= 1


async def test_only_a_caller_with_its_rights_can_reactivate_or_extend_a_key(
    service: Service, giver: KeyWithToken
) -> None:
    larger = await service.issue(scopes=ALL, expires_in=1)
    equal = await service.issue("pro", scopes=ADMIN, expires_in=1)
    with_another_scope = await service.issue(
        "free", scopes=frozenset({"pets:write"}), expires_in=60
    )
    service.clock.advance(1)
    for key in (larger, with_another_scope):
        await assert_refused(service, "PATCH", f"/{key.id}", giver.token, {"expiresAt": ENDS})
    for key, changes, state in [
        (larger, {"name": "old"}, "expired"),
        (equal, {"expiresAt": ENDS}, "active"),
        (with_another_scope, {"expiresAt": "2026-12-01T12:00:30Z"}, "active"),
    ]:
        path = f"/v1/keys/{key.id}"
        response = await service.request("PATCH", path, giver.token, json=changes)
        assert response.json()["state"] == state


async def test_an_expiring_token_cannot_grant_a_later_expiry_than_its_own(service: Service) -> None:
    old = await service.issue(scopes=ALL)
    path = f"/v1/keys/{old.id}"
    body = {"graceSeconds": HOUR}
    new = await service.request("POST", f"{path}/rotate", old.token, json=body)
    assert new.status_code == 200
    await assert_refused(service, "POST", f"/{old.id}/rotate", old.token)
    await assert_refused(service, "POST", "", old.token, {"name": "x", "scopes": ["pets:read"]})
    given = await service.request(
        "POST", "/v1/keys", old.token, json={"name": "x", "expiresAt": ENDS}
    )
    assert given.status_code == 201
    token = new.json()["token"]
    assert (await service.request("GET", "/v1/keys", token)).status_code == 200
