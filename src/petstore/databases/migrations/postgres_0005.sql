-- The key of a name is the same for names that differ in case alone (domain/names.py). The service
-- writes it. It is NULL after a process of an older version has added or renamed the animal, until
-- the service fills it in: the index leads to those too. Names are sorted by code point, as SQLite
-- does it.
ALTER TABLE pets ADD COLUMN name_key TEXT COLLATE "C";

CREATE INDEX pets_by_name ON pets (name_key, id);

-- Whoever changes a name and knows the key sets it afterwards.
CREATE FUNCTION forget_name_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.name_key := NULL;
    RETURN NEW;
END $$;

CREATE TRIGGER pet_renamed BEFORE UPDATE OF name ON pets
    FOR EACH ROW WHEN (OLD.name IS DISTINCT FROM NEW.name) EXECUTE FUNCTION forget_name_key();
