"""``make dist``: build sdist and wheel of both distributions, and see that each works alone."""

import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
# The service needs the client, so that comes first. Names as they are in the names of files.
SOURCES = {"petstore_client": ROOT / "clients/python", "petstore_service": ROOT}


def build(folder: Path) -> list[Path]:
    """Build the packages of both distributions into an empty ``folder``; return their paths.

    A wheel is built from the unpacked sdist, so this shows that the sdist is complete. Nothing is
    downloaded.
    """
    shutil.rmtree(folder, ignore_errors=True)
    for name, source in SOURCES.items():
        with tempfile.TemporaryDirectory() as unpacked:
            _hatchling("sdist", folder, source)
            (sdist,) = folder.glob(f"{name}-*.tar.gz")
            with tarfile.open(sdist) as archive:
                # Python has filters from 3.11.4 on; without one, it unpacks our own archive too.
                archive.extraction_filter = getattr(tarfile, "data_filter", None)
                archive.extractall(unpacked)  # noqa: S202 - it was built a moment ago
            _hatchling("wheel", folder, next(Path(unpacked).iterdir()))
    return sorted(folder.iterdir())


def _hatchling(target: str, folder: Path, source: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--target", target]
    subprocess.run([*command, "--directory", folder], cwd=source, check=True, stdout=sys.stderr)


def installed_version(package: Path) -> str:
    """Install a package into an environment of its own; return the version that it says.

    The environment has the dependencies of this one, but not its checkout. The service gets the
    client from the same folder.
    """
    name, _, _ = package.name.partition("-")
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder, "bin", "python")
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        site = sysconfig.get_path("purelib", vars={"base": folder, "platbase": folder})
        Path(site, "dependencies.pth").write_text(sysconfig.get_path("purelib"))
        if name == "petstore_service":
            needed = [package, *package.parent.glob("petstore_client-*.whl")]
            command = [str(python.with_name("petstore")), "--version"]
        else:
            needed = [package]
            command = [str(python), "-c", f"import {name}; print({name}.__version__)"]
        install(
            python, "--no-index", "--no-deps", "--no-build-isolation", "--ignore-installed", *needed
        )
        said = subprocess.check_output(command, cwd=folder, text=True).strip()
        return said.removeprefix("petstore, version ")


def install(python: Path, *arguments: str | Path) -> None:
    """Install packages beside ``python`` with the pip of this environment."""
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
    subprocess.run([*pip, "install", "--quiet", *arguments], check=True)


def main() -> None:
    """Build all, install each and print which version it says."""
    for package in build(ROOT / "dist"):
        print(f"{package.relative_to(ROOT)}: {installed_version(package)}")


if __name__ == "__main__":
    main()
