"""The rows of API keys."""

from petstore.api.api_keys import (
    KeyPatch,
    KeyWithToken,
    NewKey,
    Rotation,
    answer_create_key,
    answer_get_key,
    answer_list_key_history,
    answer_list_keys,
    answer_revoke_key,
    answer_rotate_key,
    answer_unban_key,
    answer_update_key,
)
from petstore.api.operation import Operation, PathParameter, Success
from petstore.api.pages import PageQuery
from petstore.api.table.parts import BODY_ERRORS, location, next_page
from petstore.errors import (
    BeyondOwnRights,
    InvalidParameter,
    KeyEnded,
    LastAdminKey,
    NotFound,
    ResponseSealed,
)
from petstore.store.key_history import KeyEvent
from petstore.store.key_status import Key

_KEY = {
    "id": 4,
    "name": "Till 2",
    "plan": "pro",
    "perMinute": 300,
    "perDay": 10000,
    "scopes": ["orders:read", "orders:write", "pets:read", "pets:write"],
    "environment": "production",
    "state": "active",
    "bannedUntil": None,
    "createdAt": "2026-11-21T10:00:00Z",
    "expiresAt": None,
    "lastUsedAt": None,
}
_ISSUED = _KEY | {"token": "ps_live_" + 38 * "0"}
_EVENT = {
    "id": 9,
    "at": "2026-11-21T10:05:00Z",
    "by": "key 1",
    "action": "changed",
    "changes": {"plan": {"before": "free", "after": "pro"}},
}
_KEY_ID = {"keyId": "$response.body#/id"}

API_KEYS = (
    Operation(
        id="listKeys",
        method="GET",
        path="/keys",
        tag="Keys",
        summary="List keys",
        description="Returns a page of the keys of this environment, by ascending `id`.",
        handler=answer_list_keys,
        scope="keys:admin",
        query=PageQuery,
        tagged=True,
        success=Success(200, "A page of keys.", list[Key], [_KEY], headers=(next_page("/keys"),)),
        errors=(InvalidParameter,),
    ),
    Operation(
        id="createKey",
        method="POST",
        path="/keys",
        tag="Keys",
        summary="Create a key",
        description=(
            "Creates a key of this environment, of the plan `free` and with all scopes but"
            " `keys:admin` unless others are named. The `token` is shown this once. A key gives"
            " no scope, no higher limit and no longer life than it has itself."
        ),
        handler=answer_create_key,
        scope="keys:admin",
        body=NewKey,
        body_example={"name": "Till 2", "plan": "pro"},
        success=Success(
            201,
            "The key and its token.",
            KeyWithToken,
            _ISSUED,
            headers=(location("/keys/4"),),
            links={
                name: {"operationId": name, "parameters": _KEY_ID}
                for name in ("getKey", "updateKey", "rotateKey", "listKeyHistory", "revokeKey")
            },
        ),
        errors=(*BODY_ERRORS, BeyondOwnRights, ResponseSealed),
    ),
    Operation(
        id="getKey",
        method="GET",
        path="/keys/{keyId}",
        tag="Keys",
        summary="Get a key",
        description="Returns one key, without its token, which nobody knows but its holder.",
        handler=answer_get_key,
        scope="keys:admin",
        parameter=PathParameter("keyId", "Identifier of the key."),
        tagged=True,
        success=Success(200, "The key.", Key, _KEY),
        errors=(NotFound,),
    ),
    Operation(
        id="updateKey",
        method="PATCH",
        path="/keys/{keyId}",
        tag="Keys",
        summary="Change a key",
        description=(
            "Changes what the body names (RFC 7396); usage carries over. A key that leaves the plan"
            " `enterprise` loses limits of its own. The last key with the scope `keys:admin` keeps"
            " it."
        ),
        handler=answer_update_key,
        scope="keys:admin",
        parameter=PathParameter("keyId", "Identifier of the key to change."),
        body=KeyPatch,
        body_example={"plan": "pro"},
        tagged=True,
        success=Success(200, "The key as it is now.", Key, _KEY),
        errors=(*BODY_ERRORS, BeyondOwnRights, NotFound, LastAdminKey),
    ),
    Operation(
        id="revokeKey",
        method="DELETE",
        path="/keys/{keyId}",
        tag="Keys",
        summary="Revoke a key",
        description=(
            "Ends a key for good, within a second everywhere. Revoking it again changes nothing."
            " The last key with the scope `keys:admin` cannot be revoked here."
        ),
        handler=answer_revoke_key,
        scope="keys:admin",
        parameter=PathParameter("keyId", "Identifier of the key to revoke."),
        tagged=True,
        success=Success(204, "The key is revoked."),
        errors=(NotFound, LastAdminKey),
    ),
    Operation(
        id="rotateKey",
        method="POST",
        path="/keys/{keyId}/rotate",
        tag="Keys",
        summary="Rotate a key",
        description=(
            "Issues a new token for the same key: usage, limits and bans carry over. The old token"
            " lives on for `graceSeconds`. The new one is shown this once."
        ),
        handler=answer_rotate_key,
        scope="keys:admin",
        parameter=PathParameter("keyId", "Identifier of the key to rotate."),
        body=Rotation,
        body_example={"graceSeconds": 3600},
        body_required=False,
        success=Success(200, "The key and its new token.", KeyWithToken, _ISSUED),
        errors=(*BODY_ERRORS, BeyondOwnRights, NotFound, KeyEnded, ResponseSealed),
    ),
    Operation(
        id="unbanKey",
        method="POST",
        path="/keys/{keyId}/unban",
        tag="Keys",
        summary="Lift the ban of a key",
        description="Lifts the ban of a key, and forgets how often it was banned before.",
        handler=answer_unban_key,
        scope="keys:admin",
        parameter=PathParameter("keyId", "Identifier of the banned key."),
        success=Success(204, "The key is not banned."),
        errors=(NotFound,),
    ),
    Operation(
        id="listKeyHistory",
        method="GET",
        path="/keys/{keyId}/history",
        tag="Keys",
        summary="See who changed a key",
        description="Returns a page of the changes to a key: who, what, when; the oldest first.",
        handler=answer_list_key_history,
        scope="keys:admin",
        parameter=PathParameter("keyId", "Identifier of the key."),
        query=PageQuery,
        tagged=True,
        success=Success(
            200,
            "A page of changes.",
            list[KeyEvent],
            [_EVENT],
            headers=(next_page("/keys/4/history"),),
        ),
        errors=(InvalidParameter, NotFound),
    ),
)
