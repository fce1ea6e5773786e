"""``make dist``, its last step: install the wheels on every Python of this machine and use them.

Each Python gets an environment of its own with what ``requirements.lock`` names, from the package
registry. There ``petstore serve --demo`` serves a request, and ``petstore-client`` sells a pet.
"""

import os
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from packages import ROOT

TIMEOUT = 60
"""Seconds that a service may take to start; only a fault reaches them."""
VERSION = "import platform; print(platform.python_version())"
SALE = """
from petstore_client import Client

with Client() as client:
    pet = client.pets.create(name="Bella", category_id=1, status="available")
    order = client.orders.place(pet_id=pet.id)
    client.orders.update(order.id, status="approved")
    client.orders.update(order.id, status="delivered")
    assert client.pets.get(pet.id).status == "sold"
"""


def pythons() -> dict[str, Path]:
    """Return each Python of this machine that the service supports, by its version."""
    names = [f"python3.{minor}" for minor in range(oldest_minor(), 100)]
    found = [Path(folder, name) for folder in folders() for name in names]
    there = [python for python in found if os.access(python, os.X_OK)]
    versions = {version(python): python for python in [*there, Path(sys.executable)]}
    return {name: versions[name] for name in sorted(versions) if name}


def folders() -> Iterator[str]:
    """Return the folders that may have a Python: those of the path and of pyenv."""
    yield from os.get_exec_path()
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from map(str, root.glob("versions/*/bin"))


def oldest_minor() -> int:
    """Return the number after ``3.`` in ``requires-python``."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return int(project["requires-python"].removeprefix(">=3."))


def version(python: Path) -> str:
    """Return what a Python says of itself, nothing if it does not start, as a shim of pyenv may."""
    said = subprocess.run([python, "-c", VERSION], capture_output=True, text=True, check=False)
    return said.stdout.strip()


def use_wheels(python: Path, wheels: list[Path]) -> None:
    """Install the wheels beside a Python, serve a demo store and sell a pet of it.

    Raises:
        CalledProcessError: a step failed, and has said why.
        HTTPError: the request failed.
        RuntimeError: the service did not start, or the response is no pet.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([python, "-m", "venv", folder / "env"], check=True)
        inside = folder / "env/bin/python"
        # Its own pip: that of Debian 12 does not run on Python 3.12.
        install = [str(inside), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        locked = ["--require-hashes", "--requirement", str(ROOT / "requirements.lock")]
        subprocess.run([*install, *locked], check=True)
        subprocess.run([*install, "--no-index", "--no-deps", *wheels], check=True)
        with demo(inside.with_name("petstore"), folder) as (url, token):
            headers = {"Authorization": f"Bearer {token}"}
            listed = httpx.get(f"{url}/pets?limit=1", headers=headers, timeout=TIMEOUT)
            if [pet["id"] for pet in listed.raise_for_status().json()] != [1]:
                msg = f"GET /v1/pets?limit=1: expected the first pet, not {listed.text}"
                raise RuntimeError(msg)
            known = {**os.environ, "PETSTORE_URL": url, "PETSTORE_KEY": token}
            subprocess.run([inside, "-c", SALE], cwd=folder, env=known, check=True)


@contextmanager
def demo(petstore: Path, folder: Path) -> Iterator[tuple[str, str]]:
    """Run ``petstore serve --demo`` in ``folder``; yield its URL and the token of its key."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(petstore), "serve", "--demo", "--port", str(port)]
    with (folder / "log").open("w+") as log:
        served = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=log)
        try:
            await_response(f"http://127.0.0.1:{port}/healthz", served)
            token = (folder / "petstore.db.demo-key").read_text().strip()
            yield f"http://127.0.0.1:{port}/v1", token
        except BaseException:
            sys.stderr.write((folder / "log").read_text())
            raise
        finally:
            served.terminate()
            served.wait(TIMEOUT)


def await_response(url: str, served: subprocess.Popen[bytes]) -> None:
    """Return once there is a response from ``url``.

    Raises:
        RuntimeError: the service has ended, or there was none for ``TIMEOUT``.
    """
    end = time.monotonic() + TIMEOUT
    while served.poll() is None and time.monotonic() < end:
        try:
            httpx.get(url, timeout=TIMEOUT)
        except httpx.ConnectError:
            time.sleep(0.05)
        else:
            return
    msg = "petstore serve --demo did not start"
    raise RuntimeError(msg)


def main() -> None:
    """Use the wheels on each Python, and print which it was."""
    wheels = sorted((ROOT / "dist").glob("*.whl"))
    for name, python in pythons().items():
        use_wheels(python, wheels)
        print(f"Python {name}: installed, served and sold")


if __name__ == "__main__":
    main()
