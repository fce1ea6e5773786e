"""``make check ONLY=…``: which tests stand beside a package or a module."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
_ABOVE = [ROOT / name for name in ("src/petstore", "")]


def folder_of_tests(named: str) -> Path:
    """Return the folder of the tests of a package, or of the package that a module is in.

    Raises:
        ValueError: there is no such source, or it has no tests.
    """
    source = (ROOT / named).resolve()
    if not source.exists() or not source.is_relative_to(ROOT):
        msg = f"ONLY: expected a file or a folder such as src/petstore/domain, not {named!r}"
        raise ValueError(msg)
    if source.is_relative_to(ROOT / "clients/python"):
        return ROOT / "clients/python/tests"
    within = next(source.relative_to(path) for path in _ABOVE if source.is_relative_to(path))
    name = within.parts[0] if within.parts else ""
    folder = ROOT / "tests" / name.removesuffix(".py")
    tests = folder if folder.is_dir() else folder.with_name(f"test_{folder.name}.py")
    if not tests.exists():
        msg = f"ONLY: no tests stand beside {named}"
        raise ValueError(msg)
    return tests


def main() -> None:
    """Print the path of the tests; or say in a line why there are none."""
    try:
        print(folder_of_tests(" ".join(sys.argv[1:])).relative_to(ROOT))  # noqa: T201
    except ValueError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
