-- what formulas read of a model, as a digest: allocation, blocks, census, mixers, norms, adapters
SELECT model_id, md5(to_json(shape)::VARCHAR)[:12] AS digest FROM shape
    WHERE model_id IN (FROM golden_models) ORDER BY ALL
