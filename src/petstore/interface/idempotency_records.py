"""Safe retries: a retry gets the recorded response to the first request."""

from typing import NamedTuple

from petstore.clock import Clock
from petstore.databases.contract import Row, Statement, Store, Unit
from petstore.databases.schema import IDEMPOTENCY_RECORDS_KEPT
from petstore.errors import IdempotencyKeyInUse, IdempotencyKeyReused
from petstore.keys.model import Caller


class Attempt(NamedTuple):
    """A request with an Idempotency-Key: its caller, and a digest of what it asks for."""

    caller: Caller
    idempotency_key: str
    request: bytes


class IdempotencyRecord(NamedTuple):
    response: bytes
    is_replay: bool


class SafeRetries:
    """Acts once for each caller and Idempotency-Key, and records the first response for 24 hours.

    The record is written in the same transaction as the change, so no crash can separate them.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._under_way: set[tuple[int, str]] = set()

    async def find(self, attempt: Attempt) -> bytes | None:
        """Work of several transactions looks for it first, and records its response at the end."""
        self._require_free(attempt)
        before = self._clock() - IDEMPOTENCY_RECORDS_KEPT
        rows = await self._store.read(_select(attempt, before))
        return _response_in(rows, attempt) if rows else None

    async def once(self, attempt: Attempt, unit: Unit[bytes]) -> IdempotencyRecord:
        name = self._require_free(attempt)
        self._under_way.add(name)
        try:
            return await self._store.write(_once(attempt, unit, self._clock()))
        finally:
            self._under_way.remove(name)

    def _require_free(self, attempt: Attempt) -> tuple[int, str]:
        name = (attempt.caller.id, attempt.idempotency_key)
        if name in self._under_way:
            msg = "Idempotency-Key: the first request with it is in progress; try again in a moment"
            raise IdempotencyKeyInUse(msg)
        return name


def _select(attempt: Attempt, before: int) -> Statement:
    return Statement(
        "SELECT request, answer FROM idempotency_records"
        " WHERE key_id = ?1 AND idempotency_key = ?2 AND kept_at > ?3",
        (attempt.caller.id, attempt.idempotency_key, before),
        name="select_idempotency_record",
    )


def _response_in(rows: list[Row], attempt: Attempt) -> bytes:
    ((request, response),) = rows
    if request != attempt.request:
        msg = "Idempotency-Key: expected a new one; another request has used this one"
        raise IdempotencyKeyReused(msg)
    return bytes(response)


def _once(attempt: Attempt, unit: Unit[bytes], now: int) -> Unit[IdempotencyRecord]:
    name = (attempt.caller.id, attempt.idempotency_key)
    # Takes the place of an expired record. Units of work that run concurrently with the same key
    # wait here until the first has ended.
    claimed = yield Statement(
        "INSERT INTO idempotency_records (key_id, idempotency_key, request, answer, kept_at)"
        " VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (key_id, idempotency_key) DO UPDATE"
        " SET request = excluded.request, answer = excluded.answer, kept_at = excluded.kept_at"
        " WHERE idempotency_records.kept_at <= ?6 RETURNING key_id",
        (*name, attempt.request, b"", now, now - IDEMPOTENCY_RECORDS_KEPT),
        name="insert_idempotency_record",
    )
    if not claimed:
        rows = yield _select(attempt, before=0)
        return IdempotencyRecord(_response_in(rows, attempt), is_replay=True)
    response = yield from unit
    yield Statement(
        "UPDATE idempotency_records SET answer = ?1 WHERE key_id = ?2 AND idempotency_key = ?3",
        (response, *name),
        deferrable=True,
        name="update_idempotency_record",
    )
    return IdempotencyRecord(response, is_replay=False)
