"""First answers to requests with an Idempotency-Key, in SQL."""

from petstore.clock import Milliseconds
from petstore.storage.contract import Statement


def select_answer(key_id: int, idempotency_key: str, since: Milliseconds) -> Statement:
    """Return the SELECT of (request, answer) if they were kept after ``since``."""
    return Statement(
        "SELECT request, answer FROM kept_answers"
        " WHERE key_id = ?1 AND idempotency_key = ?2 AND kept_at > ?3",
        (key_id, idempotency_key, since),
    )


def keep_answer(
    key_id: int, idempotency_key: str, request: bytes, answer: bytes, now: Milliseconds
) -> Statement:
    """Return the INSERT of an answer, in the place of one that has expired."""
    return Statement(
        "INSERT INTO kept_answers (key_id, idempotency_key, request, answer, kept_at)"
        " VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (key_id, idempotency_key) DO UPDATE"
        " SET request = excluded.request, answer = excluded.answer, kept_at = excluded.kept_at",
        (key_id, idempotency_key, request, answer, now),
    )


def delete_answers(until: Milliseconds, count: int) -> Statement:
    """Return the DELETE of up to ``count`` answers kept at ``until`` or before; a row for each."""
    return Statement(
        "DELETE FROM kept_answers WHERE (key_id, idempotency_key) IN"
        " (SELECT key_id, idempotency_key FROM kept_answers WHERE kept_at <= ?1"
        " ORDER BY kept_at LIMIT ?2) RETURNING key_id",
        (until, count),
    )
