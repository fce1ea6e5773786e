-- Where a search finds an animal, beside the beginning of its name: the words of the name after its
-- first, each with the name, and for texts of several words what follows such a word, after a space
-- (domain/words.py). name_key has the beginning of the name.
CREATE TABLE pet_words (
    word_key TEXT NOT NULL,
    pet_id INTEGER NOT NULL,
    PRIMARY KEY (word_key, pet_id)
) STRICT, WITHOUT ROWID;

-- The words of the name, if name_key is too short for them; hardly any name is that long. It is NULL
-- after a process of an older version has added or renamed the animal, until the service prepares it:
-- then name_key is as that version makes it.
ALTER TABLE pets ADD COLUMN words TEXT;

CREATE INDEX pets_without_words ON pets (words) WHERE words IS NULL;

-- Whoever changes a name and knows its words sets them afterwards.
CREATE TRIGGER pet_words_forgotten AFTER UPDATE OF name ON pets WHEN OLD.name IS NOT NEW.name
BEGIN
    UPDATE pets SET words = NULL WHERE id = NEW.id;
    DELETE FROM pet_words WHERE pet_id = OLD.id AND word_key IN (
        WITH RECURSIVE rests (rest) AS (
            SELECT iif(OLD.words = '', OLD.name_key, OLD.words)
            UNION ALL SELECT substr(rest, instr(rest, ' ') + 1) FROM rests WHERE instr(rest, ' ') > 0
        )
        SELECT ' ' || substr(rest, 1, 200) FROM rests UNION ALL
        SELECT substr(rest, 1, min(instr(rest || ' ', ' ') - 1, 100)) || ' '
            || substr(OLD.name_key, 1, 100) FROM rests
    );
END;

CREATE TRIGGER pet_words_deleted AFTER DELETE ON pets 
    WHEN instr(OLD.name_key, ' ') > 0 OR OLD.words <> ''
BEGIN
    DELETE FROM pet_words WHERE pet_id = OLD.id AND word_key IN (
        WITH RECURSIVE rests (rest) AS (
            SELECT iif(OLD.words = '', OLD.name_key, OLD.words)
            UNION ALL SELECT substr(rest, instr(rest, ' ') + 1) FROM rests WHERE instr(rest, ' ') > 0
        )
        SELECT ' ' || substr(rest, 1, 200) FROM rests UNION ALL
        SELECT substr(rest, 1, min(instr(rest || ' ', ' ') - 1, 100)) || ' '
            || substr(OLD.name_key, 1, 100) FROM rests
    );
END;
