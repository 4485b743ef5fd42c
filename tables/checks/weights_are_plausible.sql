-- no format holds a model in less than two bits or more than its fp32 size and a tenth
SELECT model_id, dtype_id, weights_bytes, parameter_count
FROM weight JOIN model USING (model_id)
WHERE weights_bytes NOT BETWEEN parameter_count / 4 AND parameter_count * 4.4
