"""Limits by the minute alone: for each holder, and for client addresses by their network."""

import pytest

from petstore.limits.contract import LimitWindow
from petstore.limits.minutes import MinuteLimiter, network_of
from support.manual_clock import ManualClock

NOON = 20_788 * 86_400 + 43_200


def limiter_by(
    clock: ManualClock, per_minute: int = 300, capacity: int = 20_000
) -> MinuteLimiter[str]:
    return MinuteLimiter(clock, per_minute, capacity, network_of)


def test_the_301st_request_of_a_minute_is_refused(clock: ManualClock) -> None:
    limiter = limiter_by(clock)
    for _ in range(300):
        assert limiter.take("192.0.2.1").verdict == "admitted"
    decision = limiter.take("192.0.2.1")
    assert decision.verdict == "limited"
    assert decision.described == LimitWindow(300, 0, NOON + 60)


def test_another_address_has_its_own_limit(clock: ManualClock) -> None:
    limiter = limiter_by(clock, per_minute=1)
    limiter.take("192.0.2.1")
    assert limiter.take("192.0.2.1").verdict == "limited"
    assert limiter.take("192.0.2.2").verdict == "admitted"


def test_a_holder_can_have_a_lower_limit_but_not_a_higher_one(clock: ManualClock) -> None:
    limiter = limiter_by(clock, per_minute=2)
    assert limiter.take("192.0.2.1", per_minute=1).verdict == "admitted"
    assert limiter.take("192.0.2.1", per_minute=1).described == LimitWindow(1, 0, NOON + 60)
    verdicts = [limiter.take("192.0.2.2", per_minute=9).verdict for _ in range(3)]
    assert verdicts == ["admitted", "admitted", "limited"]


def test_requests_are_admitted_again_a_minute_later(clock: ManualClock) -> None:
    limiter = limiter_by(clock, per_minute=1)
    limiter.take("192.0.2.1")
    clock.advance(59.999)
    assert limiter.take("192.0.2.1").verdict == "limited"
    clock.advance(0.001)
    assert limiter.take("192.0.2.1").verdict == "admitted"


def test_an_address_is_never_banned(clock: ManualClock) -> None:
    limiter = limiter_by(clock, per_minute=1)
    for _ in range(2_000):
        clock.advance(0.01)
        assert limiter.take("192.0.2.1").verdict != "banned"
    clock.advance(60)
    assert limiter.take("192.0.2.1").verdict == "admitted"


def test_a_peek_is_not_counted(clock: ManualClock) -> None:
    limiter = limiter_by(clock)
    for _ in range(400):
        assert limiter.look("192.0.2.1").described == LimitWindow(300, 300, NOON + 60)
    limiter.take("192.0.2.1")
    clock.advance(10)
    assert limiter.look("192.0.2.1").described == LimitWindow(300, 299, NOON + 60)


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2::/64"),
        ("2001:DB8:1:2:0:0:0:9", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "::/64"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("::ffff:c000:201", "192.0.2.1"),
        ("unix socket", "unix socket"),
        ("", ""),
    ],
)
def test_an_address_is_counted_by_its_network(address: str, network: str) -> None:
    assert network_of(address) == network


def test_addresses_of_one_ipv6_64_network_share_one_limit(clock: ManualClock) -> None:
    limiter = limiter_by(clock, per_minute=2)
    limiter.take("2001:db8::1")
    limiter.take("2001:db8::2")
    assert limiter.take("2001:db8::3").verdict == "limited"
    assert limiter.take("2001:db8:0:1::3").verdict == "admitted"


def test_a_full_table_evicts_the_oldest_window(clock: ManualClock) -> None:
    limiter = limiter_by(clock, per_minute=1, capacity=3)
    for address in ("192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.1", "192.0.2.4"):
        clock.advance(1)
        limiter.take(address)
    assert limiter.look("192.0.2.1").described.remaining == 1
    for address in ("192.0.2.2", "192.0.2.3", "192.0.2.4"):
        assert limiter.take(address).verdict == "limited"


def test_a_new_window_makes_an_address_the_newest(clock: ManualClock) -> None:
    limiter = limiter_by(clock, per_minute=1, capacity=2)
    limiter.take("192.0.2.1")
    clock.advance(59)
    limiter.take("192.0.2.2")
    clock.advance(1)
    limiter.take("192.0.2.1")
    limiter.take("192.0.2.3")
    assert limiter.take("192.0.2.1").verdict == "limited"
    assert limiter.look("192.0.2.2").described.remaining == 1


def test_a_window_restarted_because_the_clock_was_ahead_is_the_newest(clock: ManualClock) -> None:
    limiter = limiter_by(clock, per_minute=1, capacity=3)
    limiter.take("192.0.2.1")
    limiter.take("192.0.2.2")
    clock.advance(-3_600)
    for address in ("192.0.2.1", "192.0.2.3", "192.0.2.4"):
        limiter.take(address)
    assert limiter.look("192.0.2.1").described.remaining == 0
    assert limiter.look("192.0.2.2").described.remaining == 1


def test_the_table_has_a_fixed_size_for_any_number_of_addresses(clock: ManualClock) -> None:
    limiter = limiter_by(clock, per_minute=1, capacity=50)
    addresses = [f"198.51.{n // 250}.{n % 250}" for n in range(5_000)]
    for address in addresses:
        limiter.take(address)
    remembered = [a for a in addresses if limiter.look(a).described.remaining == 0]
    assert remembered == addresses[-50:]


@pytest.fixture
def limiter(clock: ManualClock) -> MinuteLimiter[int]:
    return MinuteLimiter(clock, 2, 10)


def test_each_holder_has_its_own_limit_per_minute(
    limiter: MinuteLimiter[int], clock: ManualClock
) -> None:
    assert [limiter.take(1).verdict for _ in range(3)] == ["admitted", "admitted", "limited"]
    assert limiter.take(2).verdict == "admitted"
    clock.advance(60)
    assert limiter.take(1).verdict == "admitted"


def test_a_returned_request_may_be_used_again(limiter: MinuteLimiter[int]) -> None:
    limiter.take(1)
    limiter.take(1)
    limiter.give_back(1)
    assert limiter.look(1).minute.remaining == 1
    assert [limiter.take(1).verdict for _ in range(2)] == ["admitted", "limited"]


def test_a_holder_whose_requests_were_all_returned_takes_no_room(clock: ManualClock) -> None:
    limiter = MinuteLimiter[int](clock, 1, 2)
    assert limiter.take(1).verdict == "admitted"
    for other in range(2, 10):
        limiter.take(other)
        limiter.give_back(other)
    assert limiter.take(1).verdict == "limited"


def test_no_more_requests_are_returned_than_were_taken(limiter: MinuteLimiter[int]) -> None:
    limiter.give_back(1)
    limiter.take(1)
    for _ in range(3):
        limiter.give_back(1)
    assert limiter.look(1).minute.remaining == 2
