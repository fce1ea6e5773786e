"""The pid file: it tells of a service as long as one holds it, and of nothing else."""

from pathlib import Path

import pytest

from petstore.cli.pid_file import ReloadState, held_pid_file, read_pid_file


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "petstore.pid"


def test_a_file_that_is_not_there_tells_of_no_service(path: Path) -> None:
    assert read_pid_file(path) is None


def test_a_file_that_nobody_holds_tells_of_no_service(path: Path) -> None:
    path.write_text("1\n0\n0\n\n")
    assert read_pid_file(path) is None


def test_a_file_that_is_held_and_not_written_yet_tells_of_no_service(path: Path) -> None:
    with held_pid_file(path):
        assert read_pid_file(path) is None


def test_a_second_service_is_refused_the_file_of_another(path: Path) -> None:
    refused = pytest.raises(OSError, match="another service has this pid file")
    with held_pid_file(path) as first:
        first.write(ReloadState(7))
        with refused, held_pid_file(path):
            pass
        assert read_pid_file(path) == ReloadState(7)


def test_a_file_of_another_kind_is_refused_and_kept(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\x00")
    refused = pytest.raises(OSError, match="this file is there already, and is no pid file")
    with refused, held_pid_file(path):
        pass
    assert path.read_bytes() == b"SQLite format 3\x00"


def test_a_file_of_another_kind_that_somebody_holds_tells_of_no_service(path: Path) -> None:
    with held_pid_file(path):
        path.write_text("some\nother\nlines\nof text\n")
        assert read_pid_file(path) is None


def test_its_first_line_is_the_process_and_the_rest_is_of_reloads(path: Path) -> None:
    states = [ReloadState(7, 12, 12, "process 8 did not start"), ReloadState(7, 13, 12)]
    with held_pid_file(path) as file:
        for state in states:
            file.write(state)
            assert read_pid_file(path) == state
        assert path.read_text() == "7\n13\n12\n\n"


def test_what_a_killed_service_left_behind_is_taken_over(path: Path) -> None:
    path.write_text("123456\n99\n99\nsomething failed\n")
    with held_pid_file(path) as file:
        file.write(ReloadState(7))
        assert path.read_text() == "7\n0\n0\n\n"


def test_it_is_removed_at_the_end_whatever_ends_the_service(path: Path) -> None:
    with pytest.raises(SystemExit), held_pid_file(path):
        raise SystemExit(1)
    assert not path.exists()
