// Devices that llama.cpp takes for GPUs and that hold nothing: every operation is said to be supported, no buffer has memory. With them
// its scheduler cuts and places a graph as it does for CUDA's cards, and says how large its buffers would be.
#pragma once
#include "ggml-backend-impl.h"
#include "ggml-impl.h"
#include <cstdlib>
#include <cstring>

static const char * NAMES[] = {"HOLLOW0","HOLLOW1","HOLLOW2","HOLLOW3","HOLLOW4","HOLLOW5","HOLLOW6","HOLLOW7"};
static const char * name(ggml_backend_buffer_type_t b) { return NAMES[(size_t) b->context]; }
static size_t alignment(ggml_backend_buffer_type_t) { return 128; }
static size_t alloc_size(ggml_backend_buffer_type_t, const ggml_tensor * tensor) {
    size_t size = ggml_nbytes(tensor);
    if (tensor->op == GGML_OP_FLASH_ATTN_EXT) {
        // keys and values that are not F16 are unpacked behind the result (fattn-common.cuh)
        for (int i = 1; i <= 2; i++) {
            if (tensor->src[i]->type != GGML_TYPE_F16) {
                const ggml_tensor * keys = tensor->src[1], * values = tensor->src[2];
                // (values of a latent are a view of its keys)
                if (i == 2 && values->view_src && values->view_src == keys->view_src && values->view_offs == keys->view_offs) {
                    continue;
                }
                size = (size + 127) / 128 * 128 + 2 * ggml_nelements(tensor->src[i]);
            }
        }
    }
    // rows of quantised matrices are filled up to 512 elements
    if (ggml_is_quantized(tensor->type) && tensor->ne[0] % 512 != 0) {
        size += ggml_row_size(tensor->type, 512 - tensor->ne[0] % 512);
    }
    return size;
}
static bool is_host(ggml_backend_buffer_type_t) { return false; }

static void free_buffer(ggml_backend_buffer_t) {}
static void * base(ggml_backend_buffer_t) { return (void *) 0x1000; }
static void memset_tensor(ggml_backend_buffer_t, ggml_tensor *, uint8_t, size_t, size_t) {}
static void set_tensor(ggml_backend_buffer_t, ggml_tensor *, const void *, size_t, size_t) {}
static void get_tensor(ggml_backend_buffer_t, const ggml_tensor *, void *, size_t, size_t) {}
static void clear(ggml_backend_buffer_t, uint8_t) {}

static ggml_backend_buffer_t alloc_buffer(ggml_backend_buffer_type_t buft, size_t size) {
    ggml_backend_buffer_i iface{};
    iface.free_buffer = free_buffer;
    iface.get_base = base;
    iface.memset_tensor = memset_tensor;
    iface.set_tensor = set_tensor;
    iface.get_tensor = get_tensor;
    iface.clear = clear;
    return ggml_backend_buffer_init(buft, iface, nullptr, size);
}

extern ggml_backend_device hollow_device[8];
static ggml_backend_buffer_type hollow_buft[8];
static int index_of(ggml_backend_dev_t dev) { return (int) (dev - hollow_device); }

static const char * backend_name(ggml_backend_t b) { return NAMES[index_of(b->device)]; }
static void backend_free(ggml_backend_t backend) { delete backend; }
static ggml_status compute(ggml_backend_t, ggml_cgraph *) { return GGML_STATUS_SUCCESS; }

static const char * dev_name(ggml_backend_dev_t d) { return NAMES[index_of(d)]; }
static void memory(ggml_backend_dev_t, size_t * free, size_t * total) { *free = *total = (size_t) 1 << 42; }
static enum ggml_backend_dev_type type(ggml_backend_dev_t) { return GGML_BACKEND_DEVICE_TYPE_GPU; }
static void props(ggml_backend_dev_t dev, ggml_backend_dev_props * p) {
    memset(p, 0, sizeof(*p));
    p->name = p->description = dev_name(dev); p->caps.async = p->caps.events = true;
    p->type = type(dev);
    memory(dev, &p->memory_free, &p->memory_total);
}
static ggml_backend_t init(ggml_backend_dev_t dev, const char *) {
    static ggml_guid guid = { 0x68, 0x6f, 0x6c, 0x6c, 0x6f, 0x77, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 };
    ggml_backend_i iface{};
    iface.get_name = backend_name;
    iface.free = backend_free;
    iface.graph_compute = compute;
    return new ggml_backend{ &guid, iface, dev, nullptr };
}
static ggml_backend_buffer_type_t buft(ggml_backend_dev_t d) { return &hollow_buft[index_of(d)]; }
// heads that CUDA's fused attention has kernels for, of those that a tower of images has (ggml-cuda/fattn.cu); without one it is not fused
static bool supports_op(ggml_backend_dev_t, const ggml_tensor * op) {
    if (op->op != GGML_OP_FLASH_ATTN_EXT) {
        return true;
    }
    switch (op->src[1]->ne[0]) {
        case 40: case 64: case 72: case 80: case 96: case 112: case 128: case 192: case 256: case 320: case 512: case 576:
            return true;
        default:
            return false;
    }
}
static bool supports_buft(ggml_backend_dev_t d, ggml_backend_buffer_type_t b) { return b == &hollow_buft[index_of(d)]; }

static const char * reg_name(ggml_backend_reg_t) { return "HOLLOW"; }
static int N = 1;
static size_t device_count(ggml_backend_reg_t) { return N; }
static ggml_backend_dev_t device(ggml_backend_reg_t, size_t i) { return &hollow_device[i]; }
static void * proc_address(ggml_backend_reg_t, const char *) { return nullptr; }
static ggml_backend_reg hollow_reg = { GGML_BACKEND_API_VERSION, { reg_name, device_count, device, proc_address }, nullptr };

static ggml_backend_event_t event_new(ggml_backend_dev_t dev) { return new ggml_backend_event{ dev, nullptr }; }
static void event_free(ggml_backend_dev_t, ggml_backend_event_t event) { delete event; }
static void event_sync(ggml_backend_dev_t, ggml_backend_event_t) {}
ggml_backend_device hollow_device[8];

void register_hollow(int n) {
    N = n;
    for (int i = 0; i < n; i++) {
        hollow_device[i] = { { dev_name, dev_name, memory, type, props, init, buft, nullptr, nullptr, supports_op, supports_buft, nullptr, event_new, event_free, event_sync }, &hollow_reg, nullptr };
        hollow_buft[i] = { { name, alloc_buffer, alignment, nullptr, alloc_size, is_host }, &hollow_device[i], (void *) (size_t) i };
    }
    ggml_backend_register(&hollow_reg);
}
