// The buffers that llama.cpp reserves for a micro-batch of text.
//   reserve FILE CELLS SEQUENCES FLASH(0|1) KV_TYPE(ggml_type) DEVICES [MICRO_BATCH [OUTPUTS]]
#include "gguf.h"
#include "hollow_gpu.h"
#include "llama.h"
#include <algorithm>

// (a file without tensors: llama.cpp makes those that its keys imply)
static void leave_empty(ggml_tensor *, void *) {}
static llama_model * load(const char * path, llama_model_params params) {
    gguf_context * keys = gguf_init_from_file(path, { true, nullptr });
    return gguf_get_n_tensors(keys) > 0 ? llama_model_load_from_file(path, params) : llama_model_init_from_user(keys, leave_empty, nullptr, params);
}

int main(int count, char ** given) {
    if (count < 7) {
        return 1;
    }
    register_hollow(atoi(given[6]));
    llama_model_params model_params = llama_model_default_params();
    model_params.n_gpu_layers = 9999;
    model_params.no_alloc = true;
    llama_model * model = load(given[1], model_params);
    llama_context_params params = llama_context_default_params();
    params.n_ctx = atoi(given[2]);
    params.n_seq_max = atoi(given[3]);
    params.n_ubatch = count > 7 ? atoi(given[7]) : params.n_ubatch;
    params.n_batch = std::max(params.n_batch, params.n_ubatch);
    params.n_outputs_max = count > 8 ? atoi(given[8]) : 0; // (0: as many as tokens)
    params.flash_attn_type = atoi(given[4]) ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
    params.type_k = params.type_v = (ggml_type) atoi(given[5]);
    params.kv_unified = true;
    params.swa_full = false;
    return model && llama_init_from_model(model, params) ? 0 : 2;
}
