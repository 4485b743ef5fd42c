-- no format of ours holds a model in less than two bits or more than its fp32 size and a tenth; what others publish has 1 to 64 bits
-- (a format that fills matrices up holds a model that is narrower than what it fills up to in more: one of a test, of
-- a hidden size of 12)
SELECT model_id, dtype_id, weights_bytes, parameter_count
FROM weight JOIN model USING (model_id)
    LEFT JOIN (SELECT dtype_id, max(pad_multiple) AS pad_multiple FROM weight_format GROUP BY dtype_id) USING (dtype_id)
WHERE CASE dtype_id
    WHEN 'stored' THEN weights_bytes NOT BETWEEN parameter_count / 8 AND parameter_count * 8.8
    ELSE weights_bytes < parameter_count / 4
        OR weights_bytes > parameter_count * 4.4 AND NOT coalesce(hidden_size < pad_multiple, false)
END
