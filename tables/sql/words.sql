-- Words that the formulas are written in, beyond those of SQL itself.
--
-- iif(condition, a, b): a where the condition holds, else b. DuckDB 2 has a function `if`, but a macro that uses it cannot be read by
-- DuckDB 1.x, where `if` is syntax; the published file must open in both.

CREATE OR REPLACE MACRO iif(condition, a, b) AS CASE WHEN condition THEN a ELSE b END;
