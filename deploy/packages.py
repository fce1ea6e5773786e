"""``make dist``: build the sdist and the wheel into ``dist/``, and see that each works alone."""

import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent


def build(folder: Path) -> list[Path]:
    """Build both packages of the checkout into an empty ``folder``; return their paths.

    The wheel is built of the unpacked sdist, which so has all that it takes. Nothing is downloaded.
    """
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory() as unpacked:
        _hatchling("sdist", folder, ROOT)
        (sdist,) = folder.iterdir()
        shutil.unpack_archive(sdist, unpacked, filter="data")
        _hatchling("wheel", folder, next(Path(unpacked).iterdir()))
    return sorted(folder.iterdir())


def _hatchling(target: str, folder: Path, source: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--target", target]
    subprocess.run([*command, "--directory", folder], cwd=source, check=True, stdout=sys.stderr)


def installed_version(package: Path) -> str:
    """Install a package into an environment of its own; return what ``petstore --version`` says.

    The environment takes the dependencies from this one, and not its checkout of petstore.
    """
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder, "bin", "python")
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        site = sysconfig.get_path("purelib", vars={"base": folder, "platbase": folder})
        Path(site, "dependencies.pth").write_text(sysconfig.get_path("purelib"))
        pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
        install = ("install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation")
        subprocess.run([*pip, *install, "--ignore-installed", package], check=True)
        command = [str(python.with_name("petstore")), "--version"]
        return subprocess.check_output(command, cwd=folder, text=True).strip()


def main() -> None:
    """Build both, install each and print what they are."""
    for package in build(ROOT / "dist"):
        print(f"{package.relative_to(ROOT)}: {installed_version(package)}")


if __name__ == "__main__":
    main()
