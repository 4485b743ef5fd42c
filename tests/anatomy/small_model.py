"""A small Llama that the tests of grades and relatives make up models from."""

LLAMA = {
    "model_type": "llama",
    "hidden_size": 512,
    "intermediate_size": 1280,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
    "vocab_size": 32000,
    "tie_word_embeddings": False,
}
