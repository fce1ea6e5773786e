"""First answers to requests with an Idempotency-Key, in SQL."""

from petstore.clock import Milliseconds
from petstore.databases.contract import Statement


def claim(
    key_id: int, idempotency_key: str, request: bytes, now: Milliseconds, since: Milliseconds
) -> Statement:
    """Return the INSERT of a request without its answer, in the place of one kept by ``since``.

    No row if an answer was kept after. Of units of work that run side by side with the same key,
    the others wait here until the first has ended.
    """
    return Statement(
        "INSERT INTO kept_answers (key_id, idempotency_key, request, answer, kept_at)"
        " VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (key_id, idempotency_key) DO UPDATE"
        " SET request = excluded.request, answer = excluded.answer, kept_at = excluded.kept_at"
        " WHERE kept_answers.kept_at <= ?6 RETURNING key_id",
        (key_id, idempotency_key, request, b"", now, since),
        name="insert_idempotency_record",
    )


def select_record(key_id: int, idempotency_key: str) -> Statement:
    """Return the SELECT of (request, answer)."""
    return Statement(
        "SELECT request, answer FROM kept_answers WHERE key_id = ?1 AND idempotency_key = ?2",
        (key_id, idempotency_key),
        name="select_idempotency_record",
    )


def complete_record(key_id: int, idempotency_key: str, answer: bytes) -> Statement:
    """Return the UPDATE that adds the answer to a claim."""
    return Statement(
        "UPDATE kept_answers SET answer = ?1 WHERE key_id = ?2 AND idempotency_key = ?3",
        (answer, key_id, idempotency_key),
        name="update_idempotency_record",
    )


def delete_records(until: Milliseconds, count: int) -> Statement:
    """Return the DELETE of up to ``count`` answers kept at ``until`` or before; a row for each.

    One that is being claimed anew, or that another process deletes, is left to that one.
    """
    return Statement(
        "DELETE FROM kept_answers WHERE kept_at <= ?1 AND (key_id, idempotency_key) IN"
        " (SELECT key_id, idempotency_key FROM kept_answers WHERE kept_at <= ?1"
        " ORDER BY kept_at LIMIT ?2 /*pg FOR UPDATE SKIP LOCKED */) RETURNING key_id",
        (until, count),
        name="delete_idempotency_records",
    )
