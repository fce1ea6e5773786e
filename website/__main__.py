"""``make docs``: build the site into the package, where the service and the wheel find it."""

import sys

from website.build import build
from website.rendering import BuildError
from website.sources import ROOT

if __name__ == "__main__":
    try:
        count = build(ROOT / "src/petstore/site")
    except BuildError as error:
        sys.exit(str(error))
    print(f"src/petstore/site: {count} pages")
