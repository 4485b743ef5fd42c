-- which number of cards is told, and its word: one card that is tight, several that fit, and the other way round,
-- to the byte of the capacity
WITH said AS (
    SELECT capacity, [{'gpu_count': 1, 'sharding': NULL, 'total': one, 'need': one * 1.1}, {'gpu_count': 2,
        'sharding': 'zero2', 'total': two, 'need': two * 1.1}] AS totals
    FROM (VALUES (10), (20), (30)) AS first(one), (VALUES (4), (10), (20)) AS second(two), (VALUES (4), (5), (10), (11),
        (12), (20), (22), (30), (33)) AS card(capacity)
    UNION ALL SELECT 10, NULL
)
SELECT totals[1].total AS one, totals[2].total AS two, capacity, chosen(totals, capacity).gpu_count AS gpu_count,
    verdict_of(totals, chosen(totals, capacity), capacity) AS verdict,
    card_verdict(totals[1].total, 0.1, capacity, 1) AS of_one, card_verdict(totals[1].total, 0.1, capacity,
        2) AS of_several, takes(totals[1].total, 0.1, capacity) AS takes
FROM said ORDER BY ALL
