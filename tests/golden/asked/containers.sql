-- what the files of a repository are, of what model, and whether they are the whole of it
FROM container_of('unsloth/Qwen3-8B-GGUF')
UNION ALL FROM container_of('unsloth/Qwen3.5-4B-GGUF')
UNION ALL FROM container_of('Systran/faster-whisper-tiny')
UNION ALL FROM container_of('Jackrong/Qwen3.8-27B-MTP-GGUF')
UNION ALL FROM container_of('audio-cpp/audio.cpp-gguf')
UNION ALL FROM container_of('Qwen/Qwen3-8B')
-- GGUF of a class that MLX LM alone cannot load, that llama.cpp has no converter for, and that it loads otherwise
UNION ALL FROM container_of('openbmb/MiniCPM-V-4.6-gguf')
UNION ALL FROM container_of('AMAImedia/DeepSeek-V4.1-Flash-FP8-GGUF')
UNION ALL FROM container_of('unsloth/gpt-oss-120b-GGUF')
UNION ALL FROM container_of('openai/gpt-oss-120b')
-- GGUF that counts the towers of its original too; and what the almanac has not, of one that sees
UNION ALL FROM container_of('unsloth/Qwen2.5-VL-7B-Instruct-GGUF')
UNION ALL FROM container_of('Qwen/Qwen2.5-VL-7B-Instruct')
UNION ALL FROM container_of('someone/gemma-3-4b-it-GGUF')
UNION ALL FROM container_of('someone/gemma-3-4b-it-ONNX')
UNION ALL FROM container_of('google/gemma-3-4b-it')
UNION ALL FROM container_of('nobody/faster-whisper-large-v9-onnx')
-- one that counts otherwise than its original, and one of which no count is known
UNION ALL FROM container_of('unsloth/GLM-5.2-GGUF')
UNION ALL FROM container_of('unsloth/Kimi-K3-GGUF')
ORDER BY ALL
