// The buffers that llama.cpp reserves for a micro-batch of text.
//   reserve FILE CELLS SEQUENCES FLASH(0|1) KV_TYPE(ggml_type) DEVICES
#include "hollow_gpu.h"
#include "llama.h"

int main(int count, char ** given) {
    if (count != 7) {
        return 1;
    }
    register_hollow(atoi(given[6]));
    llama_model_params model_params = llama_model_default_params();
    model_params.n_gpu_layers = 9999;
    model_params.no_alloc = true;
    llama_model * model = llama_model_load_from_file(given[1], model_params);
    llama_context_params params = llama_context_default_params();
    params.n_ctx = atoi(given[2]);
    params.n_seq_max = atoi(given[3]);
    params.flash_attn_type = atoi(given[4]) ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
    params.type_k = params.type_v = (ggml_type) atoi(given[5]);
    params.kv_unified = true;
    params.swa_full = false;
    return model && llama_init_from_model(model, params) ? 0 : 2;
}
