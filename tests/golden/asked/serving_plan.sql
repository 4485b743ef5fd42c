FROM plan_for('h100-sxm', 'google/gemma-4-12B-it', users := 40, context_tokens := 32768)
-- by its own defaults
UNION ALL FROM plan_for('h100-sxm', 'google/gemma-4-12B-it')
ORDER BY ALL
