-- Another change takes this number.
SELECT 1;
