-- The fields of an animal that the columns of a file are, as JSON, and the categories that there are not
-- and about which somebody decides: their rows wait among the refused ones.
ALTER TABLE console_imports ADD COLUMN fields TEXT;
ALTER TABLE console_imports ADD COLUMN undecided TEXT NOT NULL DEFAULT '[]';
