-- The key of a name is the same for names that differ in case alone (domain/names.py). The service
-- writes it. It is NULL after a process of an older version has added or renamed the animal, until
-- the service fills it in: the index leads to those too.
ALTER TABLE pets ADD COLUMN name_key TEXT;

CREATE INDEX pets_by_name ON pets (name_key);

-- Whoever changes a name and knows the key sets it afterwards.
CREATE TRIGGER pet_renamed AFTER UPDATE OF name ON pets WHEN OLD.name IS NOT NEW.name
BEGIN
    UPDATE pets SET name_key = NULL WHERE id = NEW.id;
END;
