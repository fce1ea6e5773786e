"""Images of others: the very one that was tried, whatever their tags stand for by now."""

import re

import pytest

from support.deploy_files import DEPLOY, image_stages, read_yaml, words_of

OURS = "petstore"
PINNED = re.compile(r"[a-z/]+:[0-9][a-z0-9.-]*@sha256:[0-9a-f]{64}")


def images() -> list[str]:
    """Return every image that is named in ``deploy/``, in either way of writing one."""
    bases = [words_of(stage, "FROM")[0] for stage in image_stages()]
    services = [service["image"] for service in read_yaml("compose.yaml")["services"].values()]
    written = [
        image
        for path in sorted(DEPLOY.glob("**/*.yaml"))
        for image in re.findall(r"^ *(?:- )?image: *(\S+)$", path.read_text(), re.MULTILINE)
    ]
    return sorted({*bases, *services, *written} - {OURS})


@pytest.mark.parametrize("image", images())
def test_a_third_party_image_is_pinned_by_tag_and_digest(image: str) -> None:
    assert PINNED.fullmatch(image)


def test_every_third_party_image_is_checked() -> None:
    names = {image.partition(":")[0] for image in images()}
    assert names == {"python", "haproxy", "postgres", "valkey/valkey"}
