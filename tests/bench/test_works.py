"""The requests that a service is sent, and how its store is put back afterwards."""

import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path

import pytest

from servers import free_port, running
from stage import SqliteStage
from stock import ANIMALS, CATEGORIES, MIXED, STATES, fill, issue_many
from works import IDS, PAGES, RESTORE, WORKS, Sources, Work, page_path, sources, work

GIVEN = Sources(
    tokens=[f"token{number}" for number in range(1_000)],
    lists=[page_path(status, category=one) for status, one in product(STATES, range(1, 31))],
    deep_cursors=["one", "two"],
)
IN_STORE = 3 * CATEGORIES * 50  # 50 animals of each status and category: three pages


@cache
def asked(name: str) -> Work:
    return work(name, GIVEN, seconds=1)


def start_lines(work: Work) -> list[str]:
    return [request.partition(b" HTTP")[0].decode() for request in work.requests]


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sources]:
    """The sources of a running service with a small store and three keys."""
    folder = tmp_path_factory.mktemp("store")
    stage = SqliteStage(folder)
    fill(folder, stage.url, IN_STORE)
    tokens = issue_many(stage.url, 3, folder)
    port = free_port()
    command = (sys.executable, "-m", "petstore", "serve", "--port", str(port))
    with running((*command, "--database", stage.url), port, folder / "log") as server:
        yield sources(server.url, tokens)


@pytest.mark.parametrize("name", [name for name in WORKS if name != "same list"])
def test_each_request_has_room_for_ids_of_its_own_and_one_of_many_keys(name: str) -> None:
    requests = asked(name).requests
    assert all(one.count(IDS) == 1 and b"\r\n" + IDS + b"\r\n" in one for one in requests)
    tokens = {match[1] for one in requests if (match := re.search(rb"Bearer (\w+)", one))}
    assert len(tokens) == 1_000


def test_one_work_is_the_same_bytes_again_and_again() -> None:
    (request,) = asked("same list").requests
    assert IDS not in request


@pytest.mark.parametrize("name", ["mix", "place order"])
def test_every_service_is_sent_the_same(name: str) -> None:
    assert work(name, GIVEN, seconds=1) == asked(name)


def test_lists_are_of_every_page_and_gets_of_any_animal() -> None:
    assert {line.removeprefix("GET ") for line in start_lines(asked("list"))} == set(GIVEN.lists)
    ids = {int(line.rpartition("/")[2]) for line in start_lines(asked("get"))}
    assert len(ids) > 15_000
    assert 1 <= min(ids) < 100 < ANIMALS - 100 < max(ids) <= ANIMALS


def test_creates_have_random_names() -> None:
    names = Counter(re.findall(rb'"name": "(\w+)"', b"".join(asked("create").requests)))
    assert len(names) > 18_000


def test_a_mix_is_mostly_lists_with_some_gets_and_a_few_creates() -> None:
    kinds = Counter(line.split("?")[0].rstrip("0123456789") for line in start_lines(asked("mix")))
    assert 0.88 < kinds["GET /v1/pets"] / kinds.total() < 0.92
    assert 0.07 < kinds["GET /v1/pets/"] / kinds.total() < 0.09
    assert 0.015 < kinds["POST /v1/pets"] / kinds.total() < 0.025


def test_deep_pages_are_of_many_lengths() -> None:
    pages = set(start_lines(asked("deep page")))
    assert len(pages) == len(GIVEN.deep_cursors) * len(range(11, 30))


def test_no_animal_is_ordered_twice() -> None:
    bodies = [one.rpartition(b"\r\n\r\n")[2] for one in asked("place order").requests]
    assert len(set(bodies)) == len(bodies) == 15_000


def test_works_that_write_are_marked() -> None:
    writing = [name for name in WORKS if asked(name).writes]
    assert writing == ["create", "mix", "place order"]


def test_the_lists_are_all_pages_of_each_status_and_category(walked: Sources) -> None:
    pages = Counter(path.partition("&limit")[0] for path in walked.lists)
    assert len(pages) == len(STATES) * CATEGORIES
    assert set(pages.values()) == {3}
    assert len(set(walked.lists)) == len(walked.lists)


def test_a_whole_store_has_50_pages_of_each_status_and_category() -> None:
    assert MIXED / (len(STATES) * CATEGORIES) / 20 >= PAGES


def test_keys_are_issued_with_tokens_of_their_own(walked: Sources) -> None:
    assert len(set(walked.tokens)) == 3


def test_a_store_is_put_back_after_writes(tmp_path: Path) -> None:
    stage = SqliteStage(tmp_path)
    fill(tmp_path, stage.url, 3)
    with stage.copy("peer") as environment:
        environment.run_sql(
            "INSERT INTO pets (id, name, category_id, status)"  # noqa: S608 - numbers of ours
            f" VALUES ({MIXED + 1}, 'ordered', 1, 'pending'), ({ANIMALS + 1}, 'new', 1, 'sold');"
            f" INSERT INTO orders (pet_id, status, placed_at) VALUES ({MIXED + 1}, 'placed', 0)"
        )
        environment.run_sql(RESTORE)
        animals = dict(environment.run_sql("SELECT id, status FROM pets"))
        orders = list(environment.run_sql("SELECT id FROM orders"))
    assert animals == {1: "available", 2: "pending", 3: "sold", MIXED + 1: "available"}
    assert orders == []
