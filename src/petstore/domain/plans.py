"""Plans and the request rates they grant (docs/limits.md)."""

from typing import Literal, NamedTuple, TypeAlias

UNLIMITED = 2**31 - 1
"""The reported limit of a window without one; no key can reach it."""

PlanName: TypeAlias = Literal["free", "pro", "business", "enterprise"]


class Limits(NamedTuple):
    per_minute: int
    per_day: int

    def share(self, processes: int) -> "Limits":
        """Return what each of ``processes`` may admit if they cannot share their counts."""
        return Limits(*(x if x == UNLIMITED else max(1, x // processes) for x in self))


PLANS: dict[PlanName, Limits] = {
    "free": Limits(60, 1_000),
    "pro": Limits(300, 10_000),
    "business": Limits(1_000, 100_000),
    "enterprise": Limits(UNLIMITED, UNLIMITED),
}
