-- a model with a count has tensors that add up to it; one without has none
SELECT model_id, parameter_count, sum(element_count)
FROM model LEFT JOIN tensor USING (model_id)
GROUP BY model_id, parameter_count
HAVING parameter_count IS DISTINCT FROM sum(element_count)
