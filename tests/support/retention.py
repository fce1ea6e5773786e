"""Deleting what is old."""

from petstore.clock import Milliseconds
from petstore.databases.contract import Unit
from petstore.databases.schema import TABLES_BY_NAME, prune
from petstore.settings import Settings

DAYS_KEPT = Settings().event_days


def prune_table(name: str, before: Milliseconds) -> Unit[int]:
    return prune(TABLES_BY_NAME[name], before)
