"""How long a command waits for a database, and what it says meanwhile."""

import pytest

from petstore.cli.pet_files import DatabaseWait
from petstore.errors import Unavailable

SLOW = Unavailable("the disk is slow")
LINE = "Waiting up to 300 s: the disk is slow\n"


class Now:
    """A time that only the test moves."""

    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_a_wait_ends_when_its_time_is_over_and_is_reported_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = Now()
    wait = DatabaseWait(now)
    assert wait.may_go_on(SLOW)
    now.seconds = 299
    assert wait.may_go_on(SLOW)
    now.seconds = 300
    assert not wait.may_go_on(SLOW)
    assert capsys.readouterr().err == LINE


def test_the_next_wait_is_a_new_one(capsys: pytest.CaptureFixture[str]) -> None:
    now = Now()
    wait = DatabaseWait(now)
    for now.seconds in (0, 1000):
        assert wait.may_go_on(SLOW)
        wait.end()
    assert capsys.readouterr().err == LINE * 2
