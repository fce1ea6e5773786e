"""The nginx of ``docs/proxy.md`` with other addresses, and without TLS."""

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.process import free_port
from support.waiting import within

GUIDE = Path(__file__).parents[2] / "docs/proxy.md"
# Debian puts it where only root looks.
PROGRAM = shutil.which("nginx", path=f"{os.defpath}:/usr/sbin")
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


@contextmanager
def nginx(folder: Path, instance: int) -> Iterator[str]:
    """Run it before the instance at a port until the block ends; give its URL."""
    assert PROGRAM is not None
    port = free_port()
    (config,) = re.findall(r"^```nginx\n(.*?)^```", GUIDE.read_text(), re.DOTALL | re.MULTILINE)
    for pattern, replacement in (
        (r"listen 443 ssl;", f"listen 127.0.0.1:{port};"),
        (r"ssl_certificate\S* \S+;\n", ""),
        (r"server 127.0.0.1:8000;", f"server 127.0.0.1:{instance};"),
    ):
        config, count = re.subn(pattern, replacement, config)
        assert count, pattern
    path = folder / "nginx.conf"
    path.write_text(_FRAME.format(folder=folder, config=config))
    arguments: list[str | Path] = [PROGRAM, "-e", "stderr", "-p", folder, "-c", path]
    with (folder / "nginx.log").open("wb") as log:
        process = subprocess.Popen(arguments, stdout=log, stderr=log)
    try:
        assert within(30, lambda: process.poll() is not None or _listens(port))
        assert process.poll() is None, (folder / "nginx.log").read_text()
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
