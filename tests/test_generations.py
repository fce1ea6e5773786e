"""A cache forgets what is not used."""

from petstore.generations import Generations


def sized(max_size: int) -> Generations[str, int]:
    """Return a cache whose values are their own sizes."""
    return Generations(max_size, lambda _, value: value)


def test_a_value_that_is_too_large_is_not_kept() -> None:
    cache = sized(10)
    cache.put("a", 11)
    assert cache.get("a") is None
    cache.put("b", 10)
    assert cache.get("b") == 10


def test_a_value_that_was_not_used_between_two_turns_is_dropped() -> None:
    cache = Generations[str, int]()
    cache.put("a", 1)
    cache.turn()
    cache.turn()
    assert cache.get("a") is None


def test_a_value_that_was_used_between_two_turns_is_kept() -> None:
    cache = Generations[str, int]()
    cache.put("a", 1)
    for _ in range(3):
        cache.turn()
        assert cache.get("a") == 1


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


def test_a_replaced_value_takes_no_further_room() -> None:
    cache = sized(10)
    cache.put("a", 5)
    cache.put("b", 5)
    cache.put("b", 5)
    cache.turn()
    assert [cache.get(key) for key in "ab"] == [5, 5]
