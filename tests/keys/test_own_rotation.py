"""A key rotates itself: its owner needs the newest token, and nothing else."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx
import pytest

from petstore.clock import MINUTE
from petstore.keys.model import KeyWithToken, is_token
from petstore.keys.store import MAX_OWN_ROTATIONS
from support.error_body import assert_error
from support.keys import change, revoke, rotate
from support.service import Service, running_service

pytestmark = pytest.mark.anyio

FOR_AN_HOUR = {"graceSeconds": 3600}
A_NAME = {"Idempotency-Key": "a"}
FROM_NOON = 12 * 3600


async def rotate_own(service: Service, token: str, **options: Any) -> httpx.Response:
    return await service.request("POST", "/v1/keys/current/rotate", token, **options)


async def new_token(service: Service, token: str, **options: Any) -> str:
    response = await rotate_own(service, token, **options)
    assert response.status_code == 200, response.text
    return str(response.json()["token"])


async def rotate_often(service: Service, token: str) -> str:
    """Rotate a key as often as it may on one day, and return its last token."""
    for _ in range(MAX_OWN_ROTATIONS):
        token = await new_token(service, token)
    return token


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


# Who may


async def test_nobody_rotates_without_a_valid_token(service: Service, owner: KeyWithToken) -> None:
    nobody = await service.request("POST", "/v1/keys/current/rotate")
    assert_error(nobody, 401, "missing_api_key")
    await revoke(service.store, service.clock, owner.id)
    await service.status_becomes(owner.token, 401)
    assert_error(await rotate_own(service, owner.token), 401, "invalid_api_key")


async def test_a_key_rotates_itself_only_from_its_networks(service: Service) -> None:
    owner = await service.issue(allowed_networks=("203.0.113.0/24",))
    assert_error(await rotate_own(service, owner.token), 403, "network_not_allowed")
    assert await rotations(service, owner.id) == []


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


async def test_a_token_that_an_administrator_has_replaced_cannot_rotate(
    service: Service, owner: KeyWithToken
) -> None:
    await rotate(service.store, service.clock, owner.id, 60 * MINUTE)
    assert_error(await rotate_own(service, owner.token), 403, "beyond_own_rights")


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


# What it does


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


# How often


@pytest.mark.each_database
async def test_a_key_rotates_itself_five_times_a_day(service: Service, owner: KeyWithToken) -> None:
    service.clock.advance(0.001)
    last = await rotate_often(service, owner.token)
    refused = await rotate_own(service, last)
    message = assert_error(refused, 429, "too_many_rotations")
    assert message == (
        "this key has rotated itself 5 times today, the maximum: wait 43200 seconds, or ask an"
        " administrator of the keys"
    )
    assert refused.headers["Retry-After"] == str(FROM_NOON)
    assert await statuses(service, last) == [200]
    service.clock.advance(FROM_NOON - 0.002)
    assert (await rotate_own(service, last)).headers["Retry-After"] == "1"
    service.clock.advance(0.001)
    assert await statuses(service, await new_token(service, last)) == [200]


async def test_refused_and_replayed_rotations_do_not_count(
    service: Service, owner: KeyWithToken
) -> None:
    token = await new_token(service, owner.token, json=FOR_AN_HOUR, headers=A_NAME)
    for _ in range(MAX_OWN_ROTATIONS):
        replayed = await rotate_own(service, owner.token, json=FOR_AN_HOUR, headers=A_NAME)
        assert_error(replayed, 409, "secret_already_shown")
        assert (await rotate_own(service, owner.token)).status_code == 403
    for _ in range(MAX_OWN_ROTATIONS - 1):
        token = await new_token(service, token)
    assert_error(await rotate_own(service, token), 429, "too_many_rotations")


@pytest.mark.each_database
async def test_a_thousand_rotations_in_the_history_are_in_nobodys_way(
    service: Service, owner: KeyWithToken
) -> None:
    token = owner.token
    for _ in range(1000):
        token = (await rotate(service.store, service.clock, owner.id)).token
    await service.status_becomes(owner.token, 401, "/v1/usage")
    assert await statuses(service, await rotate_often(service, token)) == [200]


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


# Safe retries


@pytest.mark.each_database
async def test_a_retry_neither_rotates_nor_shows(service: Service, owner: KeyWithToken) -> None:
    second = await new_token(service, owner.token, json=FOR_AN_HOUR, headers=A_NAME)
    for token in (owner.token, second):
        again = await rotate_own(service, token, json=FOR_AN_HOUR, headers=A_NAME)
        message = assert_error(again, 409, "secret_already_shown")
        assert message.startswith(f"the first request rotated key {owner.id} ")
        assert second not in again.text
    assert await rotations(service, owner.id) == [f"key {owner.id}"]
    stranger = await service.issue()
    own = await rotate_own(service, stranger.token, json=FOR_AN_HOUR, headers=A_NAME)
    assert own.json()["id"] == stranger.id
