"""Old rows are deleted in small batches, so that nobody waits for long."""

PRUNED_AT_ONCE = 200


def delete_some(table: str, key: str, age: str) -> str:
    """Return the SQL that deletes at most ``?2`` rows with an ``age`` below ``?1``, the oldest.

    ``key`` are the columns of the primary key. Rows that another process is just deleting or
    changing stay.
    """
    return (
        f"DELETE FROM {table} WHERE {age} < ?1 AND ({key}) IN"  # noqa: S608 - only names
        f" (SELECT {key} FROM {table} WHERE {age} < ?1 ORDER BY {age}"
        " LIMIT ?2 /*pg FOR UPDATE SKIP LOCKED */) RETURNING 1"
    )
