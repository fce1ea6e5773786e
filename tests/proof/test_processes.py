"""A run leaves no process behind, however it ends."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.waiting import within

ROOT = Path(__file__).parent.parent.parent
# It starts a process whose parent ends at once, in a session of its own, as a server does.
PROGRAM = """
import os, subprocess, sys, time
from proof.processes import guarded

def run():
    orphan = "import subprocess as s; print(s.Popen(['sleep', '600'], stdout=s.DEVNULL).pid)"
    left = subprocess.run(
        [sys.executable, "-c", orphan], start_new_session=True, stdout=subprocess.PIPE, text=True
    )
    print(left.stdout.strip(), flush=True)
    {ending}

sys.exit(guarded(run))
"""


@pytest.mark.parametrize(
    ("ending", "sent", "status"),
    [
        ("return 3", None, 3),
        ("os.kill(os.getpid(), 9)", None, -9),
        ("time.sleep(600)", signal.SIGTERM, 130),
    ],
)
def test_remaining_processes_are_killed_and_the_exit_status_is_kept(
    ending: str, sent: signal.Signals | None, status: int
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(ending=ending)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as run:
        assert run.stdout
        left = int(run.stdout.readline())
        if sent is not None:
            assert Path(f"/proc/{left}").exists()
            run.send_signal(sent)
        # The shell would say 128 + 9 of one that was killed.
        assert run.wait(30) in (status, status % 256)
        assert within(30, lambda: not Path(f"/proc/{left}").exists())
