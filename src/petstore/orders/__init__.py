"""Orders: reserve, approve, deliver and cancel."""
