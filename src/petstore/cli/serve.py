"""``petstore serve`` and ``petstore deliver``."""

import signal
import sys
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from petstore.cli.options import SecretOption, SettingsCommand, settings_options
from petstore.cli.output import plain_failures, print_table, printable
from petstore.settings import SettingError, Settings, masked

if TYPE_CHECKING:
    from petstore.samples.demo import Demo

_SOURCES = {ParameterSource.COMMANDLINE: "option", ParameterSource.ENVIRONMENT: "environment"}
_LOOPBACK = ("127.0.0.0/8", "::1/128")


@click.command(cls=SettingsCommand)
@click.option(
    "--demo",
    is_flag=True,
    envvar="PETSTORE_DEMO",
    show_envvar=True,
    help="First fill an empty store with pets and orders; add a key and an administrator.",
)
@click.option(
    "--check",
    "is_check",
    is_flag=True,
    help="Print the settings, check whether they work, and exit; change nothing.",
)
@settings_options()
@click.pass_context
def serve(ctx: click.Context, /, *, demo: bool, is_check: bool, **options: Any) -> None:
    """Serve the interface over HTTP until stopped."""
    settings = Settings(**options)
    if demo:  # whoever tries webhooks has a receiver on this machine
        settings = replace(settings, webhook_network=(*settings.webhook_network, *_LOOPBACK))
    if is_check:
        _print_settings(ctx)
        sys.exit(_check(settings))
    # Unhandled it would cut off every request: from a terminal that closes, or to mean a reload.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    # Imported where it is used, so that `petstore --help` is instant.
    from petstore.backends import in_store
    from petstore.server.service import prepared_service

    prepared = None
    with ExitStack() as opened:
        with plain_failures():
            service = opened.enter_context(prepared_service(settings))
            if demo:
                from petstore.samples.demo import prepare_demo

                prepared = in_store(settings.database, lambda store: prepare_demo(store, settings))
        announce(service.url, settings, prepared)
        sys.exit(service.run())


def announce(address: str, settings: Settings, demo: "Demo | None") -> None:
    """Print the URLs of a service at ``address``, and of a demo how to try it."""
    # Imported where it is used, so that `petstore --help` is instant.
    from petstore.interface.documentation import Documentation

    click.echo(f"Petstore is at  {address}/v1")
    if Documentation().is_built:
        click.echo(f"Docs are at     {address}/docs")
    else:
        click.echo("Docs are        not built: run `make docs` in the checkout, and start again")
    click.echo(f"Console is at   {address}/console")
    if demo is not None and demo.link:
        click.echo(f"Sign in:        {address}/console/invitation/{demo.link}")
    if settings.metrics_port:
        metrics = replace(settings, port=settings.metrics_port)
        click.echo(f"Metrics at      {metrics.listening_url}/metrics")
    if demo is not None:
        click.echo("Try it:")
        click.echo(f'  curl -i -H "Authorization: Bearer {demo.token}" "{address}/v1/pets?limit=3"')
    sys.stdout.flush()


def _print_settings(ctx: click.Context) -> None:
    rows = []
    for option in ctx.command.params:
        name = str(option.name)
        if name in Settings.__dataclass_fields__:
            value = ctx.params[name]
            text = " ".join(value) if isinstance(value, tuple) else _hidden(option, str(value))
            rows.append({"setting": option.opts[0], "value": text, "from": _source(ctx, option)})
    print_table(rows)
    click.echo()


def _hidden(option: click.Parameter, value: str) -> str:
    # A value that should be an address and is not may be a password alone.
    is_address = "://" in value or not value
    return masked(value) if is_address or not isinstance(option, SecretOption) else "***"


def _source(ctx: click.Context, option: click.Parameter) -> str:
    source = ctx.get_parameter_source(str(option.name))
    if source is ParameterSource.ENVIRONMENT and isinstance(option, SecretOption):
        return option.source
    return _SOURCES.get(source, "default") if source else "default"


def _check(settings: Settings) -> int:
    from petstore.server.checks import run_checks

    status = 0
    for name, passed, message in run_checks(settings):
        click.echo(f"{'ok' if passed else 'failed':8}{name}{message and ': '}{printable(message)}")
        if not passed:
            status = click.UsageError.exit_code if name == "settings" else 1
    return status


@click.command(cls=SettingsCommand)
@settings_options(
    *("database", "database_connections", "secret_file", "webhook_network", "metrics_port"),
    *("log_format", "log_level"),
    database_timeout="A read or a change that takes the database longer is tried again.",
    environment="Whose webhooks: of production or of staging keys.",
    host="The address of /metrics.",
)
def deliver(**options: Any) -> None:
    """Deliver events to webhooks until stopped, without serving anything.

    petstore serve does so itself. Start this to deliver on another machine: beside the service, or
    in its place if the service has --no-deliveries. On PostgreSQL, any number of them share the
    work.
    """
    # Imported where they are used, so that `petstore --help` is instant.
    from petstore.backends import migrate, require_store
    from petstore.server.service import run_deliverer

    settings = Settings(**options)
    with plain_failures():
        settings.check()
        if settings.secret_path is None:
            raise SettingError("secret-file: expected the secret file of the service")
        require_store(settings.database)
        migrate(settings.database)
        run_deliverer(settings)
