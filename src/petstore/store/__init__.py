"""What the service does, over the store's contract; no HTTP."""
