-- speech by seconds: every kind that writes or hears it, and what is refused
PRAGMA enable_optimizer;
FROM speech_of('unsloth/orpheus-3b-0.1-ft', seconds := 25)
UNION ALL FROM speech_of('maya-research/maya1', seconds := 10.5, dtype_id := 'gguf-q8_0', engine_id := 'llama.cpp',
    text_tokens := 300)
UNION ALL FROM speech_of('Qwen/Qwen3-TTS-12Hz-0.6B-Base', seconds := 60)
UNION ALL FROM speech_of('hexgrad/Kokoro-82M', seconds := 40, dtype_id := 'fp32')
UNION ALL FROM speech_of('coqui/XTTS-v2', seconds := 12, dtype_id := 'fp32')
UNION ALL FROM speech_of('nvidia/parakeet-tdt-0.6b-v3', seconds := 300)
UNION ALL FROM speech_of('facebook/musicgen-medium', seconds := 20)
UNION ALL FROM speech_of('mistralai/Voxtral-Mini-4B-Realtime-2602', seconds := 90)
UNION ALL FROM speech_of('sesame/csm-1b', seconds := 100000)
UNION ALL FROM speech_of('nari-labs/Dia-1.6B', seconds := 0)
UNION ALL FROM speech_of('facebook/mms-tts-eng', dtype_id := 'bf16')
UNION ALL FROM speech_of('Qwen/Qwen3-8B')
UNION ALL FROM speech_of('unsloth/orpheus-3b-0.1-ft', seconds := 4000, dtype_id := 'no-such-format')
