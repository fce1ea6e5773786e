"""``petstore deliver``."""

from typing import Any

import click

from petstore.cli.options import settings_options, warnings_of
from petstore.cli.output import plain_failures
from petstore.cli.stores import migrate, require_store
from petstore.settings import SettingError, Settings


@click.command()
@settings_options(
    *("database", "database_connections", "database_timeout", "environment"),
    *("webhook_network", "secret_file", "host", "metrics_port", "log_format", "log_level"),
)
@click.pass_context
def deliver(ctx: click.Context, /, **options: Any) -> None:
    """Deliver events to webhooks until stopped, without serving anything.

    petstore serve does so itself. Start this beside it, or instead with --no-deliveries there, to
    deliver on another machine. On PostgreSQL as many may run as you like.
    """
    settings = Settings(**options)
    with plain_failures():
        settings.check()
        if settings.secret_path is None:
            msg = "secret-file: expected the secret file of the service"
            raise SettingError(msg)
    require_store(settings.database)
    migrate(settings.database)
    # Imported where it is used, so that `petstore --help` is instant.
    from petstore.server.deliveries import run_deliverer

    with plain_failures():
        run_deliverer(settings, warnings_of(ctx))
