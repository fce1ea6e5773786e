"""The units of work that change the store, at one moment."""

from functools import partial

from petstore.store import categories, pet_imports, pets
from support.manual_clock import ManualClock

NOW = ManualClock().now

create_pet = partial(pets.create_pet, now=NOW)
create_pets = partial(pets.create_pets, now=NOW)
create_category = partial(categories.create_category, now=NOW)
update_category = partial(categories.update_category, now=NOW)
delete_category = partial(categories.delete_category, now=NOW)
import_batch = partial(pet_imports.import_batch, now=NOW)
