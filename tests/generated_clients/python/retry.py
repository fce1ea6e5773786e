"""A transport that waits as long as a 429 says, and sends the request again."""

from time import monotonic, sleep

import httpx

TRIES = 3
LONGEST_WAIT = 120  # seconds
TOO_MANY_REQUESTS = 429


class RetryTransport(httpx.HTTPTransport):
    """After a 429 every request waits. The refused one had no effect, so it is sent again."""

    resume_at = 0.0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request until its response is no 429, or says to wait too long."""
        for left in reversed(range(TRIES)):
            sleep(max(0, self.resume_at - monotonic()))
            response = super().handle_request(request)
            wait = int(response.headers.get("Retry-After", 0))
            if response.status_code != TOO_MANY_REQUESTS or wait > LONGEST_WAIT or not left:
                break
            response.close()
            self.resume_at = monotonic() + wait
        return response
