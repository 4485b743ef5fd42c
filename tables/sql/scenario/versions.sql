-- Versions of programs, which are compared number by number, three of them.
--
--   version_number(version)     0.8.5 as one number;  version_after(version) the first that is none of its releases
--   version_range(least, most)  in words;  is_from(version, least) whether it is that or a later one
--
-- Units: none. Source: how programs number their releases (0.8.5, v0.27.1, b9452). Not covered: release candidates,
-- which are no numbers.

-- a million each for the second and third number: beyond any release, and whole in a double
CREATE OR REPLACE MACRO version_place(version, place) AS
    try_cast(string_split(replace(replace(lower(version), 'v', ''), 'b', ''), '.')[place] AS BIGINT);

CREATE OR REPLACE MACRO version_number(version) AS
    version_place(version, 1) * 1000000 * 1000000 + coalesce(version_place(version, 2), 0) * 1000000
        + coalesce(version_place(version, 3), 0);

-- (one that is not said is the newest that is known)
CREATE OR REPLACE MACRO is_from(version, least) AS
    coalesce(version_number(version::VARCHAR) >= version_number(least), true);

-- the first number that is none of a version's releases
CREATE OR REPLACE MACRO version_after(version) AS version_number(version) + CASE len(string_split(version, '.'))
    WHEN 1 THEN 1000000::BIGINT * 1000000
    WHEN 2 THEN 1000000
    ELSE 1
END;

CREATE OR REPLACE MACRO version_range(least, most) AS iif(least = most, least, least || ' to ' || most);
