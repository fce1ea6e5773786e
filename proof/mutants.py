"""Change the pure modules, one expression at a time, and see that the tests beside them notice.

A mutant that no test notices is a survivor. It fails the run, unless ``equivalent_mutants.toml``
says why nothing can notice it. Each mutant has a fork of this process; nothing on disk changes.
"""

import argparse
import ast
import fcntl
import gc
import os
import resource
import signal
import sys
import time
import tomllib
from collections.abc import Collection, Mapping, Sequence
from contextlib import redirect_stdout
from importlib import import_module
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import NoReturn, TypeAlias

import pytest

from proof.mutations import Mutant, mutants_of

ROOT = Path(__file__).parent.parent
EQUIVALENTS = Path(__file__).with_name("equivalent_mutants.toml")

Table: TypeAlias = Mapping[str, Sequence[str]]
"""The modules, each with the tests beside it."""

# Structs for responses alone, or rules that only tests with a database try.
_WITHOUT_PURE_TESTS = {"domain/time_zones", "imports/model"}
_NAMES = sorted(
    name
    for pattern in ("domain/[!_]*.py", "*/model.py", "webhooks/signing.py")
    for path in ROOT.glob(f"src/petstore/{pattern}")
    if (name := f"{path.parent.name}/{path.stem}") not in _WITHOUT_PURE_TESTS
)
_NAMES += ["http/parser", "limits/decide", "generations"]
_OTHER_TESTS = {"generations": ["test_generations"]}
MODULES: Table = {
    f"src/petstore/{name}.py": [
        f"tests/{test}.py" for test in _OTHER_TESTS.get(name, [name.replace("/", "/test_")])
    ]
    for name in _NAMES
}

_AT_A_TIME = 2
_TIMES_LONGER = 10
_MIN_SECONDS = 1
_MAX_SECONDS = 300
_MAX_BYTES = 2 << 30
_PYTEST = (
    *("-x", "-q", "--tb=short", "--assert=plain", "--noconftest", "--import-mode=importlib"),
    *("-c", os.devnull, "--rootdir=.", "-p", "no:cacheprovider", "-p", "no:faulthandler"),
    *("-W", "error", "-W", "ignore::pytest.PytestUnknownMarkWarning"),
)


class _Fixtures:
    """What the tests need of tests/conftest.py, which imports the whole service."""

    @pytest.fixture
    def clock(self) -> object:
        return import_module("support.manual_clock").ManualClock()


def main(arguments: Sequence[str], table: Table = MODULES, equivalents: Path = EQUIVALENTS) -> int:
    """Try the mutants of the modules that are asked for, and return the exit status."""
    parser = argparse.ArgumentParser("mutants", description="Mutate the pure modules.")
    about_only = "this module alone, such as src/petstore/orders/model.py; may be repeated"
    parser.add_argument("--only", choices=table, action="append", metavar="M", help=about_only)
    parser.add_argument("--each", action="store_true", help="print every mutant")
    options = parser.parse_args(arguments)
    try:
        listed = tomllib.loads(equivalents.read_text())
        if not all(file in table and isinstance(listed[file], dict) for file in listed):
            parser.error(f"{equivalents.name}: expected a table of reasons for some of the modules")
    except (OSError, ValueError) as error:
        parser.error(f"{equivalents.name}: {error}")
    _end_with_parent()
    is_right = True
    for file in options.only or table:
        is_right &= _judge(file, table[file], listed.get(file, ()), each=options.each)
    return int(not is_right)


def _end_with_parent() -> None:
    """Go on in a fork which the kernel ends, with its own forks, as soon as this process ends."""
    watched, held = os.pipe()
    if process := os.fork():
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
    os.close(held)
    os.setsid()
    fcntl.fcntl(watched, fcntl.F_SETOWN, -os.getpid())  # SIGIO, which ends them, is for all
    fcntl.fcntl(watched, fcntl.F_SETFL, os.O_ASYNC)


def _judge(file: str, tests: Sequence[str], listed: Collection[str], *, each: bool) -> bool:
    """Print what becomes of the mutants of a module; return whether all is as expected."""
    survives = _tried(file, tests)
    gone = [name for name in listed if name not in {mutant.name for mutant in survives}]
    wrong = [f"listed, but does not exist: {file} {name}" for name in gone]
    for mutant, is_alive in survives.items():
        place = f"{file}:{mutant.line} {mutant.name}"
        if is_alive != (mutant.name in listed):
            wrong.append(f"{'survived' if is_alive else 'listed, but killed'}: {place}")
        elif each:
            print(f"{'equivalent' if is_alive else 'killed'}: {place}")
    killed = len(survives) - sum(survives.values())
    print(f"{file}: {killed} of {len(survives)} killed, {len(listed) - len(gone)} equivalent")
    print(*wrong, sep="\n", end="\n" if wrong else "", flush=True)
    return not wrong


def _tried(file: str, tests: Sequence[str]) -> dict[Mutant, bool]:
    """Try each mutant of a module, and return which of them survive."""
    tree = ast.parse(Path(file).read_text())
    if any("hypothesis" in Path(test).read_text() for test in tests):
        _make_properties_repeatable()
    with redirect_stdout(StringIO()) as output:
        before = time.process_time()
        if _run_tests(file, tree, tests):
            sys.exit(f"mutants: {file}: its tests fail without a change\n{output.getvalue()}")
        seconds = max(_MIN_SECONDS, round(_TIMES_LONGER * (time.process_time() - before)))
        for name in [*sys.modules]:  # a fork imports the project again, but not what that imports
            if name.partition(".")[0] in ("petstore", "support", "tests"):
                del sys.modules[name]
        gc.freeze()
        survives, running = dict.fromkeys(mutants_of(tree), False), dict[int, Mutant]()
        for mutant in survives:
            if len(running) == _AT_A_TIME:
                _wait(running, survives)
            if not (process := os.fork()):
                _try(mutant, file, tree, tests, seconds)
            running[process] = mutant
        while running:
            _wait(running, survives)
    return survives


def _make_properties_repeatable() -> None:
    """Let each run of the properties take the same examples."""
    from hypothesis import Phase, settings

    phases = (Phase.explicit, Phase.generate)
    settings.register_profile("mutants", settings.get_profile("ci"), phases=phases)
    settings.load_profile("mutants")


def _run_tests(file: str, tree: ast.Module, tests: Sequence[str]) -> int:
    """Run the tests with a module of this tree, and return the exit status of pytest."""
    name = file.removeprefix("src/").removesuffix(".py").replace("/", ".")
    module = sys.modules[name] = ModuleType(name)
    exec(compile(ast.fix_missing_locations(tree), file, "exec"), vars(module))  # noqa: S102
    return pytest.main([*_PYTEST, *tests], plugins=[_Fixtures()])


def _try(
    mutant: Mutant, file: str, tree: ast.Module, tests: Sequence[str], seconds: int
) -> NoReturn:
    """End this process, with status 0 if the mutant survives."""
    status = 1
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_DATA, (_MAX_BYTES, _MAX_BYTES))
        signal.alarm(_MAX_SECONDS)
        mutant.apply()
        status = _run_tests(file, tree, tests)
    finally:
        os._exit(status)


def _wait(running: dict[int, Mutant], survives: dict[Mutant, bool]) -> None:
    process, status = os.wait()
    survives[running.pop(process)] = status == 0


if __name__ == "__main__":
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    os.chdir(ROOT)
    sys.exit(main(sys.argv[1:]))
