"""``make dist`` and ``make release``, on a repository of their own."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from petstore import __version__

ROOT = Path(__file__).parents[2]
COPIED = (
    *("CHANGELOG.md", "LICENSE", "README.md", "pyproject.toml", ".gitignore"),
    *("clients", "deploy", "src"),
)


def code_in(package: Path) -> set[str]:
    return {
        str(path.relative_to(package.parent))
        for path in package.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }


CODE = code_in(ROOT / "src/petstore")
CODE_OF_CLIENT = code_in(ROOT / "clients/python/src/petstore_client")
NEXT = "99.1.0"
ENTRY = "### Added\n\n- Something that users notice.\n"
PASSES = "test:\n\t@touch .git/tested\n\ndocs:\n\t@cp CHANGELOG.md .git/documented\n"


class Repository:
    """A project like this one with something to release, whose tests pass."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in COPIED:
            if (ROOT / name).is_dir():
                ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
                shutil.copytree(ROOT / name, folder / name, ignore=ignored)
            else:
                shutil.copy(ROOT / name, folder)
        (folder / "Makefile").write_text(PASSES)
        changelog = (folder / "CHANGELOG.md").read_text()
        before, unreleased, after = changelog.partition("## [Unreleased]\n")
        _, after = re.split(r"^(?=\[|## \[)", after, maxsplit=1, flags=re.MULTILINE)
        (folder / "CHANGELOG.md").write_text(f"{before}{unreleased}\n{ENTRY}\n{after}")
        self.git("init", "--quiet", "--initial-branch=main")
        self.commit()

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "Work")

    def git(self, *arguments: str) -> str:
        return self._run("git", *arguments, check=True).stdout.strip()

    def release(self, version: str = NEXT) -> subprocess.CompletedProcess[str]:
        return self._run(sys.executable, "deploy/release.py", version, check=False)

    def refusal(self, version: str = NEXT) -> str:
        """Return why there is no release, and see that nothing has changed."""
        before = self.git("rev-parse", "HEAD"), self.git("status", "--porcelain")
        done = self.release(version)
        assert done.returncode == 1
        assert (self.git("rev-parse", "HEAD"), self.git("status", "--porcelain")) == before
        _, line, refusal = done.stderr.partition("No release: ")
        assert line
        return refusal.strip()

    def _run(self, *command: str, check: bool) -> subprocess.CompletedProcess[str]:
        person = {
            f"GIT_{role}_{field}": "a@b"
            for role in ("AUTHOR", "COMMITTER")
            for field in ("NAME", "EMAIL")
        }
        settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        return subprocess.run(
            command,
            cwd=self.folder,
            env={**os.environ, **person, **settings, "PIP_NO_INDEX": "1"},
            capture_output=True,
            text=True,
            timeout=280,
            check=check,
        )


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


# Refusals


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """A repository that refusals leave as it is; a test resets what it changes itself."""
    return Repository(tmp_path_factory.mktemp("unchanged"))


@pytest.mark.parametrize("version", ["", "v99.1.0", "99.1", "99.1.0-rc1", "99.01.0"])
def test_an_invalid_version_is_refused(unchanged: Repository, version: str) -> None:
    expected = f"VERSION: expected three numbers such as 1.2.0, not {version!r}"
    assert unchanged.refusal(version) == expected


# A release


def test_a_release_is_tested_committed_tagged_and_has_complete_packages(
    repository: Repository,
) -> None:
    done = repository.release()
    assert done.returncode == 0, done.stderr
    assert (repository.folder / ".git/tested").exists()
    assert repository.git("status", "--porcelain") == ""
    assert repository.git("log", "-1", "--format=%s") == f"Release {NEXT}"
    assert repository.git("rev-parse", f"v{NEXT}^{{commit}}") == repository.git("rev-parse", "HEAD")
    assert repository.git("cat-file", "-t", f"v{NEXT}") == "tag"
    assert_has_its_version(repository)
    assert_has_its_section((repository.folder / "CHANGELOG.md").read_text())
    assert_has_its_section((repository.folder / ".git/documented").read_text())
    assert_hold_the_code_and_nothing_else(repository.folder / "dist")
    assert_hold_the_code_of_the_client(repository.folder / "dist")


def assert_has_its_version(repository: Repository) -> None:
    changed = repository.git("show", "--format=", "--name-only", "HEAD").splitlines()
    image, code = "deploy/kubernetes/kustomization.yaml", "src/petstore/__init__.py"
    client = "clients/python/src/petstore_client/_version.py"
    assert changed == ["CHANGELOG.md", client, image, "pyproject.toml", code]
    project = (repository.folder / "pyproject.toml").read_text()
    assert '"petstore-client>=99.1,<100"' in project
    assert f'__version__ = "{NEXT}"\n' in (repository.folder / client).read_text()
    assert f"newTag: {NEXT}\n" in (repository.folder / image).read_text()
    assert f'__version__ = "{NEXT}"\n' in (repository.folder / code).read_text()


def assert_has_its_section(changelog: str) -> None:
    beginning = rf"## \[Unreleased\]\n\n## \[{NEXT}\] - 20\d\d-\d\d-\d\d\n\n{re.escape(ENTRY)}"
    assert re.search(beginning, changelog)
    links = changelog[changelog.index("[Unreleased]: ") :].splitlines()
    assert links[0].endswith(f"/compare/v{NEXT}...HEAD")
    assert links[1].endswith(f"/compare/v{__version__}...v{NEXT}")


def assert_hold_the_code_and_nothing_else(dist: Path) -> None:
    with zipfile.ZipFile(dist / f"petstore_service-{NEXT}-py3-none-any.whl") as wheel:
        in_wheel = set(wheel.namelist())
    about = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}
    assert in_wheel == CODE | {f"petstore_service-{NEXT}.dist-info/{name}" for name in about}
    with tarfile.open(dist / f"petstore_service-{NEXT}.tar.gz") as sdist:
        in_sdist = set(sdist.getnames())
    about = {"CHANGELOG.md", "LICENSE", "README.md", "pyproject.toml", "PKG-INFO", ".gitignore"}
    files = about | {f"src/{name}" for name in CODE}
    assert in_sdist == {f"petstore_service-{NEXT}/{name}" for name in files}
    needed = ("py.typed", "limits/judge.lua", "databases/migrations/sqlite_0001.sql")
    assert {f"petstore/{name}" for name in (*needed, "site/files.json")} <= CODE


def assert_hold_the_code_of_the_client(dist: Path) -> None:
    name = f"petstore_client-{NEXT}"
    with zipfile.ZipFile(dist / f"{name}-py3-none-any.whl") as wheel:
        in_wheel = set(wheel.namelist())
    about = {"METADATA", "WHEEL", "RECORD", "licenses/LICENSE"}
    assert in_wheel == CODE_OF_CLIENT | {f"{name}.dist-info/{each}" for each in about}
    with tarfile.open(dist / f"{name}.tar.gz") as sdist:
        in_sdist = set(sdist.getnames())
    files = {"LICENSE", "README.md", "pyproject.toml", "PKG-INFO", ".gitignore"}
    files |= {f"src/{each}" for each in CODE_OF_CLIENT}
    assert in_sdist == {f"{name}/{each}" for each in files}
    assert "petstore_client/py.typed" in CODE_OF_CLIENT
