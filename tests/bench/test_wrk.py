"""The load generator sends requests that never repeat."""

import re
import shutil
import socketserver
from threading import Thread

import pytest

from works import IDS, get, with_ids
from wrk import put_load

IDS_OF_A_REQUEST = re.compile(
    rb"\r\nX-Request-Id: ([0-9a-f]{32})\r\ntraceparent: 00-([0-9a-f]{32})-([0-9a-f]{16})-01\r\n\r\n"
)


class Recorder(socketserver.StreamRequestHandler):
    """Responds to each request, and keeps it."""

    requests: list[bytes]

    def handle(self) -> None:
        request = b""
        for line in self.rfile:
            request += line
            if line == b"\r\n":
                self.requests.append(request)
                self.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                request = b""


@pytest.mark.skipif(not shutil.which("wrk"), reason="wrk is not installed")
def test_each_request_has_an_id_and_a_traceparent_of_its_own() -> None:
    Recorder.requests = []
    plain = get("/plain", "token")
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Recorder) as server:
        Thread(target=server.serve_forever).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        load = put_load(url, [with_ids(get("/ids", "token")), plain], connections=1, seconds=1)
        server.shutdown()
    assert load.errors == 0
    differing = [one for one in Recorder.requests if one != plain]
    found = [match.groups() for one in differing if (match := IDS_OF_A_REQUEST.search(one))]
    assert len(found) == len(differing) == len(set(differing)) > 100
    assert all(
        IDS not in one and request == trace
        for one, (request, trace, _) in zip(differing, found, strict=True)
    )
    assert abs(len(differing) - Recorder.requests.count(plain)) <= 1
