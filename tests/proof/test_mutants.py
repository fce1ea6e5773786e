"""``make mutants``: what survives, what is equivalent, and what fails the run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
MAIN = """
import sys
from pathlib import Path
from proof.mutants import main
names = ("killed", "loose", "listed", "hanging")
table = {f"src/petstore/{name}.py": [f"tests/test_{name}.py"] for name in names}
only = [f"--only=src/petstore/{name}.py" for name in sys.argv[1:]]
sys.exit(main(only, table, Path("equivalent.toml")))
"""
LARGER = "def larger(one, other):\n    return one if one > other else other\n"
LOOP = "def larger(one, other):\n    while one:\n        one = int()\n    return 2\n"
FIRST = "    assert larger(2, 1) == 2\n"
SECOND = "    assert larger(1, 2) == 2\n"
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
    ]:
        (package / f"{name}.py").write_text(module)
        head = f"from petstore.{name} import larger\n\ndef test_larger():\n"
        (tests / f"test_{name}.py").write_text(head + body)
    (tmp_path / "equivalent.toml").write_text(
        f'["src/petstore/killed.py"]\n"{EQUIVALENT}" = "Equal is equal."\n'
        f'["src/petstore/loose.py"]\n"{EQUIVALENT}" = "Equal is equal."\n'
        f'["src/petstore/listed.py"]\n"{EQUIVALENT}" = "Equal is equal."\n"{FALSE}" = "?"\n'
        '"larger: 1" = "?"\n["src/petstore/hanging.py"]\n"larger: one → False" = "It ends."\n'
    )
    return tmp_path


def tried(shop: Path, *names: str) -> subprocess.CompletedProcess[str]:
    """Try these modules in a process of their own: pytest runs in its forks.

    Their coverage is not measured: they are no part of the service, and some are killed.
    """
    unmeasured = {name: value for name, value in os.environ.items() if "COVERAGE" not in name}
    return subprocess.run(
        [sys.executable, "-c", MAIN, *names],
        cwd=shop,
        env=unmeasured
        | {"PYTHONPATH": f"{ROOT}:{shop}/src", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_surviving_mutant_or_an_outdated_list_entry_fails_the_run(shop: Path) -> None:
    run = tried(shop, "killed", "hanging", "loose", "listed")
    assert (run.returncode, run.stderr) == (1, "")
    assert run.stdout == (
        "src/petstore/killed.py: 3 of 4 killed, 1 equivalent\n"
        "src/petstore/hanging.py: 3 of 4 killed, 1 equivalent\n"
        "src/petstore/loose.py: 2 of 4 killed, 1 equivalent\n"
        f"survived: src/petstore/loose.py:2 {TRUE}\n"
        "src/petstore/listed.py: 3 of 4 killed, 2 equivalent\n"
        "listed, but does not exist: src/petstore/listed.py larger: 1\n"
        f"listed, but killed: src/petstore/listed.py:2 {FALSE}\n"
    )
