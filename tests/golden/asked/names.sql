-- names as people write them: cards, and repositories of models
SELECT 'A100 40G' AS asked, string_agg(gpu_id, ' ' ORDER BY gpu_id) AS found FROM gpus_called('A100 40G')
UNION ALL SELECT 'lama as llama', is_alike('lama', 'llama')::VARCHAR
UNION ALL SELECT '120 as 120b', concat_ws(' ', is_size('120', '120b'), is_size('8', '8b'), is_size('120', '120'))
UNION ALL SELECT 'phi as phy', is_alike('phi', 'phy')::VARCHAR
UNION ALL SELECT '4090' AS asked, string_agg(gpu_id, ' ' ORDER BY gpu_id) AS found FROM gpus_called('4090')
UNION ALL SELECT 'RTX 3060 12GB' AS asked, string_agg(gpu_id, ' ' ORDER BY gpu_id) AS found
    FROM gpus_called('RTX 3060 12GB')
UNION ALL SELECT '7900 xtx' AS asked, string_agg(gpu_id, ' ' ORDER BY gpu_id) AS found FROM gpus_called('7900 xtx')
UNION ALL SELECT 'MacBook M2 Max 64 GB' AS asked, string_agg(gpu_id, ' ' ORDER BY gpu_id) AS found
    FROM gpus_called('MacBook M2 Max 64 GB')
UNION ALL SELECT 'Mac Studio' AS asked, string_agg(gpu_id, ' ' ORDER BY gpu_id) AS found
    FROM gpus_called('Mac Studio')
UNION ALL SELECT 'm1' AS asked, string_agg(gpu_id, ' ' ORDER BY gpu_id) AS found FROM gpus_called('m1')
UNION ALL SELECT 'h100' AS asked, string_agg(gpu_id, ' ' ORDER BY gpu_id) AS found FROM gpus_called('h100')
UNION ALL SELECT 'nothing of the kind' AS asked, string_agg(gpu_id, ' ' ORDER BY gpu_id) AS found
    FROM gpus_called('nothing of the kind')
UNION ALL SELECT 'RTX-4090' AS asked, string_agg(gpu_id, ' ' ORDER BY gpu_id) AS found FROM gpus_called('RTX-4090')
UNION ALL SELECT 'a6000' AS asked, string_agg(gpu_id, ' ' ORDER BY gpu_id) AS found FROM gpus_called('a6000')
UNION ALL SELECT '24gb' AS asked, string_agg(gpu_id, ' ' ORDER BY gpu_id) AS found FROM gpus_called('24gb')
UNION ALL SELECT 'qwen3:8b', string_agg(to_json(said)::VARCHAR, ' ') FROM repository_of('qwen3:8b') AS said
    WHERE said.model_id IN (FROM golden_models)
UNION ALL SELECT 'ollama run gemma-2b', string_agg(to_json(said)::VARCHAR, ' ')
    FROM repository_of('ollama run gemma-2b') AS said WHERE said.model_id IN (FROM golden_models)
UNION ALL SELECT 'google/gemma-2b', string_agg(to_json(said)::VARCHAR, ' ')
    FROM repository_of('google/gemma-2b') AS said WHERE said.model_id IN (FROM golden_models)
UNION ALL SELECT 'unsloth/gemma-2-2b-it-bnb-4bit', string_agg(to_json(said)::VARCHAR, ' ')
    FROM repository_of('unsloth/gemma-2-2b-it-bnb-4bit') AS said WHERE said.model_id IN (FROM golden_models)
UNION ALL SELECT 'Phi-4-Q4_K_M.gguf', string_agg(to_json(said)::VARCHAR, ' ')
    FROM repository_of('Phi-4-Q4_K_M.gguf') AS said WHERE said.model_id IN (FROM golden_models)
UNION ALL SELECT 'microsoft/phi-4-awq', string_agg(to_json(said)::VARCHAR, ' ')
    FROM repository_of('microsoft/phi-4-awq') AS said WHERE said.model_id IN (FROM golden_models)
UNION ALL SELECT 'https://huggingface.co/openai/gpt-oss-20b', string_agg(to_json(said)::VARCHAR, ' ')
    FROM repository_of('https://huggingface.co/openai/gpt-oss-20b') AS said WHERE said.model_id IN (FROM golden_models)
UNION ALL SELECT 'LLAMA-3.2-11b-vision-instruct', string_agg(to_json(said)::VARCHAR, ' ')
    FROM repository_of('LLAMA-3.2-11b-vision-instruct') AS said WHERE said.model_id IN (FROM golden_models)
UNION ALL SELECT 'gpt-oss-20b-mlx-8bit', string_agg(to_json(said)::VARCHAR, ' ')
    FROM repository_of('gpt-oss-20b-mlx-8bit') AS said WHERE said.model_id IN (FROM golden_models)
UNION ALL SELECT 'gpt-oss-20b-F16.gguf', string_agg(to_json(said)::VARCHAR, ' ')
    FROM repository_of('gpt-oss-20b-F16.gguf') AS said WHERE said.model_id IN (FROM golden_models)
UNION ALL SELECT 'phi-4-fp8', string_agg(to_json(said)::VARCHAR, ' ') FROM repository_of('phi-4-fp8') AS said
    WHERE said.model_id IN (FROM golden_models)
UNION ALL SELECT 'no-such-model', string_agg(to_json(said)::VARCHAR, ' ') FROM repository_of('no-such-model') AS said
    WHERE said.model_id IN (FROM golden_models)
UNION ALL SELECT 'ollama run phi4:14b-q8_0', string_agg(to_json(said)::VARCHAR, ' ')
    FROM repository_of('ollama run phi4:14b-q8_0') AS said WHERE said.model_id IN (FROM golden_models)
-- (what it packs is not known: nothing more of a dense model, and of a mixture all but the experts in 16 bits)
UNION ALL SELECT 'someone/phi-4-fp8', string_agg(to_json(said)::VARCHAR, ' ')
    FROM repository_of('someone/phi-4-fp8') AS said WHERE said.model_id IN (FROM golden_models)
UNION ALL SELECT 'someone/OLMoE-1B-7B-0125-Instruct-FP8', string_agg(to_json(said)::VARCHAR, ' ')
    FROM repository_of('someone/OLMoE-1B-7B-0125-Instruct-FP8') AS said WHERE said.model_id IN (FROM golden_models)
-- (the first words of one model's name, before the same words less how a model is tuned)
UNION ALL SELECT 'qwen3 235b a22b instruct', string_agg(to_json(said)::VARCHAR, ' ')
    FROM repository_of('qwen3 235b a22b instruct') AS said
    WHERE said.model_id IN ('Qwen/Qwen3-235B-A22B-Instruct-2507', 'Qwen/Qwen3-235B-A22B')
