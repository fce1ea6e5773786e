# Generated from the operations of the service by clients/python/generate.py: run `make client`.
"""The one tree of errors: ``PetstoreError`` is the base of all."""

from petstore_client._errors import *


class InvalidWebhookUrl(BadRequest, code="invalid_webhook_url"):
    """The body names a URL to which the service delivers no events."""


class UnknownCategory(BadRequest, code="unknown_category"):
    """The body names an unregistered category, and this store accepts only registered ones."""


class UnknownPet(BadRequest, code="unknown_pet"):
    """The body names a pet that does not exist."""


class BeyondOwnRights(Forbidden, code="beyond_own_rights"):
    """The API key tries to give another key or a person more rights than it has itself."""


class MissingScope(Forbidden, code="missing_scope"):
    """The API key is valid but lacks the scope of the operation."""


class NotOwner(Forbidden, code="not_owner"):
    """The webhook belongs to another caller, who alone can do this."""


class KeyEnded(Conflict, code="api_key_ended"):
    """The API key to change is expired or revoked."""


class CategoryInUse(Conflict, code="category_in_use"):
    """Pets belong to the category, so it cannot be deleted."""


class CategoryNameTaken(Conflict, code="category_name_taken"):
    """Another category has this name, perhaps in another case."""


class EventNotKept(Conflict, code="event_not_kept"):
    """The event of the delivery is no longer kept, so it cannot be sent again."""


class IllegalTransition(Conflict, code="illegal_transition"):
    """The requested status cannot follow the current one."""


class ImportClosed(Conflict, code="import_closed"):
    """The import has been run or undone, so this can no longer be done with it."""


class LastAdminKey(Conflict, code="last_admin_key"):
    """This is the last API key with the scope ``keys:admin``."""


class LastAdministrator(Conflict, code="last_administrator"):
    """This is the last active person with the role ``administrator``."""


class LoginTaken(Conflict, code="login_taken"):
    """Another person has this login, perhaps in another case."""


class PersonDisabled(Conflict, code="person_disabled"):
    """The person is disabled, so they cannot be invited."""


class PetNotAvailable(Conflict, code="pet_not_available"):
    """The pet is not available, so it cannot be ordered."""


class PetReserved(Conflict, code="pet_reserved"):
    """An open order reserves the pet, so its status cannot change, and it cannot be deleted."""


class SecretAlreadyShown(Conflict, code="secret_already_shown"):
    """The first request with this Idempotency-Key succeeded; its response showed a secret once."""


class TooManyImports(Conflict, code="too_many_imports"):
    """The caller has the maximum number of unfinished imports."""


class TooManyWebhooks(Conflict, code="too_many_webhooks"):
    """The API key has the maximum number of webhooks."""


class WebhookDisabled(Conflict, code="webhook_disabled"):
    """The webhook is disabled, so the service cannot send to it."""


class WebhooksNotConfigured(Conflict, code="webhooks_not_configured"):
    """The operator has not set up webhooks: the secret file is missing."""


class CursorExpired(Gone, code="cursor_expired"):
    """The events after the cursor are no longer kept, or belong to another history."""


class TooManyRotations(RateLimited, code="too_many_rotations"):
    """The API key has rotated itself as often as it may in one day."""
