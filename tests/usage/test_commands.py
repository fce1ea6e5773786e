"""``petstore usage``: what a key has used, and what is left."""

from collections.abc import Mapping

from support.odd_service import odd_service, response
from support.process import ServerProcess
from support.shop import Shop

WINDOW = {"limit": 60, "remaining": 12, "reset": 1795226353}
USAGE = {
    "plan": "free",
    "minute": WINDOW,
    "day": {"limit": 1000, "remaining": 940, "reset": 1795305600},
    "bannedUntil": None,
    "days": [{"date": "2026-11-20", "requests": 0}, {"date": "2026-11-21", "requests": 60}],
    "deprecated": [],
}


def shown(usage: Mapping[str, object]) -> list[list[str]]:
    """Return the words of each line that is printed of a usage."""
    with odd_service(response(200, usage)) as service:
        printed = Shop(service.url, "a-key").succeed("usage")
    return [line.split() for line in printed.splitlines()]


def test_refused_requests_are_shown_by_hour_and_operation() -> None:
    hour = "2026-11-21T10:00:00Z"
    refused = [
        {"hour": hour, "operation": "listPets", "requests": 1200},
        {"hour": hour, "operation": None, "requests": 1},
    ]
    lines = shown({**USAGE, "refused": refused})
    at = lines.index(["hour", "(UTC)", "refused", "(429)", "requests"])
    assert lines[at + 1 :] == [
        ["2026-11-21", "10:00", "listPets", "1200"],
        ["2026-11-21", "10:00", "-", "1"],
    ]


def test_the_usage_of_the_key_is_shown_and_counts_against_no_limit(server: ServerProcess) -> None:
    shop = Shop(server.url, server.issue("free"))
    shop.succeed("pets", "list")
    first, second = shop.ask("usage"), shop.ask("usage")
    assert (first["plan"], first["minute"]["remaining"]) == ("free", 59)
    assert second == first
    assert shop.succeed("usage").startswith("Plan free\n")


def test_the_usage_has_both_windows_and_the_days_with_requests() -> None:
    assert shown(USAGE) == [
        ["Plan", "free"],
        ["window", "limit", "left", "resets", "(UTC)"],
        ["minute", "60", "12", "2026-11-21", "01:59"],
        ["day", "1000", "940", "2026-11-22", "00:00"],
        [],
        ["day", "(UTC)", "requests"],
        ["2026-11-21", "60"],
    ]
