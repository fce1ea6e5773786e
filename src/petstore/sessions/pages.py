"""The page that makes a link which signs a person in with a key."""

import logging

from petstore.console.page import HOME, ConsolePage, PageRequest
from petstore.http.messages import Response
from petstore.keys.model import check_rights
from petstore.keys.status import found, select_key
from petstore.sessions.store import create_link

_LOG = logging.getLogger(__name__)


async def _link(visit: PageRequest) -> Response:
    """Make a link that signs a person in with the key, if that gives no more than the own key."""
    services, key_id = visit.services, visit.path_id
    rows = await services.store.read(select_key(key_id))
    key = found(rows, key_id, visit.caller.environment).key
    now = services.clock()
    check_rights(visit.caller, key)
    unit = create_link(key_id, now, visit.session)
    secret = await services.store.write(unit)
    _LOG.info("key %d made a link to sign in with key %d", visit.caller.id, key_id)
    return visit.page("key_link.html", key=key, link=f"{visit.root}{HOME}/link/{secret}")


PAGES = (ConsolePage("POST", "/keys/{keyId}/link", _link, "rotateKey"),)
