// The buffer that llama.cpp reserves for the tower of a model that sees: for the image that it warms up with, then for each size.
//   reserve FILE FLASH(0|1) WIDTH HEIGHT IMAGES [WIDTH HEIGHT IMAGES ...]
// `0 0 1` is the image of the warm-up. Its way to lay a graph out is no part of its interface: its source is read in whole.
#include "clip.cpp"
#include "hollow_gpu.h"

int main(int count, char ** given) {
    register_hollow(1);
    clip_context_params params{};
    params.use_gpu = true;
    params.device = &hollow_device[0];
    params.flash_attn_type = atoi(given[2]) ? CLIP_FLASH_ATTN_TYPE_AUTO : CLIP_FLASH_ATTN_TYPE_DISABLED;
    params.image_min_tokens = params.image_max_tokens = -1;
    params.warmup = params.no_alloc = true;
    clip_init_result result = clip_init(given[1], params);
    if (!result.ctx_v) {
        return 2;
    }
    clip_ctx & tower = *result.ctx_v;
    const size_t sound = result.ctx_a ? ggml_backend_sched_get_buffer_size(result.ctx_a->sched.get(), result.ctx_a->backend) : 0;
    for (int i = 3; i + 2 < count; i += 3) {
        const int width = atoi(given[i]), height = atoi(given[i + 1]);
        clip_image_f32_batch batch;
        if (width == 0) {
            batch = clip_model_loader::get_dummy_batch(tower);
        }
        for (int each = 0; width > 0 && each < atoi(given[i + 2]); each++) {
            clip_image_f32 image;
            image.set_size({width, height}, false, false);
            batch.entries.push_back(image);
        }
        // (a scheduler of its own: one that was used before keeps its largest buffer)
        tower.sched.reset(ggml_backend_sched_new(
            tower.backend_ptrs.data(), tower.backend_buft.data(), tower.backend_ptrs.size(), 16384, false, true));
        clip_model_loader::reserve_compute_meta(tower, batch);
        const size_t size = ggml_backend_sched_get_buffer_size(tower.sched.get(), tower.backend);
        printf("TOWER %d %d %s %zu %d %d %zu\n", batch.entries[0].nx(), batch.entries[0].ny(), given[i + 2], size,
            tower.flash_attn_type == CLIP_FLASH_ATTN_TYPE_ENABLED, clip_n_output_tokens(&tower, &batch.entries[0]), sound);
    }
    return 0;
}
