-- the longest context and the most sequences between, at and beyond the points of a line
WITH said AS (
    SELECT points, capacity, multiple
    FROM (VALUES ([{'at': 256, 'need': 100}, {'at': 1024, 'need': 200}, {'at': 8192, 'need': 1000}]), ([{'at': 512,
        'need': 300}]), ([{'at': 1, 'need': 50}, {'at': 8, 'need': 50}])) AS line(points),
        (VALUES (49), (50), (99), (100), (101), (199), (200), (555), (999), (1000), (5000)) AS card(capacity),
            (VALUES (1), (16), (256)) AS cell(multiple)
)
SELECT len(points) AS points, capacity, multiple, points_that_fit(points, capacity) AS fitting, largest_between(points,
    capacity, multiple) AS between, largest_beyond(points, capacity, 20000) AS beyond
FROM said ORDER BY ALL
