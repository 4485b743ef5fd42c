-- no format of ours holds a model in less than two bits or more than its fp32 size and a tenth; what others publish goes from 1 to 64 bits
SELECT model_id, dtype_id, weights_bytes, parameter_count
FROM weight JOIN model USING (model_id)
WHERE weights_bytes NOT BETWEEN parameter_count / iif(dtype_id = 'stored', 8, 4) AND parameter_count * iif(dtype_id = 'stored', 8.8, 4.4)
