"""The report on growth compares the largest size with the smallest."""

from growth_report import Cell, Growth, report
from rounds import Round


def cell(size: int, *rates: float, megabytes: float = 80, errors: int = 0) -> Cell:
    rounds = [Round(rate=rate, p50=1, p99=2, p999=3, cpu=50, errors=errors) for rate in rates]
    return Cell(grows="keys", work="get", size=size, megabytes=megabytes, rounds=rounds)


def text(*cells: Cell) -> str:
    return report(
        Growth(
            machine="2 cores, Example",
            system="Linux 6.1",
            load_average=0.2,
            rounds=3,
            seconds=2,
            cells=list(cells),
        )
    )


def test_a_time_is_measured_over_sequential_requests() -> None:
    written = text(cell(1, 10_000, 8_000, 12_500), cell(1000, 8_000))
    assert "| get: time, µs | 100 (80-125) | 125 (125-125) | 1.25 ×, within |" in written
    assert "| get: CPU, µs | 50 (50-50) | 50 (50-50) | 1.00 ×, within |" in written


def test_more_than_three_tenths_on_top_are_beyond() -> None:
    assert "| 1.31 ×, beyond |" in text(cell(1, 1_310), cell(1000, 1_000))


def test_sizes_come_in_ascending_order_whatever_the_order_of_measuring() -> None:
    assert "|  | 1 | 1,000 | largest to smallest |" in text(cell(1000, 9), cell(1, 9))


def test_memory_is_given_for_each_that_is_more() -> None:
    written = text(cell(0, 9, megabytes=80), cell(1024, 9, megabytes=82))
    assert "| memory, MB | 80 | 82 | 2,048 bytes each |" in written


def test_a_size_with_failed_responses_is_compared_with_nothing() -> None:
    written = text(cell(1, 9, 9, errors=2), cell(1000, 9))
    assert "| get: CPU, µs | 4 responses failed | 50 (50-50) |  |" in written
