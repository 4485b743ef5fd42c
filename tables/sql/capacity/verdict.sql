-- The verdict: what a workload needs against what a card gives. This is the only place where the two are compared.
--
--   needed = total × (1 + band)   what a card has to give for a total whose error band is that share of it
--
--   fits       one card gives that
--   multi-gpu  each of several cards gives it
--   tight      the total is within what a card gives, its error band is not
--   no         the total is more
--
--   card_verdict(total, band, capacity, gpu_count)   of one way to share; null where total or capacity are not known
--   hangs_on_copy(total, band, more, capacity)   whether a tight verdict is one by how the copy was packed
--   chosen(totals, capacity)      of several numbers of cards the one that answers: one card where its total is within
--                                 the card at all, else the fewest that give the band too, else the fewest that give
--                                 the total; null where none does. `totals` are rows of gpu_count, total and need,
--                                 the fewest cards first
--   several(totals, capacity)     the same of somebody who asks for several: the fewest beyond one that give the band
--                                 too, else the fewest that give the total
--   verdict_of(totals, chosen, capacity)   the verdict of that
--
-- Units: any, the same for total and capacity (bytes in the tables, KiB on pages). Source: what we define; error_band
-- is error-bands/error_band.sql. SQL asks these macros as they are; the file of the table `compatibility` and the pages
-- have them in Python, the browser in JavaScript, both translated from here (pipeline/render/data/rules.py).
-- Not covered: mixed cards.

CREATE OR REPLACE MACRO needed(total, band) AS total * (1 + band);
CREATE OR REPLACE MACRO takes(total, band, capacity) AS needed(total, band) <= capacity;

CREATE OR REPLACE MACRO word_for(total, need, capacity, gpu_count) AS CASE
    WHEN need <= capacity THEN iif(gpu_count > 1, 'multi-gpu', 'fits')
    WHEN total <= capacity THEN 'tight'
    WHEN total > capacity THEN 'no'
END;
CREATE OR REPLACE MACRO card_verdict(total, band, capacity, gpu_count) AS
    word_for(total, needed(total, band), capacity, gpu_count);

-- `more` of the band is what a packed copy may hold beyond most: without it the total and its band fit.
CREATE OR REPLACE MACRO hangs_on_copy(total, band, more, capacity) AS total <= capacity
    AND needed(total, band) > capacity AND needed(total, band) - more <= capacity;

CREATE OR REPLACE MACRO fitting(totals, capacity) AS list_filter(totals, lambda row: row.need <= capacity)[1];
CREATE OR REPLACE MACRO barely_fitting(totals, capacity) AS list_filter(totals, lambda row: row.total <= capacity)[1];
CREATE OR REPLACE MACRO chosen_of(fitting, barely_fitting) AS
    iif(barely_fitting.gpu_count = 1, barely_fitting, coalesce(fitting, barely_fitting));
CREATE OR REPLACE MACRO chosen(totals, capacity) AS
    chosen_of(fitting(totals, capacity), barely_fitting(totals, capacity));
CREATE OR REPLACE MACRO several(totals, capacity) AS coalesce(
    list_filter(totals, lambda row: row.gpu_count > 1 AND row.need <= capacity)[1], barely_fitting(totals, capacity));
CREATE OR REPLACE MACRO verdict_of(totals, chosen, capacity) AS
    iif(totals IS NULL, NULL, coalesce(word_for(chosen.total, chosen.need, capacity, chosen.gpu_count), 'no'));
