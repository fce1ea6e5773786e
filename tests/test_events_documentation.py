"""The program of docs/events.md runs as it is printed."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from support.process import ServerProcess
from support.shop import Shop
from support.waiting import within

SECONDS = 30
PAGE = (Path(__file__).parent.parent / "docs/events.md").read_text()
(CONSUMER,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@contextmanager
def running(folder: Path, program: str, **environment: str) -> Iterator[Path]:
    output = folder / "output"
    with output.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=folder,
            env={**os.environ, **environment},
            stdout=file,
            stderr=subprocess.DEVNULL,
        )
    try:
        yield output
    finally:
        process.kill()
        process.wait()


def test_the_consumer_sees_every_event_and_resumes_where_it_stopped(
    server: ServerProcess, token: str, tmp_path: Path
) -> None:
    shop = Shop(f"{server.url}/v1", token)

    def new_pet() -> str:
        return f"pet.created pet/{shop.ask('pets', 'add', 'Rex', '--category', 1)['id']}"

    def newest_cursor() -> str:
        headers = {"Authorization": f"Bearer {token}"}
        page = httpx.get(f"{server.url}/v1/events?cursor=latest", headers=headers)
        return str(httpx.URL(page.links["latest"]["url"]).params["cursor"])

    first, saved = new_pet(), tmp_path / "cursor.txt"
    with running(tmp_path, CONSUMER, **shop.environment) as output:
        assert within(SECONDS, lambda: saved.exists() and saved.read_text() == newest_cursor())
        assert output.read_text().splitlines().count(first) == 1
    second = new_pet()
    with running(tmp_path, CONSUMER, **shop.environment) as output:
        assert within(SECONDS, lambda: output.read_text().splitlines() == [second])
        third = new_pet()
        assert within(SECONDS, lambda: output.read_text().splitlines() == [second, third])
