-- which engine runs which format on which card
PRAGMA enable_optimizer;
SELECT engine_id, phase_id, attention, running_id, count(*) AS cards, count(*) FILTER (runs) AS running,
    md5(string_agg(gpu_id || coalesce(how, '-') || runs, ' ' ORDER BY gpu_id)) AS which
FROM runs_on GROUP BY ALL ORDER BY ALL
