"""A cache forgets what is not used."""

import pytest

from petstore.generations import TwoGenerationCache


def sized(max_size: int) -> TwoGenerationCache[str, int]:
    """Return a cache whose values are their own sizes."""
    return TwoGenerationCache(max_size, lambda _, value: value)


def test_a_value_that_is_too_large_is_not_kept() -> None:
    cache = sized(10)
    assert cache.get("a") is None
    cache.put("a", 11)
    assert cache.get("a") is None
    cache.put("b", 10)
    assert cache.get("b") == 10


def test_a_value_is_kept_that_was_used_between_two_turns() -> None:
    cache = TwoGenerationCache[str, int]()  # without sizes there is no limit
    for key in ("a", "b", *map(str, range(1000))):
        cache.put(key, 1)
    for _ in range(3):
        cache.turn()
        assert cache.get("a") == 1
    assert cache.get("b") is None


def test_a_new_value_without_room_turns_the_generations() -> None:
    cache = sized(10)
    for key in "abcde":
        cache.put(key, 5)
    assert [cache.get(key) for key in "abe"] == [None, None, 5]


def test_a_used_value_takes_room_in_the_newer_generation() -> None:
    cache = sized(10)
    for key in "abc":
        cache.put(key, 5)
    assert cache.get("a") == 5
    cache.put("d", 5)
    assert [cache.get(key) for key in "bc"] == [None, 5]


@pytest.mark.parametrize("puts", [[("a", 5), ("b", 5), ("b", 5)], [("a", 8), ("a", 2), ("b", 8)]])
def test_a_replaced_value_leaves_its_room(puts: list[tuple[str, int]]) -> None:
    cache = sized(10)
    for key, size in puts:
        cache.put(key, size)
    cache.turn()
    assert {key: cache.get(key) for key in "ab"} == dict(puts)
