"""The nginx of ``docs/proxy.md`` and the HAProxy of ``deploy/``, with other addresses and times."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx

from support.deploy_files import DEPLOY
from support.process import free_port, listens
from support.waiting import within

GUIDE = DEPLOY.parent / "docs/proxy.md"
SHIPPED = DEPLOY / "haproxy"
# Debian puts them where only root looks. HAPROXY names another, to try other versions.
NGINX = shutil.which("nginx", path=f"{os.defpath}:/usr/sbin")
HAPROXY = os.environ.get("HAPROXY") or shutil.which("haproxy", path=f"{os.defpath}:/usr/sbin")
_FRAME = """
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log stderr;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/bodies;
    proxy_temp_path {folder}/proxied;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{config}
}}
"""
_SPOILING = ("close", "keep-alive, Close", "Upgrade")
_ROUNDS = 3


@contextmanager
def _running(
    command: list[str | Path], port: int, log: Path, variables: Mapping[str, str] | None = None
) -> Iterator[None]:
    with log.open("wb") as file:
        process = subprocess.Popen(
            command, env={**os.environ, **(variables or {})}, stdout=file, stderr=file
        )
    try:
        assert within(30, lambda: process.poll() is not None or listens(port))
        assert process.poll() is None, log.read_text()
        yield
    finally:
        process.terminate()
        process.wait(30)


def _replaced(config: str, patterns: Mapping[str, str]) -> str:
    for pattern, replacement in patterns.items():
        config, count = re.subn(pattern, replacement, config)
        assert count, pattern
    return config


@contextmanager
def nginx(folder: Path, instance: int) -> Iterator[str]:
    assert NGINX is not None
    port = free_port()
    (config,) = re.findall(r"^```nginx\n(.*?)^```", GUIDE.read_text(), re.DOTALL | re.MULTILINE)
    patterns = {
        r"listen 443 ssl;": f"listen 127.0.0.1:{port};",
        r"ssl_certificate\S* \S+;\n": "",
        r"server 127.0.0.1:8000;": f"server 127.0.0.1:{instance};",
    }
    path = folder / "nginx.conf"
    path.write_text(_FRAME.format(folder=folder, config=_replaced(config, patterns)))
    command: list[str | Path] = [NGINX, "-e", "stderr", "-p", folder, "-c", path]
    with _running(command, port, folder / "nginx.log"):
        yield f"http://127.0.0.1:{port}"


def haproxy_version() -> tuple[int, ...]:
    if HAPROXY is None:
        return (0,)
    said = subprocess.run([HAPROXY, "-v"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"version ([0-9.]+)", said)
    assert found
    return tuple(map(int, found[1].rstrip(".").split(".")))


class HaProxy(NamedTuple):
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
    assert HAPROXY is not None
    port = free_port()
    patterns = {
        r"\bbind :\d+": f"bind 127.0.0.1:{port}",
        r"\bserver (petstore-\d) \S+": rf"server \1 127.0.0.1:{instance}",
    }
    patterns |= {rf"\b{name} .*": f"{name} {value}" for name, value in (replaced or {}).items()}
    shutil.copytree(SHIPPED, folder, dirs_exist_ok=True)
    path = folder / "haproxy.cfg"
    path.write_text(_replaced(path.read_text(), patterns))
    running = HaProxy(port, folder / "haproxy.log")
    tls = {"TLS_CERTIFICATE": str(certificate)} if certificate else {}
    with _running([HAPROXY, "-f", path], port, running.log, tls):
        yield running


def statuses_beside_a_stranger(url: str, token: str, *, instances: int = 1) -> list[int]:
    """Return the statuses of a client while another, without a key, tries to end its connection.

    The proxy sends the requests to so many ``instances`` in turn.
    """
    found = []
    key = {"Authorization": f"Bearer {token}"}
    bella = {"name": "Bella", "categoryId": 1}
    with httpx.Client(base_url=f"{url}/v1") as stranger, httpx.Client(base_url=f"{url}/v1") as own:
        for value in _SPOILING * _ROUNDS:
            for method, body in (("GET", None), ("POST", bella)):
                for _ in range(instances):
                    stranger.get("/pets", headers={"Proxy-Connection": value})
                for _ in range(instances):
                    response = own.request(method, "/pets", headers=key, json=body)
                    found.append(response.status_code)
    return found
