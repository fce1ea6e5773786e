"""The version after this one: it has one more migration, which is made up."""

import pytest

from petstore.databases.migrations import postgres, scripts, sqlite

MIGRATION = """
    ALTER TABLE pets ADD COLUMN added_later TEXT;
    ALTER TABLE orders ADD COLUMN added_later INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE api_keys ADD COLUMN added_later TEXT NOT NULL DEFAULT '';
    ALTER TABLE idempotency_records ADD COLUMN added_later TEXT;
    CREATE TABLE made_later (id BIGINT PRIMARY KEY);
    UPDATE pets SET added_later = name;
"""


def become_next_version(patch: pytest.MonkeyPatch, migration: str = MIGRATION) -> None:
    """Let this process be of the next version until ``patch`` is undone."""
    for module in (sqlite, postgres):
        patch.setattr(module, "scripts", lambda kind: (*scripts(kind), migration))
