"""Clients whose requests a proxy sends over the same connections."""

import httpx

_SPOILING = ("close", "keep-alive, Close", "Upgrade")
_ROUNDS = 3


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
