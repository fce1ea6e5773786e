"""Builds the documentation as the site that the service serves at ``/docs``."""
