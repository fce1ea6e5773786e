"""The pages that change or delete several pets at once, and take that back."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from msgspec import convert as converted
from msgspec import to_builtins

from petstore.categories.pages import category_form
from petstore.console.forms import Form, decode_urlencoded, page_address, problem_of
from petstore.console.history import PastEvent, newest_events
from petstore.console.page import ConsolePage, Notice, PageRequest, Undo
from petstore.console.templates import begun
from petstore.domain.fields import INT64_MAX
from petstore.errors import (
    Conflict,
    InvalidBody,
    NotFound,
    PetReserved,
    PetstoreError,
    PreconditionFailed,
    RateLimitExceeded,
    Unavailable,
)
from petstore.http.messages import Response
from petstore.interface.operation import Result
from petstore.pets.model import Pet
from petstore.pets.pages import (
    KEEP,
    MAX_SELECTED,
    NOT_COUNTED,
    SELECTION_FORM,
    box_of,
    list_query,
    version_of,
)

_ID = re.compile("[1-9][0-9]{0,18}")
_AGAIN = "Add them again, with new numbers"
_REASONS: dict[type[PetstoreError], str] = {
    NotFound: "It was deleted meanwhile.",
    PreconditionFailed: "Another person changed it meanwhile.",
    PetReserved: "An order reserves it. Deliver or cancel the order first.",
}
# After one of them, the other pets would meet the same.
_STOPS = (RateLimitExceeded, Unavailable)


class _Outcome(NamedTuple):
    """The ids of pets; those that are ``left`` have a name, if they have one, and a reason."""

    done: list[int]
    same: list[int]
    left: list[tuple[int, str, str]]

    def text(self, done: str, same: str) -> str:
        parts = []
        for ids, verbs, what in (
            (self.done, ("is", "are"), done),
            (self.same, ("was", "were"), f"{same} already"),
        ):
            if ids or (ids is self.done and not self.same):
                pets = f"1 pet {verbs[0]}" if len(ids) == 1 else f"{len(ids)} pets {verbs[1]}"
                parts.append(f"{pets} {what}.")
        return " ".join(parts)


# Change and delete


async def _ask(request: PageRequest) -> Response:
    pets: Mapping[int, Pet] = {}
    try:
        selected, _ = await _selected(request)
        pets = await request.pets_of(selected)
    except InvalidBody as unselected:
        request.error = unselected
    return request.page(
        "selection.html",
        form=await category_form(request, SELECTION_FORM.new(request.form, request.error), KEEP),
        boxes={box_of(pet): pet for pet in pets.values()},
        names=await request.category_names({pet.category_id for pet in pets.values()}),
        back=_back(request),
    )


async def _change(request: PageRequest) -> Response:
    if request.form.text("delete"):
        return await _ask(request)
    selected, has_more = await _selected(request)
    patch = _patch(request)
    pets = await request.pets_of(selected)

    async def change(pet_id: int) -> bool:
        pet, version = pets.get(pet_id), None
        if pet is not None:
            members = to_builtins(pet)
            if all(members.get(name) == value for name, value in patch.items()):
                return False
            version = _seen(pet, selected[pet_id])
        await request.execute("updatePet", patch, path_id=pet_id, if_match=version)
        return True

    outcome = await _each([*selected], pets, change)
    if [*patch] == ["status"]:
        status = patch["status"] or "without a status"
        text = outcome.text(status, status)
        if status == "sold":
            text += f" {NOT_COUNTED}"
    else:
        text = outcome.text("changed", "like that")
    if has_more:
        text += f" More match: these were the first {MAX_SELECTED}."
    return await _told(request, outcome, text, "Undo")


def _patch(request: PageRequest) -> dict[str, Any]:
    body = SELECTION_FORM.body(SELECTION_FORM.typed(request.form))
    if not body:
        raise InvalidBody("choose a status or a category first")
    if body.get("status") == "none":
        body["status"] = None
    request.decoded("updatePet", body)
    return body


async def _delete(request: PageRequest) -> Response:
    selected, _ = await _selected(request)
    pets = await request.pets_of(selected)

    async def delete(pet_id: int) -> bool:
        if pet_id not in pets:
            return False
        version = _seen(pets[pet_id], selected[pet_id])
        await request.execute("deletePet", path_id=pet_id, if_match=version)
        return True

    outcome = await _each([*selected], pets, delete)
    return await _told(request, outcome, outcome.text("deleted", "deleted"), _AGAIN)


# Undo. What was done is in the events of the pets: the last one of each is of the request that
# is taken back, or the pet was changed since.


async def _undo(request: PageRequest) -> Response:
    ids = _ids_in([*dict.fromkeys(request.form.text("ids").split())])
    pets = await request.pets_of(ids)
    outcome = await _each(ids, pets, partial(_take_back, request))
    pressed = request.form.text("undo")
    if pressed == _AGAIN:
        text = outcome.text("in the store again, with a new number", "there")
        return await _told(request, outcome, text)
    text = outcome.text("as before", "as before")
    return await _told(request, outcome, text, "Undo" if pressed == "Redo" else "Redo")


async def _take_back(request: PageRequest, pet_id: int) -> bool:
    """Undo what a request did to a pet; return whether it was not undone before."""
    wanted = (request.caller.actor, request.form.text("request"))
    found, _ = await newest_events(request, {"resource": f"pet/{pet_id}"}, 2)
    if not found:
        raise Conflict("its history is no longer kept")
    last, *earlier = found
    if earlier and _is_of(earlier[0], wanted) and last.data == earlier[0].members_before:
        return False
    if not _is_of(last, wanted):
        raise PreconditionFailed("the pet was changed since")
    version = Result(converted(last.data, Pet)).version
    if last.type == "pet.deleted":
        body = {name: value for name, value in last.data.items() if name != "id"}
        await request.execute("createPet", body, once=version)
    else:
        await request.execute("updatePet", last.previous, path_id=pet_id, if_match=version)
    return True


def _is_of(event: PastEvent, author: tuple[str, str]) -> bool:
    is_change = event.type == "pet.deleted" or (event.type == "pet.updated" and event.previous)
    return bool(is_change) and (event.actor, event.request_id) == author


# What they share


async def _selected(request: PageRequest) -> tuple[Mapping[int, str], bool]:
    """Return pets with the version that was seen, and whether more match; ``all`` has a limit."""
    if not request.form.text("all"):
        return _selected_in(request.form), False
    form = decode_urlencoded(_back(request).partition("?")[2].encode())
    query = list_query(Form({**form.fields, "cursor": []}))
    selected, more = dict[int, str](), True
    while more and len(selected) < MAX_SELECTED:
        found = await request.execute("listPets", query={**query, "limit": 100})
        selected |= {pet.id: version_of(pet) for pet in found.value}
        query["cursor"], more = found.next, bool(found.next)
    if not selected:
        raise InvalidBody("no pet matches any more")
    return selected, more


def _selected_in(form: Form) -> Mapping[int, str]:
    boxes = [box.partition(".") for text in form.all("pet") for box in text.split()]
    if not boxes:
        raise InvalidBody("select a pet first")
    versions = {number: version for number, _, version in boxes}
    return dict(zip(_ids_in([*versions]), versions.values(), strict=True))


def _ids_in(texts: Sequence[str]) -> list[int]:
    if len(texts) > MAX_SELECTED:
        raise InvalidBody(f"select at most {MAX_SELECTED} pets at a time")
    numbers = [int(text) if _ID.fullmatch(text) else 0 for text in texts]
    if not all(0 < number <= INT64_MAX for number in numbers):
        raise InvalidBody("select pets of the list")
    return numbers


async def _each(
    ids: Sequence[int], pets: Mapping[int, Pet], act: Callable[[int], Awaitable[bool]]
) -> _Outcome:
    outcome = _Outcome([], [], [])
    for place, pet_id in enumerate(ids):
        try:
            (outcome.done if await act(pet_id) else outcome.same).append(pet_id)
        except PetstoreError as error:
            is_end = isinstance(error, _STOPS)
            if is_end and not outcome.done:
                raise
            reason = _REASONS.get(type(error)) or begun(problem_of(error).text)
            for each in ids[place:] if is_end else [pet_id]:
                name = pets[each].name if each in pets else ""
                outcome.left.append((each, name, reason))
            if is_end:
                break
    return outcome


async def _told(request: PageRequest, outcome: _Outcome, text: str, label: str = "") -> Response:
    back, undo = _back(request), None
    if outcome.done and label:
        ids = " ".join(map(str, outcome.done))
        fields = {"ids": ids, "request": request.id, "back": back}
        undo = Undo("/pets/selection/undo", fields, label)
    notice = Notice(text, undo)
    if not outcome.left:
        return await request.redirect(back, notice)
    return request.page("selection_left.html", notice=notice, left=outcome.left, back=back)


def _seen(pet: Pet, seen: str) -> str:
    if version_of(pet) != seen:
        raise PreconditionFailed("the pet was changed")
    return Result(pet).version


def _back(request: PageRequest) -> str:
    return page_address(request.form.text("back")) or "/pets"


PAGES = (
    ConsolePage("POST", "/pets/selection", _change, "updatePet", _ask, has_file=True),
    ConsolePage("POST", "/pets/selection/delete", _delete, "deletePet", _ask, has_file=True),
    ConsolePage("POST", "/pets/selection/undo", _undo, "updatePet", has_file=True),
)
