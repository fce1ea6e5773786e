"""A cache forgets what is not used."""

from petstore.generations import TwoGenerationCache


def test_a_value_is_kept_that_was_used_between_two_turns() -> None:
    cache = TwoGenerationCache[str, int]()
    for key in ("a", "b", *map(str, range(1000))):
        cache.put(key, 1)
    for _ in range(3):
        cache.turn()
        assert cache.get("a") == 1
    assert cache.get("b") is None
