"""``python -m petstore``."""

from petstore.cli.main import main

main()
