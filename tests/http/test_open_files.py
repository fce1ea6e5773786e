"""How many connections the limit of open files allows."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.process import free_port, is_ready
from support.waiting import within


@pytest.mark.parametrize(
    ("connections", "room", "files"), [(10, 10, 512), (2000, 2000, 2100), (20_000, 3996, 4096)]
)
def test_the_open_file_limit_is_raised_for_connections_or_limits_them(
    connections: int, room: int, files: int
) -> None:
    code = (
        "from petstore.http.server import room_for; from resource import *;"
        "setrlimit(RLIMIT_NOFILE, (512, 4096));"
        f"print(room_for({connections}), *getrlimit(RLIMIT_NOFILE))"
    )
    said = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert said == f"{room} {files} 4096\n"


def limited(hard: int, *arguments: str) -> list[str]:
    """Return a command that runs ``petstore`` with so many open files at most."""
    program = (sys.executable, "-m", "petstore", *arguments)
    return ["/bin/sh", "-c", f'ulimit -n {hard} && exec "$@"', "sh", *program]


@pytest.mark.parametrize(
    ("hard", "connections", "minimum"),
    [(199, 20_000, 200), (109, 10, 110)],
)
def test_too_few_open_files_are_refused_before_an_address_is_printed(
    tmp_path: Path, hard: int, connections: int, minimum: int
) -> None:
    refused = subprocess.run(
        limited(hard, "serve", "--max-connections", str(connections), "--log-format", "text"),
        cwd=tmp_path,
        env={**os.environ, "PETSTORE_LOG_FORMAT": "text"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == (
        f"Error: the limit of open files is {hard}; expected at least {minimum} (ulimit -Hn)\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_the_service_works_with_the_fewest_open_files_it_accepts(tmp_path: Path) -> None:
    port = free_port()
    with subprocess.Popen(
        limited(110, "serve", "--port", str(port), "--max-connections", "10"),
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            assert within(30, lambda: is_ready(f"http://127.0.0.1:{port}"))
        finally:
            process.terminate()
