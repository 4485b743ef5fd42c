-- what formulas make of a model before anybody asks, where no footprint tells it, as digests: what tokens read, what
-- rules of thumb multiply, what adapters of denoisers hold, parts of pipelines, containers, classes of tensors
SELECT 'reading_shape' AS relation, model_id, md5(to_json(one)::VARCHAR)[:8] AS digest FROM reading_shape AS one
    WHERE model_id IN (FROM golden_models)
UNION ALL SELECT 'rule_basis', model_id, md5(to_json(one)::VARCHAR)[:8] FROM rule_basis AS one
    WHERE model_id IN (FROM golden_models)
UNION ALL SELECT 'denoiser_adapted', model_id, md5(to_json(one)::VARCHAR)[:8] FROM denoiser_adapted AS one
    WHERE model_id IN (FROM golden_models)
UNION ALL SELECT 'pipeline_trained', model_id, md5(to_json(one)::VARCHAR)[:8] FROM pipeline_trained AS one
    WHERE model_id IN (FROM golden_models)
UNION ALL SELECT 'model_container', model_id, md5(string_agg(to_json(one)::VARCHAR, ' '
    ORDER BY to_json(one)::VARCHAR))[:8]
    FROM model_container AS one WHERE model_id IN (FROM golden_models) GROUP BY model_id
UNION ALL SELECT 'denoiser_weight', model_id, md5(string_agg(to_json(one)::VARCHAR, ' '
    ORDER BY to_json(one)::VARCHAR))[:8]
    FROM denoiser_weight AS one WHERE model_id IN (FROM golden_models) GROUP BY model_id
UNION ALL SELECT 'weight', model_id, md5(string_agg(to_json(one)::VARCHAR, ' '
    ORDER BY to_json(one)::VARCHAR))[:8]
    FROM weight AS one WHERE model_id IN (FROM golden_models) GROUP BY model_id
UNION ALL SELECT 'tensor_class', model_id, md5(string_agg(to_json(one)::VARCHAR, ' '
    ORDER BY to_json(one)::VARCHAR))[:8]
    FROM tensor_class AS one WHERE model_id IN (FROM golden_models) GROUP BY model_id
ORDER BY ALL
