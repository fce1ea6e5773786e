"""``make dist`` and ``make release``, on a repository of their own."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from petstore import __version__

ROOT = Path(__file__).parents[2]
COPIED = (
    *("CHANGELOG.md", "LICENSE", "README.md", "pyproject.toml", ".gitignore"),
    *("clients", "deploy", "src"),
)


NEXT = "99.1.0"
ENTRY = "### Added\n\n- Something that users notice.\n"


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
        passes = "test:\n\t@touch .git/tested\n\ndocs:\n\t@cp CHANGELOG.md .git/documented\n"
        (folder / "Makefile").write_text(passes)
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


# Refusals


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return Repository(tmp_path_factory.mktemp("unchanged"))


@pytest.fixture
def unchanged(prepared: Repository) -> Iterator[Repository]:
    """A repository that refusals leave as it is; what a test changes is reset."""
    begin = prepared.git("rev-parse", "HEAD")
    yield prepared
    prepared.git("reset", "--quiet", "--hard", begin)
    prepared.git("clean", "--quiet", "--force")


@pytest.mark.parametrize(
    ("version", "refusal"),
    [
        *(
            (text, f"VERSION: expected three numbers such as 1.2.0, not {text!r}")
            for text in ("", "v99.1.0", "99.1", "99.1.0-rc1", "99.01.0")
        ),
        ("0.9.9", f"VERSION: expected {__version__}, the version here, or a later one, not 0.9.9"),
        *((text, f"the tag v{text} is there already") for text in (__version__, "99.2.0")),
    ],
)
def test_a_version_that_cannot_be_released_is_refused(
    unchanged: Repository, version: str, refusal: str
) -> None:
    for tagged in (__version__, "99.2.0"):
        unchanged.git("tag", "--force", f"v{tagged}")
    assert unchanged.refusal(version) == refusal


def test_a_dirty_tree_is_refused_and_its_changes_are_listed(unchanged: Repository) -> None:
    (unchanged.folder / "README.md").write_text("draft")
    (unchanged.folder / "notes.txt").write_text("mine")
    refusal = unchanged.refusal()
    assert refusal.startswith("the tree is not clean; ")
    assert " M README.md\n?? notes.txt" in refusal


def test_a_failed_build_leaves_the_files_unchanged(unchanged: Repository) -> None:
    for name in ("LICENSE", "README.md"):
        (unchanged.folder / name).unlink()
    unchanged.commit()
    assert "hatchling build" in unchanged.refusal()


@pytest.mark.parametrize(
    ("file", "before", "after", "expected"),
    [
        ("Makefile", "@touch .git/tested", "@false", "make test COVERAGE=1 failed"),
        ("CHANGELOG.md", ENTRY, "### Added\n", "the section [Unreleased] has no entries"),
        *(
            ("CHANGELOG.md", lost, "## [Lost]", "expected a section [Unreleased] and its link")
            for lost in ("## [Unreleased]", "[Unreleased]: ")
        ),
        (
            "CHANGELOG.md",
            f"v{__version__}...HEAD",
            "v0.1.0...HEAD",
            f"the link of [Unreleased] begins at 0.1.0, not at {__version__}",
        ),
    ],
)
def test_without_passing_tests_and_a_complete_changelog_nothing_is_released(
    unchanged: Repository, file: str, before: str, after: str, expected: str
) -> None:
    path = unchanged.folder / file
    path.write_text(path.read_text().replace(before, after))
    unchanged.commit()
    assert unchanged.refusal().endswith(expected)
    assert f"v{NEXT}" not in unchanged.git("tag")


# A release


def test_a_release_is_tested_committed_tagged_and_has_complete_packages(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    done = repository.release()
    assert done.returncode == 0, done.stderr
    assert (repository.folder / ".git/tested").exists()
    assert repository.git("status", "--porcelain") == ""
    assert repository.git("log", "-1", "--format=%s") == f"Release {NEXT}"
    assert repository.git("rev-parse", f"v{NEXT}^{{commit}}") == repository.git("rev-parse", "HEAD")
    assert repository.git("cat-file", "-t", f"v{NEXT}") == "tag"
    changed = repository.git("show", "--format=", "--name-only", "HEAD").splitlines()
    image, code = "deploy/kubernetes/kustomization.yaml", "src/petstore/__init__.py"
    client = "clients/python/src/petstore_client/_version.py"
    assert changed == ["CHANGELOG.md", client, image, "pyproject.toml", code]
    assert '"petstore-client>=99.1,<100"' in (repository.folder / "pyproject.toml").read_text()
    assert f'__version__ = "{NEXT}"\n' in (repository.folder / client).read_text()
    assert f"newTag: {NEXT}\n" in (repository.folder / image).read_text()
    assert f'__version__ = "{NEXT}"\n' in (repository.folder / code).read_text()
    assert_has_its_section((repository.folder / "CHANGELOG.md").read_text())
    assert_has_its_section((repository.folder / ".git/documented").read_text())
    assert_hold_the_code_and_nothing_else(repository.folder / "dist")


def assert_has_its_section(changelog: str) -> None:
    beginning = rf"## \[Unreleased\]\n\n## \[{NEXT}\] - 20\d\d-\d\d-\d\d\n\n{re.escape(ENTRY)}"
    assert re.search(beginning, changelog)
    links = changelog[changelog.index("[Unreleased]: ") :].splitlines()
    assert links[0].endswith(f"/compare/v{NEXT}...HEAD")
    assert links[1].endswith(f"/compare/v{__version__}...v{NEXT}")


def assert_hold_the_code_and_nothing_else(packages: Path) -> None:
    about = {"LICENSE", "README.md", "pyproject.toml", "PKG-INFO", ".gitignore"}
    for name, source, more in (
        ("petstore_service", ROOT / "src/petstore", {"CHANGELOG.md"}),
        ("petstore_client", ROOT / "clients/python/src/petstore_client", set()),
    ):
        files = [path for path in source.rglob("*") if path.is_file() and path.suffix != ".pyc"]
        code = {str(path.relative_to(source.parent)) for path in files}
        with zipfile.ZipFile(packages / f"{name}-{NEXT}-py3-none-any.whl") as wheel:
            in_wheel = set(wheel.namelist())
        with tarfile.open(packages / f"{name}-{NEXT}.tar.gz") as sdist:
            in_sdist = set(sdist.getnames())
        scripts = {"entry_points.txt"} if name == "petstore_service" else set()
        told = {"METADATA", "WHEEL", "RECORD", "licenses/LICENSE"} | scripts
        assert in_wheel == code | {f"{name}-{NEXT}.dist-info/{each}" for each in told}
        expected = about | more | {f"src/{each}" for each in code}
        assert in_sdist == {f"{name}-{NEXT}/{each}" for each in expected}
        assert f"{source.name}/py.typed" in code
    needed = ("limits/judge.lua", "databases/migrations/sqlite_0001.sql", "site/files.json")
    assert [each for each in needed if not (ROOT / "src/petstore" / each).exists()] == []
