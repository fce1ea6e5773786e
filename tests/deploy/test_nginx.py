"""The nginx of the guide: the service holds its contract behind it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from petstore.console.console import PAGES
from support.process import ServerProcess, serving
from support.programs import needs
from support.proxies import GUIDE, NGINX, nginx, statuses_beside_a_stranger

runs_nginx = pytest.mark.skipif(NGINX is None, reason=needs("nginx"))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("service")
    with serving(folder, "--trusted-proxy", "127.0.0.1") as service:
        yield service


def test_nginx_passes_every_form_that_the_console_takes() -> None:
    (mebibytes,) = re.findall(r"client_max_body_size (\d+)m;", GUIDE.read_text("utf-8"))
    assert int(mebibytes) * 2**20 > max(page.max_bytes for page in PAGES)


@runs_nginx
def test_no_client_can_disrupt_the_connections_that_nginx_shares(
    tmp_path: Path, service: ServerProcess
) -> None:
    with nginx(tmp_path, service.port) as url:
        assert statuses_beside_a_stranger(url, service.issue()) == [200, 201] * 9
