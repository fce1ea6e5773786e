"""What a key may give to another: nothing beyond what it has itself."""

from petstore.domain.api_keys import ApiKey
from petstore.domain.plans import Limits
from petstore.errors import BeyondOwnRights

_NOTHING = Limits(0, 0)


def check_rights(giver: ApiKey, key: ApiKey, before: ApiKey | None = None) -> None:
    """Refuse a ``key`` that has what neither it had ``before`` nor its ``giver`` has.

    Raises:
        BeyondOwnRights: a scope, a higher limit or a longer life.
    """
    scopes = key.scopes - giver.scopes - (before.scopes if before else frozenset())
    if scopes:
        msg = f"scopes: your key cannot give {', '.join(sorted(scopes))}, which it has not itself"
        raise BeyondOwnRights(msg)
    had = before.limits if before else _NOTHING
    fields = (("perMinute", key.per_minute), ("perDay", key.per_day))
    for (field, set_here), limit, own, old in zip(
        fields, key.limits, giver.limits, had, strict=True
    ):
        if limit > max(own, old):
            name = "plan" if set_here is None else field
            msg = f"{name}: your key cannot give a higher {field} than its own, {own}"
            raise BeyondOwnRights(msg)
    if key.end > max(giver.end, before.end if before else 0):
        msg = "expiresAt: your key cannot give a longer life than its own"
        raise BeyondOwnRights(msg)
