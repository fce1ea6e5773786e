"""Services whose processes are started, stopped and killed."""

from support.servers import start

__all__ = ["start"]
