"""The master secret of all webhooks, in a file beside the database or where the operator says."""

import logging
import os
import secrets
from pathlib import Path

from petstore.databases.private_files import create_once, obstacle, require_private
from petstore.errors import WebhooksNotConfigured
from petstore.webhooks.signing import LENGTH, master_of_text, text_of_master

_MAX_BYTES = 4096
_LOG = logging.getLogger(__name__)


class SecretFile:
    """The file at ``path``, read once. If nobody else can have made it, the service may."""

    def __init__(self, path: Path | None, *, may_create: bool) -> None:
        self._path = path
        self._may_create = may_create
        self._master: bytes | None = None
        self._reported = ""  # not again for each delivery that waits for the file

    def check(self) -> None:
        """Return if the file is in order, or is not there and may be created."""
        if self._path is not None and (os.path.lexists(self._path) or not self._may_create):
            master_of_text(_content(self._path))

    @property
    def is_set_up(self) -> bool:
        return self._path is not None

    def create(self) -> None:
        """Make the file, unless it is there or is for the operator to make."""
        if self._path is None or not self._may_create:
            return
        try:
            if not self._path.exists():
                create_once(self._path, text_of_master(secrets.token_bytes(LENGTH)))
        except OSError as error:
            raise self._unusable(error) from error

    def read(self) -> bytes:
        if self._master is None:
            if self._path is None:
                msg = (
                    "the operator of this service has not set up webhooks: --secret-file is not set"
                )
                raise WebhooksNotConfigured(msg)
            try:
                self._master = master_of_text(_content(self._path))
            except (OSError, ValueError) as error:
                raise self._unusable(error) from error
        return self._master

    def _unusable(self, error: OSError | ValueError) -> WebhooksNotConfigured:
        if (cause := str(error)) != self._reported:
            self._reported = cause
            _LOG.warning("the secret file %s cannot be used: %s", self._path, cause)
        return WebhooksNotConfigured(
            "the secret file of this service cannot be used; tell its operator"
        )


def _content(path: Path) -> bytes:
    if reason := obstacle(path):
        raise FileNotFoundError(reason)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe would block
    try:
        require_private(path, os.fstat(descriptor), is_secret=True)
        return os.read(descriptor, _MAX_BYTES)
    finally:
        os.close(descriptor)
