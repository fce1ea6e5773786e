"""The callers of MCP over HTTP: the store has to know their keys before anything else is done."""

import asyncio
from math import ceil

from petstore.agents.clients import Clients
from petstore.chores import PeriodicTask
from petstore.coalescing import SharedCalls
from petstore.errors import InvalidKey, RateLimitExceeded, Unavailable
from petstore.interface.authentication import invalid_key
from petstore.interface.rate_limit_headers import LOOKUP, limit_reached
from petstore.limits.minutes import MinuteLimiter
from petstore_client import PetstoreError as ClientError
from petstore_client.errors import Forbidden, RateLimited, Unauthorized

_KNOWN_SECONDS = 60
# Few, so that callers whose keys are known do not wait for those of a flood.
_CHECKS_AT_ONCE = 4
_TIMEOUT_SECONDS = 5


class Callers:
    """Asks the store about each key, at most once a minute while it is valid.

    The question about a key that was not valid before is charged to the address of the caller, as
    the store does it itself, and given back if it is valid. So a flood of invalid keys does not
    reach the store. Once the store itself refuses to look up more of them, no new key passes.
    """

    def __init__(self, clients: Clients, look_ups: MinuteLimiter[str]) -> None:
        self._clients = clients
        self._look_ups = look_ups
        self._known: set[str] = set()  # valid within the last minute
        self._valid: set[str] = set()  # when the store was asked last
        self._checks = SharedCalls[str, None]()
        self._turns = asyncio.Semaphore(_CHECKS_AT_ONCE)
        self.chore = PeriodicTask(self.forget, _KNOWN_SECONDS, "keys not asked about again")

    async def admit(self, key: str, address: str, *, has_body: bool) -> None:
        """Let a request pass if its key is valid.

        If the store does not tell, a request with its whole body passes too: the agent is told what
        the store says. Another one would only hold its connection.

        Raises:
            InvalidKey: the store refuses the key.
            RateLimitExceeded: the address has sent too many keys that are not valid, or the store
                has had too many from here.
            Unavailable: the store does not tell, and the body has not arrived.
        """
        if key in self._known:
            return
        is_new = key not in self._valid
        if is_new and (decision := self._look_ups.take(address)).verdict != "admitted":
            raise limit_reached(decision, LOOKUP)
        is_refused = False
        try:
            await self._checks.call(key, lambda: self._check(key))
        except (InvalidKey, RateLimitExceeded, Unavailable) as fault:
            is_refused = isinstance(fault, InvalidKey) or (
                is_new and isinstance(fault, RateLimitExceeded)
            )
            if is_refused or not has_body:
                raise
        finally:
            if is_new and not is_refused:
                self._look_ups.give_back(address)

    async def forget(self) -> None:
        """Ask about all keys again."""
        self._known.clear()

    async def _check(self, key: str) -> None:
        try:
            async with (
                asyncio.timeout(_TIMEOUT_SECONDS),  # the turn counts, too
                self._turns,
                self._clients.use(key) as client,
            ):
                await client.with_options(timeout=_TIMEOUT_SECONDS, max_retries=0).usage.get()
        except (Unauthorized, Forbidden):
            self._valid.discard(key)
            raise invalid_key() from None
        except RateLimited as error:
            seconds = ceil(error.retry_after or 1)
            msg = f"the store looks up no more keys now: wait {seconds} seconds"
            headers = {"Retry-After": str(seconds)}
            raise RateLimitExceeded(msg, headers, f"{LOOKUP.name}_minute") from None
        except (ClientError, TimeoutError) as error:
            reason = "the store cannot check the key now; try again"
            raise Unavailable(str(error), reason) from None
        self._known.add(key)
        self._valid.add(key)
