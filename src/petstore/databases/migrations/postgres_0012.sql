-- What divides the cells of a file: the refused rows come back as a file of the same kind.
ALTER TABLE console_imports ADD COLUMN delimiter TEXT NOT NULL DEFAULT ',';
