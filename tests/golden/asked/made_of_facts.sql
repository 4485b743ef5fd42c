-- tables that formulas make of facts alone, whole, as digests of their rows
SELECT 'training_share' AS relation, concat_ws(' ', architecture, segment, is_adapter, scale, basis) AS row_of,
    md5(to_json(one)::VARCHAR)[:8] AS digest FROM training_share AS one
UNION ALL SELECT 'training_rate', run_id, md5(to_json(one)::VARCHAR)[:8] FROM training_rate AS one
UNION ALL SELECT 'plan_way', concat_ws(' ', engine, sharding), md5(to_json(one)::VARCHAR)[:8] FROM plan_way AS one
UNION ALL SELECT 'engine_speed', engine_id, md5(to_json(one)::VARCHAR)[:8] FROM engine_speed AS one
UNION ALL SELECT 'engine_row', name, md5(to_json(one)::VARCHAR)[:8] FROM engine_row AS one
UNION ALL SELECT 'program_known', program_id, md5(to_json(one)::VARCHAR)[:8] FROM program_known AS one
UNION ALL SELECT 'program_row', program_id, md5(string_agg(to_json(one)::VARCHAR, ' '
    ORDER BY to_json(one)::VARCHAR))[:8]
    FROM program_row AS one GROUP BY program_id
UNION ALL SELECT 'program_name', program_id, md5(string_agg(to_json(one)::VARCHAR, ' '
    ORDER BY to_json(one)::VARCHAR))[:8]
    FROM program_name AS one GROUP BY program_id
UNION ALL SELECT 'gpu', gpu_id, md5(to_json(one)::VARCHAR)[:8] FROM gpu AS one
UNION ALL SELECT 'card_whole', gpu_id, whole_card_bytes::VARCHAR FROM card_whole
ORDER BY ALL
