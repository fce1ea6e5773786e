"""``make release VERSION=x.y.z``: check, set the version, build the packages, commit and tag."""

import argparse
import re
import subprocess
import sys
from datetime import UTC, datetime
from typing import NamedTuple

from packages import ROOT, build, installed_version

_SOURCE = ROOT / "src/petstore/__init__.py"
_WRITTEN = {
    _SOURCE: '__version__ = "{}"\n',
    ROOT / "clients/python/src/petstore_client/_version.py": '__version__ = "{}"\n',
    ROOT / "deploy/kubernetes/kustomization.yaml": "newTag: {}\n",
    # The commands call what the client of the same release has.
    ROOT / "pyproject.toml": '"petstore-client>={0.major}.{0.minor},<{0.next_major}"',
}
_CHANGELOG = ROOT / "CHANGELOG.md"
_SECTION = re.compile(r"^## \[Unreleased\]\n(.*?)(?=^## |^\[|\Z)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"^\[Unreleased\]: (\S+)v([0-9.]+)\.\.\.HEAD$", re.MULTILINE)


class Refusal(Exception):
    """Why there is no release; nothing was changed."""


class Version(NamedTuple):
    """A version as Semantic Versioning has it, without pre-releases."""

    major: int
    minor: int
    patch: int

    @classmethod
    def parse(cls, text: str) -> "Version":
        """Return the version that ``text`` is.

        Raises:
            Refusal: it is none.
        """
        match = re.fullmatch(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)", text, re.ASCII)
        if match is None:
            msg = f"VERSION: expected three numbers such as 1.2.0, not {text!r}"
            raise Refusal(msg)
        return cls(*map(int, match.groups()))

    @property
    def next_major(self) -> int:
        """The first major version after it."""
        return self.major + 1

    def __str__(self) -> str:
        return ".".join(map(str, self))


def check(version: Version) -> None:
    """See that a release may be made of what is here.

    Raises:
        Refusal: the tree is dirty, the version is not the next, or the changelog has nothing new.
    """
    changed = _git("status", "--porcelain")
    if changed:
        msg = f"the tree is not clean; commit or remove these first:\n{changed}"
        raise Refusal(msg)
    current = _current()
    if version < current:  # the first release has the version that is here
        msg = f"VERSION: expected {current}, the version here, or a later one, not {version}"
        raise Refusal(msg)
    if _git("tag", "--list", f"v{version}"):
        msg = f"the tag v{version} is there already"
        raise Refusal(msg)
    changelog = _CHANGELOG.read_text()
    section, link = _SECTION.search(changelog), _LINK.search(changelog)
    if section is None or link is None:
        msg = f"{_CHANGELOG.name}: expected a section [Unreleased] and its link"
        raise Refusal(msg)
    if "\n- " not in section[1]:
        msg = f"{_CHANGELOG.name}: the section [Unreleased] has no entries"
        raise Refusal(msg)
    if link[2] != str(current):
        msg = f"{_CHANGELOG.name}: the link of [Unreleased] begins at {link[2]}, not at {current}"
        raise Refusal(msg)


def set_version(version: Version) -> None:
    """Write the version where it stands, and give the entries of Unreleased to it."""
    current = _current()
    for path, form in _WRITTEN.items():
        text = path.read_text().replace(form.format(current), form.format(version))
        path.write_text(text)
    changelog = _CHANGELOG.read_text()
    today = datetime.now(UTC).date()
    changelog = changelog.replace(
        "## [Unreleased]\n", f"## [Unreleased]\n\n## [{version}] - {today}\n", 1
    )
    is_first = version == current
    changes = rf"../../releases/tag/v{version}" if is_first else rf"\1v\2...v{version}"
    links = rf"[Unreleased]: \1v{version}...HEAD\n[{version}]: {changes}"
    _CHANGELOG.write_text(_LINK.sub(links, changelog))


def _current() -> Version:
    (current,) = re.findall(r'^__version__ = "(.*)"$', _SOURCE.read_text(), re.MULTILINE)
    return Version.parse(current)


def check_packages(version: Version) -> None:
    """Build the packages and see that each says its version.

    Raises:
        Refusal: one says another.
    """
    for package in build(ROOT / "dist"):
        told = installed_version(package)
        if told != str(version):
            msg = f"{package.name} says: {told}"
            raise Refusal(msg)


def release(version: Version) -> None:
    """Make the release; when anything fails, put the files back as they were.

    Raises:
        Refusal: it may not be made.
        CalledProcessError: a check failed, and has said why.
    """
    check(version)
    subprocess.run(["make", "test", "COVERAGE=1"], cwd=ROOT, check=True)
    set_version(version)
    try:
        subprocess.run(["make", "docs"], cwd=ROOT, check=True)
        check_packages(version)
        _git("commit", "--quiet", "--all", "--message", f"Release {version}")
    except BaseException:
        _git("restore", "--staged", "--worktree", ".")
        raise
    _git("tag", "--annotate", f"v{version}", "--message", f"Petstore {version}")


def _git(*arguments: str) -> str:
    return subprocess.check_output(["git", *arguments], cwd=ROOT, text=True).rstrip()


def main() -> None:
    """Release the version that is named, or say in a line why not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("version")
    try:
        version = Version.parse(parser.parse_args().version)
        release(version)
    except Refusal as refusal:
        sys.exit(f"No release: {refusal}")
    except subprocess.CalledProcessError as error:
        sys.exit(f"No release: {' '.join(map(str, error.cmd))} failed")
    print(f"Petstore {version} is committed and tagged, its packages are in dist/.")
    print("Publish it with: git push --follow-tags")


if __name__ == "__main__":
    main()
