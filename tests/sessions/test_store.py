"""Sessions of the console and links, on each database."""

import asyncio
from hashlib import sha256
from typing import Any

import pytest

from petstore.clock import DAY, MINUTE, SECOND, Milliseconds
from petstore.databases.contract import Statement, Store
from petstore.databases.retention import prune_all
from petstore.errors import BeyondOwnRights, KeyEnded, NotFound
from petstore.keys.model import Caller, KeyWithToken
from petstore.people.model import INVITATION_LIFE
from petstore.sessions.store import (
    IDLE,
    LINK_LIFE,
    LONGEST,
    MAX_SESSIONS,
    STAYS,
    Browser,
    Device,
    Session,
    SessionEnd,
    create_link,
    end_device,
    end_session,
    end_sessions,
    find_session,
    list_devices,
    open_session,
    rebind_session,
    seal,
    touch_session,
    use_link,
)
from support.keys import change, issue, issue_stored, revoke, rotate, stored_key
from support.manual_clock import ManualClock
from support.retention import DAYS_KEPT
from support.stores import do

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]


@pytest.fixture
async def issued(store: Store, clock: ManualClock) -> KeyWithToken:
    return await issue(store, clock)


@pytest.fixture
async def key(store: Store, issued: KeyWithToken) -> Caller:
    return await stored_key(store, issued.id)


@pytest.fixture
def token(issued: KeyWithToken) -> bytes:
    return issued.token.encode("ascii")


async def linked(
    store: Store, clock: ManualClock, key_id: int, maker: Session | None = None
) -> str:
    """Return the secret of a session that a link has begun."""
    link = await store.write(create_link(key_id, clock(), maker))
    secret = await store.write(use_link(link, "production", clock()))
    assert secret is not None
    return secret


async def find(store: Store, secret: str, clock: ManualClock) -> Session | SessionEnd | None:
    return await find_session(store, secret, "production", clock())


async def found(store: Store, secret: str, clock: ManualClock) -> Session | None:
    session = await find(store, secret, clock)
    return session if isinstance(session, Session) else None


async def count(store: Store, table: str) -> int:
    ((rows,),) = await store.read(Statement(f"SELECT count(*) FROM {table}"))  # noqa: S608
    assert isinstance(rows, int)
    return rows


async def add_sessions(
    store: Store, key: Caller, numbers: range, created_at: Milliseconds, used_at: Milliseconds
) -> None:
    """Add sessions of a key at once, each with a number of its own."""
    await store.write(
        do(
            "WITH RECURSIVE n (i) AS"
            " (SELECT CAST(?5 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < ?2)"
            " INSERT INTO console_sessions (digest, key_id, created_at, used_at)"
            " SELECT /*pg int8send(i) -- */ CAST(i AS BLOB)\n, ?1, ?3, ?4 FROM n",
            key.id,
            numbers[-1],
            created_at,
            used_at,
            numbers[0],
        )
    )


async def test_a_session_is_found_only_by_its_secret(
    store: Store, clock: ManualClock, key: Caller, token: bytes
) -> None:
    secret = await store.write(open_session(key.id, token, clock()))
    session = await found(store, secret, clock)
    assert session is not None
    assert (session.caller, session.created_at) == (key, clock())
    for wrong in ("", secret[:-1], session.digest.hex(), "\ud800"):
        assert await found(store, wrong, clock) is None


async def test_the_store_has_a_digest_and_not_the_secret(
    store: Store, clock: ManualClock, key: Caller, token: bytes
) -> None:
    secret = await store.write(open_session(key.id, token, clock()))
    link = await store.write(create_link(key.id, clock()))
    for table in ("console_sessions", "console_links"):
        rows = repr(await store.read(Statement(f"SELECT * FROM {table}")))  # noqa: S608
        assert secret not in rows
        assert link not in rows


async def test_a_session_is_for_one_environment(
    store: Store, clock: ManualClock, key: Caller, token: bytes
) -> None:
    secret = await store.write(open_session(key.id, token, clock()))
    assert await find_session(store, secret, "staging", clock()) is None


async def test_each_use_extends_a_session_up_to_its_maximum_lifetime(
    store: Store, clock: ManualClock, key: Caller, token: bytes
) -> None:
    started = clock()
    secret = await store.write(open_session(key.id, token, started))
    while (session := await found(store, secret, clock)) is not None:
        await store.write(touch_session(session, clock()))
        clock.now += IDLE - 1
    assert started + LONGEST <= clock() < started + LONGEST + IDLE
    clock.now = started + LONGEST - 1
    assert await found(store, secret, clock) is not None


async def test_a_use_is_written_at_most_once_a_minute(
    store: Store, clock: ManualClock, key: Caller, token: bytes
) -> None:
    session = await found(store, await store.write(open_session(key.id, token, clock())), clock)
    assert session is not None
    assert not session.needs_touch(clock() + MINUTE - 1)
    assert session.needs_touch(clock() + MINUTE)


async def test_a_session_ends_no_later_than_its_token_and_its_key(
    store: Store, clock: ManualClock
) -> None:
    issued = await issue(store, clock)
    secret = await store.write(open_session(issued.id, issued.token.encode(), clock()))
    after = await rotate(store, clock, issued.id, grace=5 * MINUTE)
    with_new = await store.write(open_session(issued.id, after.token.encode(), clock()))
    session = await found(store, secret, clock)
    assert session is not None
    # Keys that are created in the session must not outlive the token.
    assert session.caller.expires_at == clock() + 5 * MINUTE
    clock.now += 5 * MINUTE
    assert await found(store, secret, clock) is None
    assert await found(store, with_new, clock) is not None
    await revoke(store, clock, issued.id)
    assert await found(store, with_new, clock) is None


async def test_a_link_and_its_session_end_with_the_newest_token_of_their_key(
    store: Store, clock: ManualClock, key: Caller
) -> None:
    secret = await linked(store, clock, key.id)
    unused = await store.write(create_link(key.id, clock()))
    await rotate(store, clock, key.id, grace=MINUTE)
    during_grace = await linked(store, clock, key.id)
    session = await found(store, secret, clock)
    assert session is not None
    assert session.caller.expires_at == clock() + MINUTE
    clock.now += MINUTE
    assert await find(store, secret, clock) == "replaced"
    assert await store.write(use_link(unused, "production", clock())) is None
    assert await found(store, during_grace, clock) is not None


async def test_a_link_of_an_old_token_ends_with_it(
    store: Store, clock: ManualClock, key: Caller, token: bytes
) -> None:
    thief = await found(store, await store.write(open_session(key.id, token, clock())), clock)
    await rotate(store, clock, key.id, grace=MINUTE)
    secret = await linked(store, clock, key.id, thief)
    again = await linked(store, clock, key.id, await found(store, secret, clock))
    clock.now += MINUTE
    assert {await find(store, each, clock) for each in (secret, again)} == {"replaced"}


async def test_sessions_that_a_session_grants_for_other_keys_end_with_its_token(
    store: Store, clock: ManualClock, key: Caller, token: bytes
) -> None:
    others = [await issue_stored(store, clock) for _ in range(2)]
    maker = await found(store, await store.write(open_session(key.id, token, clock())), clock)
    chain = [await linked(store, clock, others[0].id, maker)]
    chain.append(await linked(store, clock, others[0].id, await found(store, chain[-1], clock)))
    rotated = await rotate(store, clock, key.id, grace=MINUTE)
    limited = [await found(store, secret, clock) for secret in chain]
    assert {each.caller.expires_at for each in limited if each} == {clock() + MINUTE}
    by_operator = await linked(store, clock, others[0].id)
    clock.now += MINUTE
    assert {await find(store, secret, clock) for secret in chain} == {"replaced"}
    assert await found(store, by_operator, clock) is not None
    # The end of the key itself ends what it granted, too.
    anew = await store.write(open_session(key.id, rotated.token.encode(), clock()))
    granted = await linked(store, clock, others[0].id, await found(store, anew, clock))
    await rotate(store, clock, others[1].id)
    assert await found(store, granted, clock) is not None
    await revoke(store, clock, key.id)
    assert await find(store, granted, clock) == "replaced"


async def test_a_granted_session_ends_when_the_key_of_its_creator_expires(
    store: Store, clock: ManualClock, key: Caller
) -> None:
    issued = await issue(store, clock, expires_at=clock() + MINUTE)
    begun = await store.write(open_session(issued.id, issued.token.encode(), clock()))
    granted = await linked(store, clock, key.id, await found(store, begun, clock))
    clock.now += MINUTE
    assert await find(store, granted, clock) == "replaced"


async def test_a_granted_session_cannot_create_links_for_other_keys(
    store: Store, clock: ManualClock, key: Caller, token: bytes
) -> None:
    """Such a link would have to end with two tokens, and a link knows one."""
    others = [await issue_stored(store, clock) for _ in range(2)]
    maker = await found(store, await store.write(open_session(key.id, token, clock())), clock)
    granted = await found(store, await linked(store, clock, others[0].id, maker), clock)
    for key_id in (others[1].id, key.id):
        with pytest.raises(BeyondOwnRights, match=r"^you signed in by a link of another key: sign"):
            await store.write(create_link(key_id, clock(), granted))


@pytest.mark.parametrize(
    "less",
    [{"scopes": frozenset({"pets:read"})}, {"allowed_networks": ("192.0.2.0/24",)}],
    ids=["scopes", "networks"],
)
async def test_a_granted_session_ends_once_its_grantor_has_fewer_rights(
    store: Store, clock: ManualClock, key: Caller, token: bytes, less: dict[str, Any]
) -> None:
    other = await issue_stored(store, clock)
    begun = await store.write(open_session(key.id, token, clock()))
    maker = await found(store, begun, clock)
    granted = await linked(store, clock, other.id, maker)
    unused = await store.write(create_link(other.id, clock(), maker))
    await change(store, clock, key.id, **less)
    assert await find(store, granted, clock) == "replaced"
    assert await store.write(use_link(unused, "production", clock())) is None
    assert await found(store, begun, clock) is not None


async def test_ending_all_sessions_of_a_key_ends_the_sessions_they_granted(
    store: Store, clock: ManualClock, key: Caller, token: bytes
) -> None:
    other = await issue_stored(store, clock)
    maker = await found(store, await store.write(open_session(key.id, token, clock())), clock)
    granted = await linked(store, clock, other.id, maker)
    unused = await store.write(create_link(other.id, clock(), maker))
    await store.write(end_sessions(key.id))
    assert await find(store, granted, clock) is None
    assert await store.write(use_link(unused, "production", clock())) is None


async def test_an_ended_session_cannot_create_a_link(
    store: Store, clock: ManualClock, key: Caller, token: bytes
) -> None:
    maker = await found(store, await store.write(open_session(key.id, token, clock())), clock)
    await store.write(end_sessions(key.id))
    with pytest.raises(KeyEnded, match=r"^your session has ended$"):
        await store.write(create_link(key.id, clock(), maker))


async def test_an_ended_session_has_a_reason(store: Store, clock: ManualClock) -> None:
    issued = await issue(store, clock)
    secret = await store.write(open_session(issued.id, issued.token.encode(), clock()))
    after = (await rotate(store, clock, issued.id, grace=MINUTE)).token.encode()
    unused = await store.write(open_session(issued.id, after, clock()))
    long = await store.write(open_session(issued.id, after, clock() - LONGEST))
    clock.now += MINUTE
    assert await find(store, secret, clock) == "replaced"
    await store.write(do("DELETE FROM api_key_tokens WHERE expires_at IS NOT NULL"))
    assert await find(store, secret, clock) == "replaced"
    clock.now += IDLE - MINUTE
    assert await find(store, unused, clock) == "unused"
    assert await find(store, long, clock) == "longest"
    await revoke(store, clock, issued.id)
    # Signing in again would not help.
    assert {await find(store, each, clock) for each in (unused, long, secret)} == {"revoked"}
    assert await find(store, secret + "x", clock) is None


async def test_a_session_ends_with_its_key_even_if_its_token_expires_later(
    store: Store, clock: ManualClock
) -> None:
    issued = await issue(store, clock, expires_at=clock() + MINUTE)
    secret = await store.write(open_session(issued.id, issued.token.encode(), clock()))
    await rotate(store, clock, issued.id, grace=5 * MINUTE)
    session = await found(store, secret, clock)
    assert session is not None
    assert session.caller.expires_at == clock() + MINUTE


async def test_a_session_ends_when_its_token_is_deleted(store: Store, clock: ManualClock) -> None:
    issued = await issue(store, clock)
    secret = await store.write(open_session(issued.id, issued.token.encode(), clock()))
    await store.write(do("DELETE FROM api_key_tokens"))
    assert await found(store, secret, clock) is None


async def test_a_new_session_ends_the_previous_one(
    store: Store, clock: ManualClock, key: Caller, token: bytes
) -> None:
    before = await store.write(open_session(key.id, token, clock()))
    other = await store.write(open_session(key.id, token, clock()))
    after = await store.write(open_session(key.id, token, clock(), Browser(replaced=before)))
    link = await store.write(create_link(key.id, clock()))
    by_link = await store.write(use_link(link, "production", clock(), Browser(replaced=after)))
    assert by_link is not None
    for secret, is_there in [(before, False), (after, False), (by_link, True), (other, True)]:
        assert (await found(store, secret, clock) is not None) is is_there


async def test_a_key_has_a_maximum_number_of_sessions(
    store: Store, clock: ManualClock, key: Caller, token: bytes
) -> None:
    colleague = await issue_stored(store, clock)
    unused = await store.write(open_session(key.id, token, clock()))
    used = await store.write(open_session(key.id, token, clock()))
    other = await store.write(open_session(colleague.id, token, clock() - 1))
    session = await found(store, used, clock)
    assert session is not None
    await store.write(touch_session(session, clock() + 2 * SECOND))
    await add_sessions(store, key, range(1, MAX_SESSIONS - 1), clock() - SECOND, clock() + SECOND)
    await store.write(open_session(key.id, token, clock() + SECOND))
    assert await count(store, "console_sessions") <= MAX_SESSIONS + 1
    for secret, is_there in [(unused, False), (used, True), (other, True)]:
        assert (await found(store, secret, clock) is not None) is is_there


async def test_ended_sessions_are_not_found(
    store: Store, clock: ManualClock, key: Caller, token: bytes
) -> None:
    colleague = await issue_stored(store, clock)
    secrets = [await store.write(open_session(key.id, token, clock())) for _ in range(3)]
    other = await store.write(open_session(colleague.id, token, clock()))
    await store.write(end_session(sha256(secrets[0].encode()).digest()))
    assert await count(store, "console_sessions") == 3
    await store.write(create_link(key.id, clock()))
    await store.write(end_sessions(key.id))
    assert await count(store, "console_links") == 0
    assert await count(store, "console_sessions") == 1
    assert await found(store, other, clock) is not None


async def test_a_link_works_only_once_even_for_concurrent_requests(
    store: Store, clock: ManualClock, key: Caller
) -> None:
    link = await store.write(create_link(key.id, clock()))
    units = [store.write(use_link(link, "production", clock())) for _ in range(4)]
    begun = [secret for secret in await asyncio.gather(*units) if secret is not None]
    assert len(begun) == 1
    assert await found(store, begun[0], clock) is not None


async def test_a_link_expires_and_is_then_deleted(
    store: Store, clock: ManualClock, key: Caller
) -> None:
    link = await store.write(create_link(key.id, clock()))
    assert await store.write(use_link(link, "staging", clock())) is None
    link = await store.write(create_link(key.id, clock()))
    clock.now += LINK_LIFE
    assert await store.write(use_link(link, "production", clock())) is None
    assert await count(store, "console_links") == 0


async def test_a_link_cannot_be_created_for_an_ended_key(
    store: Store, clock: ManualClock, key: Caller
) -> None:
    with pytest.raises(NotFound, match="there is no key 7"):
        await store.write(create_link(7, clock()))
    await revoke(store, clock, key.id)
    with pytest.raises(KeyEnded, match="is revoked"):
        await store.write(create_link(key.id, clock()))


async def test_ended_sessions_and_links_are_pruned(
    store: Store, clock: ManualClock, key: Caller, token: bytes
) -> None:
    await store.write(open_session(key.id, token, clock()))
    await store.write(create_link(key.id, clock()))
    for passed, left in [(0, (1, 1)), (31 * DAY, (1, 0)), (1, (0, 0))]:
        clock.now += passed
        await prune_all(store, clock, DAYS_KEPT)
        counted = (await count(store, "console_sessions"), await count(store, "console_links"))
        assert counted == left


# Sessions that stay, and devices


async def test_a_session_that_stays_ends_thirty_days_after_its_last_use(
    store: Store, clock: ManualClock, key: Caller, token: bytes
) -> None:
    secret = await store.write(open_session(key.id, token, clock(), Browser(stays=True)))
    for _ in range(3):
        clock.now += STAYS - 1
        session = await found(store, secret, clock)
        assert session is not None
        assert session.ends_at == session.used_at + STAYS
        await store.write(touch_session(session, clock()))
    clock.now += STAYS
    assert await find(store, secret, clock) == "away"


async def test_a_use_is_noted_with_the_caller(
    store: Store, clock: ManualClock, key: Caller, token: bytes
) -> None:
    session = await found(store, await store.write(open_session(key.id, token, clock())), clock)
    assert session is not None
    for _ in range(2):
        rows = await store.read(next(do("SELECT seen_at FROM callers WHERE id = ?1", key.id)))
        assert rows == [(clock(),)]
        clock.now += MINUTE
        await store.write(touch_session(session, clock()))


async def test_devices_are_the_sessions_that_have_not_ended(
    store: Store, clock: ManualClock, key: Caller, token: bytes
) -> None:
    other = await issue_stored(store, clock)
    maker = await found(store, await store.write(open_session(key.id, token, clock())), clock)
    await linked(store, clock, other.id, maker)
    await linked(store, clock, other.id)
    await store.write(
        open_session(other.id, token, clock(), Browser("Safari on iPhone", stays=True))
    )
    await store.write(open_session(other.id, token, clock() - LONGEST))
    await store.write(open_session(other.id, token, clock() - IDLE))
    clock.now += 1
    devices = await list_devices(store, other.id, clock())
    assert sorted((each.device, each.stays) for each in devices) == [
        ("", False),
        ("", False),
        ("Safari on iPhone", True),
    ]
    await rotate(store, clock, key.id)  # ends what its session granted, and the token of the last
    assert [each.device for each in await list_devices(store, other.id, clock())] == [""]
    clock.now += IDLE
    assert await list_devices(store, other.id, clock()) == []


async def test_one_session_may_be_kept_when_all_others_end(
    store: Store, clock: ManualClock, key: Caller, token: bytes
) -> None:
    secrets = [await store.write(open_session(key.id, token, clock())) for _ in range(3)]
    kept = await found(store, secrets[0], clock)
    assert kept is not None
    await store.write(end_sessions(key.id, kept.digest))
    assert [await found(store, secret, clock) for secret in secrets] == [kept, None, None]


async def test_an_invitation_lives_for_72_hours_and_begins_no_session(
    store: Store, clock: ManualClock, key: Caller
) -> None:
    sign_in = await store.write(create_link(key.id, clock()))
    first, second = [
        await store.write(create_link(key.id, clock(), purpose="invitation")) for _ in range(2)
    ]
    rows = await store.read(Statement("SELECT purpose, expires_at FROM console_links"))
    assert sorted(rows) == [
        ("invitation", clock() + INVITATION_LIFE),
        ("sign_in", clock() + LINK_LIFE),
    ]
    for secret in (first, second):
        assert await store.write(use_link(secret, "production", clock())) is None
    assert await count(store, "console_links") == 2
    assert await store.write(use_link(sign_in, "production", clock())) is not None


async def test_devices_are_sessions_that_go_on_with_the_last_used_first(
    store: Store, clock: ManualClock, key: Caller, token: bytes
) -> None:
    other = await issue(store, clock)
    await store.write(open_session(other.id, other.token.encode("ascii"), clock()))
    now = clock()
    for name, stays, created_at, used_at in (
        ("unused", 0, now - IDLE, now - IDLE),
        ("old", 0, now - LONGEST, now),
        ("phone", 0, now - LONGEST + 1, now - IDLE + 1),
        ("forgotten", 1, now - 2 * STAYS, now - STAYS),
        ("till", 1, now - 2 * STAYS, now - STAYS + 1),
        ("desk", 0, now, now),
    ):
        secret = await store.write(open_session(key.id, token, clock()))
        await store.write(
            do(
                "UPDATE console_sessions SET device = ?2, stays = ?3, created_at = ?4, used_at = ?5"
                " WHERE digest = ?1",
                *(sha256(secret.encode()).digest(), name, stays, created_at, used_at),
            )
        )
    devices = await list_devices(store, key.id, now)
    assert [(each.device, each.stays) for each in devices] == [
        *(("desk", False), ("phone", False), ("till", True))
    ]
    assert devices[0] == Device(devices[0].digest, "desk", now, now, stays=False)
    await rotate(store, clock, key.id, 1)
    assert len(await list_devices(store, key.id, now)) == 3
    assert await list_devices(store, key.id, now + 1) == []


async def test_a_device_ends_only_for_the_one_whose_it_is(
    store: Store, clock: ManualClock, key: Caller, token: bytes
) -> None:
    other = await issue(store, clock)
    secret = await store.write(open_session(key.id, token, clock()))
    (device,) = await list_devices(store, key.id, clock())
    assert not await store.write(end_device(other.id, device.digest))
    assert await found(store, secret, clock) is not None
    assert await store.write(end_device(key.id, device.digest))
    assert not await store.write(end_device(key.id, device.digest))
    assert await find(store, secret, clock) == "device"
    assert await list_devices(store, key.id, clock()) == []


async def test_a_device_that_ended_does_not_come_back_with_another_token(
    store: Store, clock: ManualClock, key: Caller, token: bytes
) -> None:
    secret = await store.write(open_session(key.id, token, clock()))
    session = await found(store, secret, clock)
    assert session is not None
    assert await store.write(end_device(key.id, session.digest))
    await store.write(rebind_session(session, token))
    assert await find(store, secret, clock) == "device"


async def test_each_store_has_one_seal(store: Store) -> None:
    first, *others = await asyncio.gather(*(store.write(seal()) for _ in range(3)))
    assert len(first) == 32
    assert others == [first] * 2
