"""The command ``petstore``, and ``python -m petstore``."""

import signal

from petstore.cli import end_at_once


def run() -> None:
    """Until a command has something to clean up, Ctrl-C ends the process at once."""
    # A KeyboardInterrupt would be lost in a finalizer. A background job of a script ignores Ctrl-C.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, end_at_once)
    from petstore.cli.main import main

    main()


if __name__ == "__main__":
    run()
