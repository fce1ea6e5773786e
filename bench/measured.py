"""The results of ``distributed.py``, as saved in ``measured.json``."""

from pathlib import Path

import msgspec

from tables import Span

FILE = Path(__file__).with_suffix(".json")


class WorkCosts(msgspec.Struct, frozen=True):
    """One kind of request: rate; CPU of each part in µs; p99 in ms; bytes of response and log."""

    rate: Span
    service: Span
    database: Span
    redis: Span
    p99: float
    response: int
    log: int


class Saving(msgspec.Struct, frozen=True):
    """Saving the counts of a key: CPU of service and PostgreSQL in µs, and bytes of log."""

    service: int
    database: int
    log: int


class Measured(msgspec.Struct, frozen=True):
    """A whole measurement. CPU and times are in µs, sizes in bytes."""

    machine: str
    system: str
    python: str
    rounds: int
    works: dict[str, WorkCosts]
    pet_bytes: int
    order_bytes: int
    saving: Saving
    fsync: Span


def read_measured() -> Measured:
    """Return what was saved."""
    return msgspec.json.decode(FILE.read_bytes(), type=Measured)
