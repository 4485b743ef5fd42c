SELECT 1 AS place, * FROM image_tokens_of('Qwen/Qwen3.5-9B', image_width := 1920, image_height := 1080)
UNION ALL BY NAME SELECT 2 AS place, * FROM image_tokens_of('llava-hf/llava-v1.6-mistral-7b-hf', image_width := 500,
    image_height := 1500)
UNION ALL BY NAME SELECT 3 AS place, * FROM image_tokens_of('google/gemma-2b', image_width := 500, image_height := 1500)
UNION ALL BY NAME SELECT 4 AS place, * FROM image_tokens_of('Qwen/Qwen3.5-9B', image_width := 0, image_height := 30000)
UNION ALL BY NAME SELECT 5 AS place, * FROM image_tokens_of('adept/fuyu-8b')
UNION ALL BY NAME SELECT 6 AS place, * FROM image_tokens_of('llava-hf/llava-onevision-qwen2-0.5b-ov-hf',
    image_width := 3000, image_height := 2500)
UNION ALL BY NAME SELECT 7 AS place, * FROM image_tokens_of('llava-hf/llava-onevision-qwen2-0.5b-ov-hf',
    image_width := 800, image_height := 600)
-- (one pixel wide, and one high)
UNION ALL BY NAME SELECT 8 AS place, * FROM image_tokens_of('llava-hf/llava-v1.6-mistral-7b-hf',
    image_width := 1, image_height := 300)
UNION ALL BY NAME SELECT 9 AS place, * FROM image_tokens_of('llava-hf/llava-v1.6-mistral-7b-hf',
    image_width := 300, image_height := 1)
ORDER BY place
