"""API keys, for keys that may administer keys, and the usage of a key."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import UNSET, UnsetType

from petstore_client._calls import Call, Listing, given, into, members, nothing, parameters
from petstore_client._faces import D, Resource, listing, operation, paging
from petstore_client.models import (
    Key,
    KeyDeprecatedUse,
    KeyEvent,
    KeyWithToken,
    PlanName,
    Usage,
)


class Keys(Resource[D]):
    """API keys: ``client.keys``. Your key needs the scope ``keys:admin``."""

    @operation
    def create(  # noqa: PLR0913 - the members of a key
        self,
        *,
        name: str,
        plan: PlanName | None = None,
        per_minute: int | None = None,
        per_day: int | None = None,
        scopes: Sequence[str] | None = None,
        expires_at: datetime | None = None,
        allowed_networks: Sequence[str] | None = None,
        rehearse_sunset: bool | None = None,
        idempotency_key: str | None = None,
    ) -> Call[KeyWithToken]:
        """Create a key and return it with its ``token``, which is returned only once."""
        body = given(
            name=name,
            plan=plan,
            per_minute=per_minute,
            per_day=per_day,
            scopes=scopes,
            expires_at=expires_at,
            allowed_networks=allowed_networks,
            rehearse_sunset=rehearse_sunset,
        )
        return Call(
            *("createKey", "POST", "/keys", into(KeyWithToken)),
            body=body,
            idempotency_key=idempotency_key,
        )

    @operation
    def get(self, key_id: int) -> Call[Key]:
        """Return a key, without its token."""
        return Call("getKey", "GET", f"/keys/{key_id:d}", into(Key))

    @operation
    def update(  # noqa: PLR0913 - the members of a key
        self,
        key_id: int,
        *,
        name: str | UnsetType = UNSET,
        plan: PlanName | UnsetType = UNSET,
        per_minute: int | UnsetType | None = UNSET,
        per_day: int | UnsetType | None = UNSET,
        scopes: Sequence[str] | UnsetType = UNSET,
        expires_at: datetime | UnsetType | None = UNSET,
        allowed_networks: Sequence[str] | UnsetType = UNSET,
        rehearse_sunset: bool | UnsetType = UNSET,
        if_match: str | None = None,
    ) -> Call[Key]:
        """Change what is named and return the key.

        Raises:
            OutcomeUnknown: the connection broke, or the service failed, after it was sent.
        """
        body = members(
            name=name,
            plan=plan,
            per_minute=per_minute,
            per_day=per_day,
            scopes=scopes,
            expires_at=expires_at,
            allowed_networks=allowed_networks,
            rehearse_sunset=rehearse_sunset,
        )
        return Call(
            *("updateKey", "PATCH", f"/keys/{key_id:d}", into(Key)), body=body, if_match=if_match
        )

    @operation
    def revoke(self, key_id: int, *, if_match: str | None = None) -> Call[None]:
        """End a key for good.

        Raises:
            OutcomeUnknown: the connection broke, or the service failed, after it was sent.
        """
        return Call("revokeKey", "DELETE", f"/keys/{key_id:d}", nothing, if_match=if_match)

    @operation
    def rotate(
        self,
        key_id: int,
        *,
        grace_seconds: int | None = None,
        idempotency_key: str | None = None,
    ) -> Call[KeyWithToken]:
        """Issue a new token and return the key with it; it is returned only once.

        The old token lives on for ``grace_seconds``, 0 by default.
        """
        return Call(
            *("rotateKey", "POST", f"/keys/{key_id:d}/rotate", into(KeyWithToken)),
            body=given(grace_seconds=grace_seconds),
            idempotency_key=idempotency_key,
        )

    @operation
    def unban(self, key_id: int, *, idempotency_key: str | None = None) -> Call[None]:
        """Lift the ban of a key, and forget how often it was banned before."""
        path = f"/keys/{key_id:d}/unban"
        return Call("unbanKey", "POST", path, nothing, idempotency_key=idempotency_key)

    @listing
    def list(self, *, limit: int | None = None, cursor: str | None = None) -> Listing[Key]:
        """Iterate over all keys. ``limit`` is the size of a page, from 1 to 100."""
        return Listing("listKeys", "/keys", Key, parameters(limit=limit, cursor=cursor))

    pages = paging(list)  # noqa: A003 - the method above

    @listing
    def history(
        self, key_id: int, *, limit: int | None = None, cursor: str | None = None
    ) -> Listing[KeyEvent]:
        """Iterate over the changes to a key, oldest first."""
        query = parameters(limit=limit, cursor=cursor)
        return Listing("listKeyHistory", f"/keys/{key_id:d}/history", KeyEvent, query)

    @listing
    def deprecations(
        self, *, limit: int | None = None, cursor: str | None = None
    ) -> Listing[KeyDeprecatedUse]:
        """Iterate over the deprecated operations that keys called in the last 30 days."""
        query = parameters(limit=limit, cursor=cursor)
        return Listing("listDeprecations", "/deprecations", KeyDeprecatedUse, query)


class KeyUsage(Resource[D]):
    """What your key has used: ``client.usage``."""

    @operation
    def get(self) -> Call[Usage]:
        """Return plan, windows, ban, and the requests of the last 30 days. It costs nothing."""
        return Call("getUsage", "GET", "/usage", into(Usage), charged=False)
