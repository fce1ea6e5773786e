"""What is asked of a service, and how its store is put back afterwards."""

from collections import Counter
from pathlib import Path

from stage import SqliteStage
from stock import ANIMALS, MIXED, fill
from works import RESTORE, WORKS, Work, works

CURSORS = ["one", "two"]


def asked(name: str) -> Work:
    (work,) = [work for work in works("token", CURSORS, seconds=1) if work.name == name]
    return work


def start_lines(work: Work) -> list[str]:
    return [request.partition(b" HTTP")[0].decode() for request in work.requests]


def test_the_works_are_those_that_are_measured() -> None:
    assert [work.name for work in works("token", CURSORS, seconds=1)] == list(WORKS)


def test_every_service_is_asked_the_same() -> None:
    assert works("token", CURSORS, seconds=1) == works("token", CURSORS, seconds=1)


def test_a_mix_is_mostly_lists_with_some_gets_and_a_few_creates() -> None:
    kinds = Counter(line.split("?")[0].rstrip("0123456789") for line in start_lines(asked("mix")))
    assert 0.88 < kinds["GET /v1/pets"] / kinds.total() < 0.92
    assert 0.07 < kinds["GET /v1/pets/"] / kinds.total() < 0.09
    assert 0.015 < kinds["POST /v1/pets"] / kinds.total() < 0.025


def test_deep_pages_are_too_many_to_be_kept_by_few_cursors() -> None:
    pages = set(start_lines(asked("deep page")))
    assert len(pages) == len(CURSORS) * len(range(11, 30))


def test_no_animal_is_ordered_twice() -> None:
    orders = asked("place order").requests
    assert len(set(orders)) == len(orders) == 15_000


def test_works_that_write_are_marked() -> None:
    writing = [work.name for work in works("token", CURSORS, seconds=1) if work.writes]
    assert writing == ["create", "mix", "place order"]


def test_a_store_is_put_back_after_writes(tmp_path: Path) -> None:
    stage = SqliteStage(tmp_path)
    fill(tmp_path, stage.url, 3)
    with stage.copy("peer") as place:
        place.run_sql(
            "INSERT INTO pets (id, name, category_id, status)"  # noqa: S608 - numbers of ours
            f" VALUES ({MIXED + 1}, 'ordered', 1, 'pending'), ({ANIMALS + 1}, 'new', 1, 'sold');"
            f" INSERT INTO orders (pet_id, status, placed_at) VALUES ({MIXED + 1}, 'placed', 0)"
        )
        place.run_sql(RESTORE)
        animals = dict(place.run_sql("SELECT id, status FROM pets"))
        orders = list(place.run_sql("SELECT id FROM orders"))
    assert animals == {1: "available", 2: "pending", 3: "sold", MIXED + 1: "available"}
    assert orders == []
