"""What was measured is judged: a target that is missed, and what grows, is reported."""

import pytest

import growth_report
import soak_report
from growth_report import Cell, Growth
from report import Target, report, targets
from results import ComparedSeries as Series
from results import PeerResults, Results
from rounds import Round
from soak_report import Slice, Soak
from tables import Span


def measured(rate: float = 9_000, p99: float = 1, cpu: float = 10, errors: int = 0) -> Round:
    return Round(rate=rate, p50=1, p99=p99, p999=2, cpu=cpu, errors=errors)


def peer(
    name: str, work: str, *rounds: Round, connections: int = 32, megabytes: float = 70
) -> PeerResults:
    return PeerResults(
        name=name,
        title=name.title(),
        versions="1.0",
        differences=[],
        starts=[0.1, 0.3, 0.2],
        megabytes=megabytes,
        series=[Series(work=work, connections=connections, rounds=list(rounds))],
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


def target(what: str, compared: Results, connections: int = 32) -> Target:
    (found,) = [
        one for one in targets(compared) if (one.what, one.connections) == (what, connections)
    ]
    return found


@pytest.mark.parametrize(
    ("lists", "expected"), [(10_000, ("0.8 ×", True)), (10_001, ("0.799 ×", False))]
)
def test_the_mix_is_compared_with_the_lists_of_the_same_service(
    lists: int, expected: tuple[str, bool]
) -> None:
    ours = peer("petstore", "mix", measured(8_000))
    ours.series.extend(peer("petstore", "list", measured(lists)).series)
    assert target("mix, vs lists alone", results(ours))[3:] == expected


@pytest.mark.parametrize(
    ("what", "work", "other", "ours", "theirs", "connections", "expected"),
    [
        ("list, vs the FastAPI stack", "list", "fastapi", 4500, 100, 32, ("45 ×", True)),
        ("list, vs the FastAPI stack", "list", "fastapi", 4500, 101, 32, ("44.5 ×", False)),
        ("mix, vs Go", "mix", "go", 1797, 1000, 32, ("1.79 ×", False)),
        ("get, vs Go", "get", "go", 30, 20, 256, ("1.5 ×", True)),
        ("deep page, vs Go", "deep page", "go", 30, 20, 32, ("1.5 ×", True)),
        ("durable create, vs Go", "create", "go", 7, 10, 1, ("0.7 ×", False)),
    ],
)
def test_a_ratio_is_met_from_the_target_upward(
    what: str,
    work: str,
    other: str,
    ours: int,
    theirs: int,
    connections: int,
    expected: tuple[str, bool],
) -> None:
    compared = results(
        *(
            peer(name, work, measured(rate), connections=connections)
            for name, rate in (("petstore", ours), (other, theirs))
        )
    )
    assert target(what, compared, connections)[3:] == expected


def test_a_ratio_compares_the_medians_of_the_rounds() -> None:
    ours, theirs = (map(measured, rates) for rates in ((9000, 1, 400), (100, 5000, 200)))
    compared = results(peer("petstore", "create", *ours), peer("go", "create", *theirs))
    assert target("durable create, vs Go", compared).seen == "2 ×"


@pytest.mark.parametrize(("theirs", "is_met"), [(21, True), (20, False)])
def test_the_cpu_of_a_list_must_be_below_the_go_peer(theirs: int, *, is_met: bool) -> None:
    ours, go = peer("petstore", "list", measured(cpu=20)), peer("go", "list", measured(cpu=theirs))
    assert target("list, CPU of a request, vs Go", results(ours, go)).is_met is is_met


@pytest.mark.parametrize(("quickest", "is_met"), [(9, True), (3, False)])
def test_the_p99_of_the_mix_must_be_below_the_best_of_the_peers(
    quickest: int, *, is_met: bool
) -> None:
    times = {"petstore": 4, "a": 9, "b": quickest}
    peers = (peer(name, "mix", measured(p99=p99)) for name, p99 in times.items())
    assert target("p99 of the mix", results(*peers)).is_met is is_met


@pytest.mark.parametrize(("megabytes", "is_met"), [(100, True), (101, False)])
def test_the_memory_after_all_works_must_be_100_megabytes_at_most(
    megabytes: int, *, is_met: bool
) -> None:
    ours = peer("petstore", "list", measured(), megabytes=megabytes)
    found = target("memory after all works", results(ours))
    assert found[3:] == (f"{megabytes} MB", is_met)


def test_peers_on_postgresql_and_redis_are_compared_on_the_same_back_ends() -> None:
    rates = {"petstore": 60, "fastapi": 10, "go": 80}
    there = tuple(peer(name, "list", measured(rate)) for name, rate in rates.items())
    compared = results(peer("fastapi", "list", measured(1)), shared=there)
    assert target("PostgreSQL + Redis, list, vs the FastAPI stack", compared).seen == "6 ×"
    assert target("PostgreSQL + Redis, list, vs Go", compared)[3:] == ("0.75 ×", False)


def test_failed_responses_leave_a_target_unmet() -> None:
    failing = peer("go", "list", measured(errors=3))
    compared = results(peer("petstore", "list", measured()), failing)
    assert target("list, vs Go", compared)[3:] == ("not measured", None)
    assert "| 32 | Go | 3 responses failed: no figures |" in report(compared)


@pytest.mark.parametrize(
    ("last", "errors", "is_steady"),
    [((81, 5), 0, True), ((85, 5), 0, False), ((80, 7), 0, False), ((80, 5), 1, False)],
    ids=["steady", "memory", "latency", "failures"],
)
def test_a_long_run_with_growing_memory_or_latency_or_failures_is_not_steady(
    last: tuple[float, float], errors: int, *, is_steady: bool
) -> None:
    slices = [
        Slice(until=10, megabytes=megabytes, load=measured(p99=p99, errors=errors))
        for megabytes, p99 in ((80, 5), (95, 50), last)
    ]
    run = Soak(machine="2 cores", system="Linux 6.1", load_average=0.2, slices=slices)
    assert run.is_steady is is_steady
    assert (": not steady." in soak_report.report(run)) is not is_steady


@pytest.mark.parametrize(
    ("rate", "errors", "said"),
    [
        (1_010, 0, "| 1.30 ×, within |"),
        (1_000, 0, "| 1.31 ×, beyond |"),
        (1_000, 2, "| 2 responses failed |"),
    ],
)
def test_a_time_that_grows_by_more_than_30_percent_with_size_exceeds_the_limit(
    rate: float, errors: int, said: str
) -> None:
    sizes = {1_000: measured(rate, errors=errors), 1: measured(1_310)}
    cells = [
        Cell(grows="keys", work="get", size=size, megabytes=80, rounds=[one])
        for size, one in sizes.items()
    ]
    growth = Growth(
        machine="2 cores", system="Linux 6.1", load_average=0.2, rounds=1, seconds=2, cells=cells
    )
    assert said in growth_report.report(growth)
