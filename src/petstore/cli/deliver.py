"""``petstore deliver``."""

from typing import Any

import click

from petstore.cli.options import SettingsCommand, settings_options, warnings_of
from petstore.cli.output import plain_failures
from petstore.settings import SettingError, Settings


@click.command(cls=SettingsCommand)
@settings_options(
    *("database", "webhook_network", "metrics_port", "log_format"),
    database_connections="Connections to PostgreSQL.",
    database_timeout="A read or a change that takes the database longer is tried again.",
    environment="Whose webhooks: those of production or of staging keys.",
    secret_file=(  # noqa: S106 - a help text
        "The file with the master secret of all webhooks. Default: with SQLite, the database's name"
        " with .secret at its end. PostgreSQL needs it."
    ),
    host="The address of /metrics.",
    log_level="The lowest level to log.",
)
@click.pass_context
def deliver(ctx: click.Context, /, **options: Any) -> None:
    """Deliver events to webhooks until stopped, without serving anything.

    petstore serve does so itself. Start this to deliver on another machine: beside the service, or
    in its place if the service has --no-deliveries. On PostgreSQL, any number of them share the
    work.
    """
    settings = Settings(**options)
    with plain_failures():
        settings.check()
        if settings.secret_path is None:
            msg = "secret-file: expected the secret file of the service"
            raise SettingError(msg)
    # Imported where they are used, so that `petstore --help` is instant.
    from petstore.backends import migrate, require_store
    from petstore.server.deliveries import run_deliverer

    with plain_failures():
        require_store(settings.database)
        migrate(settings.database)
        run_deliverer(settings, warnings_of(ctx))
