"""The ids of requests: those that clients send in ``X-Request-Id``, or new ones."""

import os
import re
from itertools import count

from petstore.http.messages import Request

_GIVEN = re.compile(rb"[A-Za-z0-9._-]{1,64}\Z")


class RequestIds:
    """Gives each request an id that no other process gives."""

    def __init__(self) -> None:
        self._prefix = os.urandom(6).hex()
        self._count = count(1)

    def id_of(self, request: Request) -> str:
        """Return the id that the client has chosen, if it can be one, else a new one."""
        given = request.fields.get(b"x-request-id")
        if given is not None and _GIVEN.match(given):
            return given.decode("ascii")
        return f"{self._prefix}{next(self._count):08x}"
