-- The animals that a batch of an import has added, as they were, as JSON: what an undo takes back.
-- ``stayed`` has those that it left, with the reasons. An import counts them: ``undoable`` animals can
-- still be looked at, ``undone`` ones are deleted. Animals of an earlier version are in none of them.
ALTER TABLE console_import_batches ADD COLUMN added TEXT NOT NULL DEFAULT '[]';
ALTER TABLE console_import_batches ADD COLUMN stayed TEXT NOT NULL DEFAULT '[]';
ALTER TABLE console_imports ADD COLUMN undoable INTEGER NOT NULL DEFAULT 0;
ALTER TABLE console_imports ADD COLUMN undone INTEGER NOT NULL DEFAULT 0;
ALTER TABLE console_imports ADD COLUMN stayed INTEGER NOT NULL DEFAULT 0;
