"""Ctrl-C while a command starts."""

import subprocess
import sys
from pathlib import Path

import pytest

# Interrupts itself before it imports a module.
PROGRAM = """
import os, runpy, signal, sys

class Interrupting:
    def find_spec(self, name, *_):
        if name == module:
            os.kill(os.getpid(), signal.SIGINT)

start, module, *sys.argv[1:] = sys.argv[1:]
sys.meta_path.insert(0, Interrupting())
if start == "module":
    runpy.run_module("petstore", run_name="__main__", alter_sys=True)
else:
    from petstore.__main__ import run
    run()
"""
AS_BACKGROUND_JOB = "trap '' INT; "


def run(folder: Path, arguments: str, shell: str = "") -> tuple[int, str, str]:
    """Return the exit status as a shell has it, and the output."""
    program = ["sh", "-c", f'{shell}"$@"; exit $?', "sh", sys.executable, "-c", PROGRAM]
    program += arguments.split()
    ended = subprocess.run(program, cwd=folder, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout, ended.stderr


@pytest.mark.parametrize("start", ["module", "script"])
@pytest.mark.parametrize(
    "arguments",
    [
        "petstore.cli.main --help",
        "click serve",
        "petstore.settings pets list",
        "petstore.cli.operator keys create --name app --plan free",
        "petstore.server.service serve",
    ],
)
def test_ctrl_c_during_an_import_ends_any_command_quietly(
    tmp_path: Path, start: str, arguments: str
) -> None:
    assert run(tmp_path, f"{start} {arguments}") == (130, "", "")


def test_a_background_job_ignores_ctrl_c(tmp_path: Path) -> None:
    status, printed, failure = run(tmp_path, "module click --version", AS_BACKGROUND_JOB)
    assert (status, failure) == (0, "")
    assert printed.startswith("petstore, version ")
