-- no format of ours holds a model in less than two bits or more than its fp32 size and a tenth; what others publish has 1 to 64 bits
SELECT model_id, dtype_id, weights_bytes, parameter_count
FROM weight JOIN model USING (model_id)
WHERE CASE dtype_id
    WHEN 'stored' THEN weights_bytes NOT BETWEEN parameter_count / 8 AND parameter_count * 8.8
    ELSE weights_bytes NOT BETWEEN parameter_count / 4 AND parameter_count * 4.4
END
