"""Deleting what is old."""

from petstore.clock import Milliseconds
from petstore.databases.contract import Unit
from petstore.databases.schema import TABLES_BY_NAME, RetentionDays, prune
from petstore.settings import Settings

DAYS_KEPT: RetentionDays = {
    "event_days": Settings().event_days,
    "admin_event_days": Settings().admin_event_days,
}
"""What the defaults of the settings say."""


def prune_table(name: str, before: Milliseconds) -> Unit[int]:
    return prune(TABLES_BY_NAME[name], before)
