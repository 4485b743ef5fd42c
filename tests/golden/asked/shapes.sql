-- what formulas read of a model, as a digest: allocation, blocks, census, mixers, norms, adapters; and of forms that no
-- other question has a model of: activations, attention, losses, layers of several kinds, engines that lack a class
WITH of_rare_form AS (
    FROM (VALUES ('CohereForAI/c4ai-command-r-v01'), ('EleutherAI/gpt-neo-125m'), ('GSAI-ML/LLaDA-8B-Instruct'),
        ('Helsinki-NLP/opus-mt-en-de'), ('LiquidAI/LFM2.5-VL-1.6B'), ('Qwen/Qwen-72B'), ('Qwen/Qwen1.5-MoE-A2.7B'),
        ('Qwen/Qwen2.5-3B-Instruct-AWQ'), ('Qwen/Qwen2.5-Omni-3B'), ('Qwen/Qwen3-ASR-1.7B'),
        ('Qwen/Qwen3.8-Flash-Next'), ('Salesforce/blip2-opt-2.7b'), ('Salesforce/instructblip-flan-t5-xl'),
        ('allenai/OLMo-1B-hf'), ('allenai/longformer-base-4096'), ('amazon/chronos-2'), ('apple/OpenELM-270M-Instruct'),
        ('bigcode/tiny_starcoder_py'), ('bigscience/bloomz-560m'), ('cross-encoder/mmarco-mMiniLMv2-L12-H384-v1'),
        ('deepseek-ai/DeepSeek-V3.2'), ('deepseek-ai/DeepSeek-V4-Flash'),
        ('deepseek-ai/DeepSeek-V4-Flash-Vision-Exp'), ('facebook/nllb-200-distilled-600M'),
        ('facebook/sam-vit-base'), ('google/diffusiongemma-26B-A4B-it'), ('google/flan-t5-base'), ('google/fnet-base'),
        ('google/gemma-3n-E2B-it'), ('google/t5gemma-2-270m-270m'), ('jonatasgrosman/wav2vec2-large-xlsr-53-russian'),
        ('kyutai/mimi'), ('meta-llama/Prompt-Guard-86M'), ('microsoft/Florence-2-base'), ('microsoft/kosmos-2.5'),
        ('microsoft/trocr-base-printed'), ('moonshotai/Kimi-Linear-48B-A3B-Instruct'), ('nytopop/Qwen3-30B-A3B.w8a8'),
        ('openai-community/gpt2'),
        ('openai/clip-vit-large-patch14'), ('openbmb/MiniCPM-o-4_5'), ('openbmb/MiniCPM3-4B'),
        ('swiss-ai/Apertus-8B-Instruct-2509'), ('zai-org/GLM-5.3'), ('zai-org/GLM-5.3-Flash')) AS one(model_id)
)
SELECT shape.model_id, md5(to_json(shape)::VARCHAR)[:12] AS digest FROM shape
    WHERE shape.model_id IN (FROM golden_models) OR shape.model_id IN (FROM of_rare_form) ORDER BY ALL
