"""The resources of the service, each with its operations."""
