-- What a card gives one program by the system that it is in.
--
--   linux     capacity_bytes: nothing else is on the card
--   windows   the share of the card that one process gets before it pages, and never more than capacity_bytes
--   desktop   null: what a desktop and its programs leave nobody can say but the driver
--
-- Cards of servers and chips with unified memory are as under Linux in all of them.
-- Units: bytes; memory_gib_nominal in GiB. Source: capacity.sql; capacity-survey for wddm_share, which is rough.
-- Pages and the calculator ask this, translated (pipeline/render/data/rules.py); the tables are published for Linux.
-- Not covered: a display of its own on a card of servers; WSL; what a driver's fallback to the host's memory lends.

-- A chip whose memory is the computer's: there is no other to share a model with, and several are as many computers.
CREATE OR REPLACE MACRO is_computer(card) AS coalesce(card.segment IN ('unified', 'embedded'), false);

CREATE OR REPLACE MACRO system_bytes(card, system, constants) AS CASE
    WHEN system = 'linux' OR NOT card.segment IN ('consumer', 'workstation') THEN card.capacity_bytes
    WHEN system = 'windows' AND constants.wddm_share * card.memory_gib_nominal * 1024 * 1048576 >= card.capacity_bytes
        THEN card.capacity_bytes
    -- (null of a card whose size nobody says, which least would pass over)
    WHEN system = 'windows' THEN floor(constants.wddm_share * card.memory_gib_nominal * 1024 * 1048576)
END;
