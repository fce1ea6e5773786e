"""``make mutants``: what survives, what is equivalent, and what fails the run."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from proof.mutants import main
from support.waiting import within

ROOT = Path(__file__).parent.parent.parent
MAIN = """
import sys
from pathlib import Path
from proof.mutants import main
names = ("killed", "loose", "listed", "hanging", "failing", "pausing")
table = {f"src/petstore/{name}.py": [f"tests/test_{name}.py"] for name in names}
only = [f"--only=src/petstore/{name}.py" for name in sys.argv[1:]]
sys.exit(main(only, table, Path("equivalent.toml")))
"""
LARGER = "def larger(one, other):\n    return one if one > other else other\n"
LOOP = "def larger(one, other):\n    while one:\n        one = int()\n    return 2\n"
FIRST = "    assert larger(2, 1) == 2\n"
SECOND = "    assert larger(1, 2) == 2\n"
PAUSE = "    if larger(1, 2) != 2:\n        open('begun', 'w').close()\n        signal.pause()\n"
EQUIVALENT = "larger: one > other → one >= other"
TRUE = "larger: one if one > other else other → one if True else other"
FALSE = "larger: one if one > other else other → one if False else other"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    package, tests = tmp_path / "src/petstore", tmp_path / "tests"
    package.mkdir(parents=True)
    tests.mkdir()
    (package / "__init__.py").touch()
    for name, module, body in [
        ("killed", LARGER, FIRST + SECOND),
        ("loose", LARGER, FIRST),
        ("listed", LARGER, FIRST + SECOND),
        ("hanging", LOOP, FIRST + SECOND),
        ("failing", LARGER, FIRST + "    assert larger(1, 2) == 1\n"),
        ("pausing", LARGER, PAUSE),
    ]:
        (package / f"{name}.py").write_text(module)
        head = f"import signal\nfrom petstore.{name} import larger\n\ndef test_larger():\n"
        (tests / f"test_{name}.py").write_text(head + body)
    (tmp_path / "equivalent.toml").write_text(
        f'["src/petstore/killed.py"]\n"{EQUIVALENT}" = "Equal is equal."\n'
        f'["src/petstore/loose.py"]\n"{EQUIVALENT}" = "Equal is equal."\n'
        f'["src/petstore/listed.py"]\n"{EQUIVALENT}" = "Equal is equal."\n"{FALSE}" = "?"\n'
        '"larger: 1" = "?"\n["src/petstore/hanging.py"]\n"larger: one → False" = "It ends."\n'
    )
    return tmp_path


def started(shop: Path, *names: str) -> subprocess.Popen[str]:
    """Try these modules in a process of their own: pytest runs in its forks.

    Their coverage is not measured: they are no part of the service, and some are killed.
    """
    unmeasured = {name: value for name, value in os.environ.items() if "COVERAGE" not in name}
    return subprocess.Popen(
        [sys.executable, "-c", MAIN, *names],
        cwd=shop,
        env=unmeasured
        | {"PYTHONPATH": f"{ROOT}:{shop}/src", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_surviving_mutant_or_an_outdated_list_entry_fails_the_run(shop: Path) -> None:
    with started(shop, "loose", "listed") as run:
        output, errors = run.communicate()
    assert (run.returncode, errors) == (1, "")
    assert output == (
        "src/petstore/loose.py: 2 of 4 killed, 1 equivalent\n"
        f"survived: src/petstore/loose.py:2 {TRUE}\n"
        "src/petstore/listed.py: 3 of 4 killed, 2 equivalent\n"
        "listed, but does not exist: src/petstore/listed.py larger: 1\n"
        f"listed, but killed: src/petstore/listed.py:2 {FALSE}\n"
    )


def test_an_equivalent_mutant_can_survive_and_a_hanging_one_is_killed(shop: Path) -> None:
    with started(shop, "killed", "hanging") as run:
        output, errors = run.communicate()
    assert (run.returncode, errors) == (0, "")
    assert output == (
        "src/petstore/killed.py: 3 of 4 killed, 1 equivalent\n"
        "src/petstore/hanging.py: 3 of 4 killed, 1 equivalent\n"
    )


def test_tests_that_fail_without_a_mutation_are_refused(shop: Path) -> None:
    with started(shop, "failing") as run:
        _, errors = run.communicate()
    assert run.returncode == 1
    assert errors.startswith("mutants: src/petstore/failing.py: its tests fail without a change\n")
    assert "Traceback" not in errors


def test_no_process_keeps_running_when_the_command_is_killed(shop: Path) -> None:
    with started(shop, "pausing") as run:
        assert within(60, (shop / "begun").exists)
        run.send_signal(signal.SIGKILL)
        assert run.communicate() == ("", "")  # it ends when no process has its output any more


@pytest.mark.parametrize(
    ("arguments", "equivalents", "error"),
    [
        (["--only", "stall.py"], "", "argument --only: invalid choice: 'stall.py'"),
        ([], "equivalent = 1", "equivalent.toml: expected a table of reasons for some of the"),
        ([], "[equivalent", "equivalent.toml: Expected ']' at the end"),
    ],
)
def test_invalid_arguments_and_lists_are_refused_with_a_message(
    arguments: list[str],
    equivalents: str,
    error: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "equivalent.toml").write_text(equivalents)
    with pytest.raises(SystemExit):
        main(arguments, {"shop.py": []}, tmp_path / "equivalent.toml")
    assert error in capsys.readouterr().err
