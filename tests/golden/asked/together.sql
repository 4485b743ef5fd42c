-- unlike cards in llama.cpp
SELECT 1 AS place, * FROM fits_together(['rtx-3090', 'rtx-3060-12gb'], 'google/gemma-4-12B-it', context_tokens := 8192)
UNION ALL SELECT 2, * FROM fits_together(['rtx-3060-12gb', 'rtx-4090', 'gtx-1080-ti'], 'openai/gpt-oss-20b',
    dtype_id := 'gguf-mxfp4', context_tokens := 100000)
UNION ALL SELECT 4, * FROM fits_together(['rtx-3090'], 'microsoft/phi-4')
UNION ALL SELECT 5, * FROM fits_together(['rtx-3090', 'no-such-card'], 'microsoft/phi-4')
UNION ALL SELECT 6, * FROM fits_together(['no-such-card', 'another-one', 'gtx-1080'], 'microsoft/phi-4')
UNION ALL SELECT 7, * FROM fits_together(['rx-7900-xtx', 'rtx-4090', 'm2-max-64gb'], 'microsoft/phi-4')
UNION ALL SELECT 8, * FROM fits_together([]::VARCHAR[], 'microsoft/phi-4')
ORDER BY place, card_place
