"""The report shows the measurements, which of them count, and which targets are met."""

import pytest

from report import Target, report, targets
from results import ComparedSeries as Series
from results import PeerResults, Results
from rounds import Round
from tables import Span


def series(
    work: str,
    *rates: float,
    p99: float = 1,
    cpu: float = 10,
    errors: int = 0,
    connections: int = 32,
) -> Series:
    rounds = [
        Round(rate=rate, p50=1, p99=p99, p999=2, cpu=cpu, errors=errors if number == 0 else 0)
        for number, rate in enumerate(rates)
    ]
    return Series(work=work, connections=connections, rounds=rounds)


def peer(name: str, *of_works: Series, differences: tuple[str, ...] = ()) -> PeerResults:
    return PeerResults(
        name=name,
        title=name.title(),
        versions="1.0",
        differences=list(differences),
        starts=[] if differences else [0.1, 0.3, 0.2],
        peak_megabytes=70,
        series=list(of_works),
    )


def results(*alone: PeerResults, shared: tuple[PeerResults, ...] = ()) -> Results:
    return Results(
        machine="2 cores, Example",
        system="Linux 6.1",
        load_average=0.2,
        fsync=Span(200, 150, 900),
        rounds=3,
        seconds=2,
        own_core=True,
        alone=list(alone),
        shared=list(shared),
    )


def target(what: str, measured: Results, connections: int = 32) -> Target:
    (found,) = [
        one for one in targets(measured) if (one.what, one.connections) == (what, connections)
    ]
    return found


@pytest.mark.parametrize(
    ("theirs", "expected"), [(100, ("≥ 45 ×", "45 ×", True)), (101, ("≥ 45 ×", "44.6 ×", False))]
)
def test_a_ratio_is_reached_from_the_wanted_one_on(
    theirs: int, expected: tuple[str, str, bool]
) -> None:
    measured = results(
        peer("petstore", series("list", 4500)), peer("fastapi", series("list", theirs))
    )
    assert target("list, vs the FastAPI stack", measured)[2:] == expected


def test_a_ratio_compares_the_medians_of_the_rounds() -> None:
    measured = results(
        peer("petstore", series("create", 9000, 1, 400)),
        peer("go", series("create", 100, 5000, 200)),
    )
    assert target("durable create, vs Go", measured).seen == "2 ×"


@pytest.mark.parametrize("connections", [32, 256])
@pytest.mark.parametrize("work", ["get", "deep page"])
def test_gets_and_deep_pages_are_compared_with_go_at_two_numbers_of_connections(
    work: str, connections: int
) -> None:
    measured = results(
        peer("petstore", series(work, 30, connections=connections)),
        peer("go", series(work, 20, connections=connections)),
    )
    assert target(f"{work}, vs Go", measured, connections)[2:] == ("≥ 1 ×", "1.5 ×", True)


def test_creates_on_one_connection_have_a_target_of_their_own() -> None:
    measured = results(
        peer("petstore", series("create", 7, connections=1)),
        peer("go", series("create", 10, connections=1)),
    )
    assert target("durable create, vs Go", measured, 1)[2:] == ("≥ 0.8 ×", "0.7 ×", False)


def test_the_cpu_of_a_list_must_be_below_the_go_peer() -> None:
    ours = peer("petstore", series("list", 9, cpu=20))
    what = "list, CPU of a request, vs Go"
    for theirs, is_met in ((21, True), (20, False)):
        go = peer("go", series("list", 9, cpu=theirs))
        assert target(what, results(ours, go)).is_met is is_met


def test_the_p99_of_the_mix_has_to_be_below_the_best_of_the_peers() -> None:
    ours = peer("petstore", series("mix", 9, p99=4))
    slow, quick = (peer(name, series("mix", 9, p99=ms)) for name, ms in (("a", 9), ("b", 3)))
    assert target("p99 of the mix", results(ours, slow)).is_met is True
    both = target("p99 of the mix", results(ours, slow, quick))
    assert both[2:] == ("below every peer's", "4.0 ms, B 3.0 ms", False)


def test_peers_on_postgresql_and_redis_are_compared_there() -> None:
    rates = {"petstore": 60, "fastapi": 10, "go": 80}
    there = (peer(name, series("list", rate)) for name, rate in rates.items())
    measured = results(peer("fastapi", series("list", 1)), shared=tuple(there))
    assert target("PostgreSQL + Redis, list, vs the FastAPI stack", measured).seen == "6 ×"
    assert target("PostgreSQL + Redis, list, vs Go", measured)[3:] == ("0.75 ×", True)


def test_a_target_is_open_while_one_of_the_two_was_not_measured() -> None:
    measured = results(peer("petstore", series("list", 60)))
    assert {(one.seen, one.is_met) for one in targets(measured)} == {("not measured", None)}


def test_rounds_with_failed_responses_do_not_count() -> None:
    measured = results(
        peer("petstore", series("list", 60)),
        peer("go", series("list", 10, 20, errors=3)),
    )
    assert target("list, vs Go", measured).seen == "not measured"
    assert "| 32 | Go | 3 responses failed: no figures |  |  |  |  |  |" in report(measured)


def test_a_row_has_median_min_max_and_the_ratio_to_ours() -> None:
    text = report(
        results(
            peer("petstore", series("get", 5000, 4000, 6000)),
            peer("go", series("get", 2500, cpu=40)),
        )
    )
    assert (
        "| 32 | Petstore | 5,000 (4,000-6,000) |  | 1.0 | 1.0 | 2.0 | 10 (10-10) |\n"
        "| 32 | Go | 2,500 (2,500-2,500) | 2 × | 1.0 | 1.0 | 2.0 | 40 (40-40) |\n"
    ) in text
    assert "| Go | 0.20 (0.10-0.30) | 70 | 1.0 |" in text


def test_a_peer_with_differences_has_them_listed_and_no_row() -> None:
    text = report(results(peer("go", differences=("a page has two animals",))))
    assert "- Go: a page has two animals" in text
    assert "| Go |" not in text


def test_the_report_has_the_machine_and_the_sharing_of_its_cores() -> None:
    text = report(results())
    assert "2 cores, Example; Linux 6.1; load average before 0.2" in text
    assert "has a core to itself" in text
