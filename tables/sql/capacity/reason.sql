-- Why there is no verdict on a card.
--
--   no_verdict_reason(card, asked, total, footprint_reason, model_asked, not_there)
--     card is the id of the card's row, null where there is none; asked what was asked for; not_there why the scenario
--     does not run on that card
--
-- Units: none. Source: support.sql and the footprint's own reasons. Not covered: what a footprint's reason covers.

CREATE OR REPLACE MACRO missing_reason(card, asked, total, footprint_reason, not_there) AS CASE
    WHEN asked IS NULL THEN 'no GPU was named'
    WHEN card IS NULL THEN no_gpu_reason(asked)
    WHEN total IS NULL THEN footprint_reason
    ELSE not_there
END;
CREATE OR REPLACE MACRO no_verdict_reason(card, asked, total, footprint_reason, model_asked, not_there) AS
    with_nearest(missing_reason(card, asked, total, footprint_reason, not_there), model_asked);
