"""The models that programs are asked of."""

MODEL = "Qwen/Qwen3-8B"
OLDER = "Qwen/Qwen2.5-7B-Instruct"  # every version that was read has its class
MIXTURE = "Qwen/Qwen3-30B-A3B-Instruct-2507"
SHARED = "zai-org/GLM-4.5-Air"  # beside its routed experts it has a shared one, and a dense layer
