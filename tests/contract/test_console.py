"""The console in each form of the service, as a browser uses it."""

import httpx

from support.process import ServerProcess
from support.visitor import SAME_ORIGIN


def test_a_session_from_the_sign_in_form_works_in_every_process(
    server: ServerProcess, token: str
) -> None:
    with httpx.Client(base_url=f"{server.url}/console", headers=SAME_ORIGIN) as browser:
        assert browser.get("/account").status_code == 303
        assert browser.post("/sign-in", data={"key": token}).status_code == 303
        for _ in range(4):
            assert browser.get("/account").status_code == 200
        assert browser.post("/sign-out", data={"sure": "1"}).status_code == 303
        assert browser.get("/account").status_code == 303
