-- Where a search finds an animal, beside the beginning of its name: the words of the name after its
-- first, each with the name, and for texts of several words what follows such a word, after a space
-- (domain/words.py). name_key has the beginning of the name.
CREATE TABLE pet_words (
    word_key TEXT COLLATE "C" NOT NULL,
    pet_id BIGINT NOT NULL,
    PRIMARY KEY (word_key, pet_id)
);

-- The words of the name, if name_key is too short for them; hardly any name is that long. It is NULL
-- after a process of an older version has added or renamed the animal, until the service prepares it:
-- then name_key is as that version makes it.
ALTER TABLE pets ADD COLUMN words TEXT;

CREATE INDEX pets_without_words ON pets (words, id) WHERE words IS NULL;

-- Whoever changes a name and knows its words sets them afterwards. A plan from when the table was small
-- may last.
CREATE FUNCTION forget_words() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    words TEXT[] := string_to_array(
        CASE OLD.words WHEN '' THEN OLD.name_key ELSE OLD.words END, ' '
    );
BEGIN
    DELETE FROM pet_words WHERE pet_id = OLD.id AND word_key = ANY (ARRAY(
        SELECT left(word, 100) || ' ' || left(OLD.name_key, 100) FROM unnest(words) AS word
        UNION ALL
        SELECT ' ' || left(array_to_string(words[first:], ' '), 200)
        FROM generate_subscripts(words, 1) AS first
    ));
    IF TG_OP = 'DELETE' THEN
        RETURN NULL;
    END IF;
    NEW.words := NULL;
    RETURN NEW;
END $$;

CREATE TRIGGER pet_words_forgotten BEFORE UPDATE OF name ON pets
    FOR EACH ROW WHEN (OLD.name IS DISTINCT FROM NEW.name) EXECUTE FUNCTION forget_words();

CREATE TRIGGER pet_words_deleted AFTER DELETE ON pets
    FOR EACH ROW WHEN (strpos(OLD.name_key, ' ') > 0 OR OLD.words <> '') EXECUTE FUNCTION forget_words();
