-- Words that the formulas are written in, beyond those of SQL itself.
--
-- iif(condition, then_value, else_value): the first where the condition holds, else the second. DuckDB 2 has a function
-- `if`, but a macro that uses it cannot be read by DuckDB 1.x, where `if` is syntax; the published file must open in
-- both.

CREATE OR REPLACE MACRO iif(condition, then_value, else_value) AS
    CASE WHEN condition THEN then_value ELSE else_value END;
