"""The HAProxy of ``deploy/`` with other addresses and times."""

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from support.deploy_files import DEPLOY
from support.process import free_port
from support.waiting import within

SHIPPED = DEPLOY / "haproxy"
# Debian puts it where only root looks. HAPROXY names another, to try other versions.
PROGRAM = os.environ.get("HAPROXY") or shutil.which("haproxy", path=f"{os.defpath}:/usr/sbin")


def haproxy_version() -> tuple[int, ...]:
    if PROGRAM is None:
        return (0,)
    said = subprocess.run([PROGRAM, "-v"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"version ([0-9.]+)", said)
    assert found
    return tuple(map(int, found[1].rstrip(".").split(".")))


class HaProxy(NamedTuple):
    """A balancer that is running: the port it listens on and what it logs to."""

    port: int
    log: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def haproxy(
    folder: Path,
    instance: int,
    certificate: Path | None = None,
    replaced: Mapping[str, str] | None = None,
) -> Iterator[HaProxy]:
    """Balance over the instance at a port until the block ends.

    ``certificate`` holds a certificate and its key. ``replaced`` changes settings by the words they
    begin with: ``{"timeout server": "200ms"}``.
    """
    assert PROGRAM is not None
    port = free_port()
    config = _adapted((SHIPPED / "haproxy.cfg").read_text(), port, instance, replaced or {})
    shutil.copytree(SHIPPED, folder, dirs_exist_ok=True)
    (folder / "haproxy.cfg").write_text(config)
    running = HaProxy(port, folder / "haproxy.log")
    tls = {"TLS_CERTIFICATE": str(certificate)} if certificate else {}
    with running.log.open("wb") as log:
        process = subprocess.Popen(
            [PROGRAM, "-f", folder / "haproxy.cfg"],
            env={**os.environ, **tls},
            stdout=log,
            stderr=log,
        )
    try:
        assert within(30, lambda: process.poll() is not None or _listens(port))
        assert process.poll() is None, running.log.read_text()
        yield running
    finally:
        process.terminate()
        process.wait(30)


def _adapted(config: str, port: int, instance: int, replaced: Mapping[str, str]) -> str:
    patterns = {
        r"\bbind :\d+": f"bind 127.0.0.1:{port}",
        r"\bserver (petstore-\d) \S+": rf"server \1 127.0.0.1:{instance}",
    }
    patterns |= {rf"\b{name} .*": f"{name} {value}" for name, value in replaced.items()}
    for pattern, replacement in patterns.items():
        config, count = re.subn(pattern, replacement, config)
        assert count, pattern
    return config


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
