"""The pid file names a service as long as that service has it locked."""

import fcntl
import os
import threading
from pathlib import Path

import pytest

from petstore.server.pid_file import ReloadState, locked_pid_file, read_pid_file, require_free


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "petstore.pid"


def test_a_file_that_is_not_there_tells_of_no_service(path: Path) -> None:
    assert read_pid_file(path) is None


def test_a_file_that_nobody_holds_tells_of_no_service(path: Path) -> None:
    path.write_text("1\n0\n0\n\n")
    assert read_pid_file(path) is None


def test_a_file_that_is_held_and_not_written_yet_tells_of_no_service(path: Path) -> None:
    with locked_pid_file(path):
        assert read_pid_file(path) is None


def test_a_second_service_is_refused_the_file_of_another(path: Path) -> None:
    refused = pytest.raises(OSError, match="another service has this pid file")
    with locked_pid_file(path) as first:
        first.write(ReloadState(7))
        with refused, locked_pid_file(path):
            pass
        assert read_pid_file(path) == ReloadState(7)


def test_a_file_of_another_kind_that_somebody_holds_tells_of_no_service(path: Path) -> None:
    with locked_pid_file(path):
        path.write_text("some\nother\nlines\nof text\n")
        assert read_pid_file(path) is None


def test_its_first_line_is_the_process_and_the_rest_is_of_reloads(path: Path) -> None:
    states = [ReloadState(7, 12, 12, "process 8 did not start"), ReloadState(7, 13, 12)]
    with locked_pid_file(path) as file:
        for state in states:
            file.write(state)
            assert read_pid_file(path) == state
        assert path.read_text() == "7\n13\n12\n\n"


def test_the_pid_file_of_a_killed_service_is_taken_over(path: Path) -> None:
    path.write_text("123456\n99\n99\nsomething failed\n")
    with locked_pid_file(path) as file:
        file.write(ReloadState(7))
        assert path.read_text() == "7\n0\n0\n\n"


@pytest.mark.parametrize(
    "left", ["", "123\n", "123", "7\n13\n12\n\nof a longer reason\n"], ids=repr
)
def test_a_leftover_of_any_service_is_taken_over(path: Path, left: str) -> None:
    path.write_text(left)
    with locked_pid_file(path) as file:
        file.write(ReloadState(7))
        assert path.read_text() == "7\n0\n0\n\n"


@pytest.mark.parametrize("content", [b"SQLite format 3\0", b"7\nkeep this\n", b"\xff"])
def test_a_file_that_is_no_pid_file_is_not_written_or_removed(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    refused = pytest.raises(OSError, match="expected a pid file or no file; this is another file")
    with refused, locked_pid_file(path):
        pass
    assert path.read_bytes() == content


def test_a_link_is_not_followed(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.touch()
    path.symlink_to(target)
    reason = f"^{path}: expected a pid file or no file; this is a link$"
    with pytest.raises(OSError, match=reason), locked_pid_file(path):
        pass
    with pytest.raises(OSError, match=reason):
        require_free(path)
    assert path.is_symlink()


@pytest.mark.timeout(60)
def test_a_pipe_is_not_waited_for(path: Path) -> None:
    os.mkfifo(path)
    assert read_pid_file(path) is None
    with pytest.raises(OSError, match="another file"), locked_pid_file(path):
        pass
    assert path.is_fifo()


@pytest.mark.parametrize("first", ["0", "-1", "", "many", "7\nmany"])
def test_an_invalid_pid_is_ignored(path: Path, first: str) -> None:
    with locked_pid_file(path):
        path.write_text(f"{first}\n0\n0\n\n")
        assert read_pid_file(path) is None


def test_a_look_at_it_does_not_keep_a_service_from_starting(path: Path) -> None:
    path.touch()
    with path.open("rb") as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        timer = threading.Timer(0.1, fcntl.flock, (looking, fcntl.LOCK_UN))
        timer.start()
        with locked_pid_file(path):
            timer.join()


def test_a_service_that_ends_leaves_the_file_of_another_alone(path: Path) -> None:
    with locked_pid_file(path):
        path.unlink()
        path.write_text("8\n0\n0\n\n")
    assert path.read_text() == "8\n0\n0\n\n"


def test_a_file_that_is_removed_before_it_is_locked_is_made_anew(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = fcntl.flock
    removals = [path.unlink]

    def lock_late(*arguments: int) -> None:
        while removals:
            removals.pop()()
        lock(*arguments)

    monkeypatch.setattr(fcntl, "flock", lock_late)
    with locked_pid_file(path) as file:
        file.write(ReloadState(7))
        assert read_pid_file(path) == ReloadState(7)


def test_it_is_removed_at_the_end_whatever_ends_the_service(path: Path) -> None:
    with pytest.raises(SystemExit), locked_pid_file(path):
        raise SystemExit(1)
    assert not path.exists()
