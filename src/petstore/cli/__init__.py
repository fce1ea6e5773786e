"""The command line: ``petstore serve``, ``petstore keys`` and ``petstore pets``."""
