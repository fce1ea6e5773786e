"""The deliveries of a disabled webhook, prepared for the moment when it is enabled again.

Those since its last success become pending, as if they had never been attempted; or it continues
from now, and those that are pending fail. There may be many, so they are changed in batches.
"""

from itertools import takewhile

from petstore.clock import Milliseconds
from petstore.databases.contract import Statement, Unit
from petstore.databases.planner import index_range, unplanned
from petstore.databases.retention import are_first
from petstore.webhooks.model import Resume

BEFORE = (
    "/*sqlite*/ WHERE webhook_id = ?1 AND id < ?2 ORDER BY id DESC /*end*/"
    f" /*pg {index_range(['webhook_id'], [unplanned(1)], 'id', '?2', descending=True)} */"
)
"""The rest of a SELECT of the deliveries of webhook ``?1`` before the one with the id ``?2``."""

# The end of the error of a delivery: the console tells it in other words.
_SKIPPED = "skipped: the webhook was enabled to go on from then"

_BATCH = 500


def resume_batch(
    webhook_id: int, resume: Resume, before: int, now: Milliseconds, *, only_full: bool = False
) -> Unit[int | None]:
    """Prepare a batch of the deliveries of a webhook that is locked; return what comes ``before``.

    After the last batch it is ``None``. With ``only_full``, the last one is left as it is.
    """
    if resume == "now":
        pending = yield Statement(
            "SELECT id FROM webhook_deliveries WHERE webhook_id = ?1 AND state = 'pending'"
            " ORDER BY id LIMIT ?2",
            (webhook_id, _BATCH),
            name="select_skipped_deliveries",
        )
        ids = [row[0] for row in pending]
    else:
        rows = yield Statement(
            f"SELECT id, state FROM webhook_deliveries {BEFORE} LIMIT ?3",  # noqa: S608 - only names
            (webhook_id, before, _BATCH),
            name="select_deliveries_since",
        )
        ids = [each for each, _ in takewhile(lambda row: row[1] != "succeeded", rows)][::-1]
    is_full = len(ids) == _BATCH
    if not ids or (only_full and not is_full):
        return None
    yield _skip(webhook_id, len(ids)) if resume == "now" else _requeue(webhook_id, ids, now)
    return ids[0] if is_full else None


def _skip(webhook_id: int, count: int) -> Statement:
    pending = "webhook_id = ?2 AND state = 'pending' ORDER BY id LIMIT ?3"
    which = are_first("webhook_deliveries", pending)
    return Statement(
        "UPDATE webhook_deliveries SET state = 'failed',"  # noqa: S608 - only names
        f" error = coalesce(error || '; ', '') || ?1 WHERE {which}",
        (_SKIPPED, webhook_id, count),
        name="skip_deliveries",
    )


def _requeue(webhook_id: int, ids: list[int], now: Milliseconds) -> Statement:
    return Statement(
        "UPDATE webhook_deliveries SET state = 'pending', attempts = 0, due_at = ?1,"
        " first_attempt_at = NULL, last_attempt_at = NULL, response_status = NULL,"
        " response_body = NULL, error = NULL WHERE webhook_id = ?2 AND id >= ?3 AND id <= ?4"
        " AND state <> 'succeeded' AND retried_at IS NULL",
        (now, webhook_id, ids[0], ids[-1]),
        name="requeue_deliveries",
    )
