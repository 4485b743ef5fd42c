-- the tokens of pictures, wide, high, small and large, by every way to cut them
WITH picture AS (
    SELECT model_id, side.*
    FROM (VALUES ('Qwen/Qwen3.5-9B'), ('Salesforce/blip-image-captioning-base'),
        ('meta-llama/Llama-3.2-11B-Vision-Instruct'), ('google/gemma-4-12B-it'),
        ('meta-llama/Llama-4-Scout-17B-16E-Instruct'), ('mistralai/Mistral-Small-3.1-24B-Instruct-2503'),
            ('moonshotai/Kimi-K2.6'),
        ('microsoft/Phi-3.5-vision-instruct'), ('llava-hf/llava-1.5-7b-hf'), ('llava-hf/llava-v1.6-mistral-7b-hf'),
            ('google/paligemma-3b-pt-224'),
        ('HuggingFaceTB/SmolVLM2-500M-Video-Instruct'), ('HuggingFaceM4/Idefics3-8B-Llama3'), ('adept/fuyu-8b'),
            ('MiniMaxAI/MiniMax-M3'),
        ('deepseek-ai/DeepSeek-OCR-2'), ('Qwen/Qwen3-Omni-30B-A3B-Instruct'), ('thinkingmachines/Inkling')
    ) AS seeing(model_id),
    (VALUES (1920, 1080), (333, 777), (4000, 3000), (64, 900), (224, 224), (448, 449), (2800, 150), (20, 30), (100,
        101), (336, 337),
        (640, 480), (1000, 1000), (1344, 1344), (3000, 28), (10000, 9000), (NULL, NULL)) AS side(image_width,
            image_height)
)
FROM pictures('picture') ORDER BY ALL
