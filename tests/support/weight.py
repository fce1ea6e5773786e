"""What the project weighs, against a budget that only falls: ``make weight``."""

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUDGET = ROOT / "weight.toml"


def main() -> int:
    is_too_heavy = False
    for name, part in tomllib.loads(BUDGET.read_text(encoding="utf-8")).items():
        weight, budget = sum(_weight_of(path) for path in _files(*part["files"])), part["budget"]
        is_too_heavy |= weight > budget
        told = "remove something" if weight > budget else "write it in" if weight < budget else ""
        sys.stdout.write(f"{name:<28}{weight:>8,} of {budget:>8,}  {told}".rstrip() + "\n")
    return int(is_too_heavy)


def _files(*patterns: str) -> list[Path]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    # What is deleted and not yet committed is listed as well.
    return [path for name in listed.stdout.split() if (path := ROOT / name).is_file()]


def _weight_of(path: Path) -> int:
    text = path.read_text(encoding="utf-8")
    return text.count("\n") if path.suffix == ".py" else len(text.split())


if __name__ == "__main__":
    sys.exit(main())
