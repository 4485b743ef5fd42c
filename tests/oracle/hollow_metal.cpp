// MLX's Metal backend without a GPU: every primitive takes what it takes on Metal and computes nothing, so that a whole
// model's training step can be counted on any machine. What each function allocates, copies and hands on is that of the
// functions of the same names in mlx/backend/metal (release 0.32.2); how long buffers stay is eval.cpp and device.cpp:
// a command buffer is committed after so many operations or elements, and what its operations read is held until the
// GPU is done with it. HOLLOW_BUFFERS is how many wait at once: 10 for a GPU that is slower than the program that feeds
// it (MAX_ACTIVE_TASKS of mlx/transforms.cpp), 0 for one that is done at once.
#include <cstdlib>
#include <deque>
#include <numeric>
#include <unordered_set>

#include "mlx/backend/common/binary.h"
#include "mlx/backend/common/compiled.h"
#include "mlx/backend/common/matmul.h"
#include "mlx/backend/common/reduce.h"
#include "mlx/backend/common/ternary.h"
#include "mlx/backend/common/unary.h"
#include "mlx/backend/gpu/copy.h"
#include "mlx/backend/gpu/device_info.h"
#include "mlx/backend/gpu/eval.h"
#include "mlx/backend/gpu/slicing.h"
#include "mlx/distributed/primitives.h"
#include "mlx/event.h"
#include "mlx/fast.h"
#include "mlx/fast_primitives.h"
#include "mlx/fence.h"
#include "mlx/primitives.h"
#include "mlx/utils.h"

namespace mlx::core {

namespace {

using Held = std::vector<std::shared_ptr<array::Data>>;

int said_number(const char* name, int otherwise) {
  const char* said = std::getenv(name);
  return said ? std::atoi(said) : otherwise;
}

struct Encoder {
  size_t waiting_most = said_number("HOLLOW_BUFFERS", 10);
  int most_operations = said_number("HOLLOW_OPERATIONS", 50);
  size_t most_elements = said_number("HOLLOW_MEBIELEMENTS", 50);
  int operations{0};
  size_t elements{0};
  std::unordered_set<const void*> seen;
  Held held;
  std::deque<Held> waiting;

  void see(const array& a) {
    if (a.data_shared_ptr() && seen.insert(a.buffer().ptr()).second) {
      elements += a.data_size();
    }
  }
  void temporary(const array& a) {
    held.push_back(a.data_shared_ptr());
  }
  template <typename... A>
  void dispatch(const A&... arrays) {
    (see(arrays), ...);
    operations++;
  }
  void commit() {
    waiting.push_back(std::move(held));
    held.clear();
    seen.clear();
    operations = 0;
    elements = 0;
    while (waiting.size() > waiting_most) {
      waiting.pop_front();
    }
  }
  void finish() {
    held.clear();
    seen.clear();
    waiting.clear();
    operations = 0;
    elements = 0;
  }
};

Encoder& encoder() {
  static Encoder one;
  return one;
}

void take(array& out) {
  out.set_data(allocator::malloc(out.nbytes()));
}

array copied(const array& a, const Stream& s) {
  array copy = contiguous_copy_gpu(a, s);
  encoder().temporary(copy);
  return copy;
}

void unary(const array& in, array& out) {
  set_unary_output_data(in, out);
  encoder().dispatch(in, out);
}

void binary(const array& a, const array& b, array& out) {
  set_binary_op_output_data(a, b, out, get_binary_op_type(a, b));
  encoder().dispatch(a, b, out);
}

// softmax and norms: in place where what they read is read by none after
array rows_in_place(const array& x, array& out, bool as_rows, const Stream& s) {
  bool kept = x.flags().contiguous && x.strides()[x.ndim() - 1] == 1;
  if (as_rows && kept && x.ndim() > 1) {
    auto stride = x.strides()[x.ndim() - 2];
    kept &= stride == 0 || stride == x.shape().back() || x.shape(-2) == 1;
  }
  if (!kept) {
    array copy = contiguous_copy_gpu(x, s);
    out.copy_shared_buffer(copy);
    return copy;
  }
  if (x.is_donatable()) {
    out.copy_shared_buffer(x);
  } else {
    out.set_data(
        allocator::malloc(x.data_size() * x.itemsize()), x.data_size(), x.strides(), x.flags());
  }
  return x;
}

array as_matrix(const array& a, const Stream& s) {
  auto stx = a.strides()[a.ndim() - 2];
  auto sty = a.strides()[a.ndim() - 1];
  return sty == 1 || stx == 1 ? a : copied(a, s);
}

void multiply_matrices(const array& a_pre, const array& b_pre, array& out, const Stream& s) {
  take(out);
  array a = as_matrix(a_pre, s), b = as_matrix(b_pre, s);
  int64_t m = a.shape(-2), n = b.shape(-1), k = a.shape(-1);
  int64_t batches = out.size() / (m * n);
  if (batches > 1 && b.size() == static_cast<size_t>(k * n)) {
    m *= batches;
    batches = 1;
  }
  int64_t tiles = ((m + 15) / 16) * ((n + 15) / 16);
  if (batches == 1 && tiles <= 2048 && k / 16 >= 8 && k >= std::max(m, n)) {
    int64_t wide = ((m + 31) / 32) * ((n + 31) / 32), parts = 1;
    while (parts < (k / 16) / wide) {
      parts *= 2;
    }
    parts = std::min<int64_t>(std::max<int64_t>(2, parts), 32);
    array split({static_cast<int>(parts), static_cast<int>(m), static_cast<int>(n)}, float32, nullptr, {});
    take(split);
    encoder().temporary(split);
    encoder().dispatch(a, b, split);
    encoder().dispatch(split, out);
    return;
  }
  encoder().dispatch(a, b, out);
}

array rows_of(const array& a, const Stream& s) {
  if (a.ndim() < 2) {
    return a.strides()[0] == 1 ? a : copied(a, s);
  }
  bool is_matrix = a.strides()[a.ndim() - 2] == a.shape(-1) && a.strides()[a.ndim() - 1] == 1;
  return is_matrix ? a : copied(a, s);
}

void fused_scatter(const array& in, array& out, const Stream& s) {
  CopyType type = in.data_size() == 1 ? CopyType::Scalar
      : in.flags().row_contiguous     ? CopyType::Vector
                                      : CopyType::General;
  copy_gpu(in, out, type, s);
}

} // namespace

namespace gpu {

bool is_available() {
  return true;
}
int device_count() {
  return 1;
}
const std::unordered_map<std::string, std::variant<std::string, size_t>>& device_info(int) {
  static std::unordered_map<std::string, std::variant<std::string, size_t>> said{
      {"device_name", std::string("hollow")}, {"architecture", std::string("applegpu_g13s")},
      {"memory_size", size_t(1) << 40}, {"max_recommended_working_set_size", size_t(1) << 40},
      {"resource_limit", size_t(499000)}, {"max_buffer_length", size_t(1) << 40}};
  return said;
}

void init() {}
void new_stream(Stream) {}
void new_thread_unsafe_stream(Stream) {}
void clear_streams() {}
void finalize(Stream) {
  encoder().commit();
}
void synchronize(Stream) {
  encoder().finish();
}

void eval(array& arr) {
  auto outputs = arr.outputs();
  {
    std::vector<array> inputs;
    if (arr.is_tracer()) {
      inputs = arr.inputs();
    }
    arr.primitive().eval_gpu(arr.inputs(), outputs);
  }
  std::unordered_set<std::shared_ptr<array::Data>> buffers;
  for (auto& in : arr.inputs()) {
    buffers.insert(in.data_shared_ptr());
  }
  for (auto& s : arr.siblings()) {
    buffers.insert(s.data_shared_ptr());
  }
  buffers.erase(arr.data_shared_ptr());
  auto& held = encoder().held;
  held.insert(held.end(), buffers.begin(), buffers.end());
  bool is_full = encoder().operations > encoder().most_operations ||
      (encoder().elements >> 20) > encoder().most_elements;
  if (is_full) {
    encoder().commit();
  }
}

} // namespace gpu

struct Signal {
  std::atomic<Error*> error{nullptr};
};
Event::Event(Stream stream) : stream_(stream) {
  event_ = std::make_shared<Signal>();
}
void Event::wait() {
  encoder().finish();
}
void Event::wait(Stream) {}
void Event::signal(Stream) {}
bool Event::is_signaled() const {
  return true;
}
std::atomic<Error*>& Event::error() {
  return cast<Signal>().error;
}
Fence::Fence(Stream) {}
void Fence::wait(Stream, const array&) {}
void Fence::update(Stream, const array&, bool) {}

void copy_gpu(const array& in, array& out, CopyType type, const Stream& s) {
  if (set_copy_output_data(in, out, type) && in.dtype() == out.dtype()) {
    return;
  }
  copy_gpu_inplace(in, out, type == CopyType::GeneralGeneral ? CopyType::General : type, s);
}
void copy_gpu_inplace(
    const array& in, array& out, const Shape&, const Strides&, const Strides&, int64_t, int64_t, CopyType,
    const Stream&, std::optional<array>, std::optional<array>) {
  if (out.size()) {
    encoder().dispatch(in, out);
  }
}
void fill_gpu(const array& value, array& out, const Stream&) {
  if (out.size()) {
    take(out);
    encoder().dispatch(value, out);
  }
}
void reshape_gpu(const array& in, array& out, Stream s) {
  auto [is_copied, strides] = prepare_reshape(in, out);
  if (is_copied) {
    take(out);
    encoder().dispatch(in, out);
  } else {
    shared_buffer_reshape(in, strides, out);
  }
}
void concatenate_gpu(const std::vector<array>& inputs, array& out, int, const Stream&) {
  take(out);
  for (auto& in : inputs) {
    encoder().dispatch(in, out);
  }
}
array compute_dynamic_offset(const array& indices, const Strides&, const std::vector<int>&, const Stream&) {
  array offset({1}, int64, nullptr, {});
  take(offset);
  encoder().temporary(offset);
  encoder().dispatch(indices, offset);
  return offset;
}

#define UNARY(name) \
  void name::eval_gpu(const std::vector<array>& inputs, array& out) { \
    unary(inputs[0], out); \
  }
#define BINARY(name) \
  void name::eval_gpu(const std::vector<array>& inputs, array& out) { \
    binary(inputs[0], inputs[1], out); \
  }
#define FRESH(name) \
  void name::eval_gpu(const std::vector<array>& inputs, array& out) { \
    take(out); \
    for (auto& in : inputs) { \
      encoder().see(in); \
    } \
    encoder().dispatch(out); \
  }
#define UNREAD(name) \
  void name::eval_gpu(const std::vector<array>&, array&) { \
    throw std::runtime_error(#name " was not read"); \
  }
#define UNREAD_MULTI(name) \
  void name::eval_gpu(const std::vector<array>&, std::vector<array>&) { \
    throw std::runtime_error(#name " was not read"); \
  }

UNARY(Abs) UNARY(ArcCos) UNARY(ArcCosh) UNARY(ArcSin) UNARY(ArcSinh) UNARY(ArcTan) UNARY(ArcTanh)
UNARY(BitwiseInvert) UNARY(Ceil) UNARY(Conjugate) UNARY(Cos) UNARY(Cosh) UNARY(Erf) UNARY(ErfInv) UNARY(Exp)
UNARY(Expm1) UNARY(Floor) UNARY(Imag) UNARY(Log) UNARY(Log1p) UNARY(LogicalNot) UNARY(Negative) UNARY(Real)
UNARY(Round) UNARY(Sigmoid) UNARY(Sign) UNARY(Sin) UNARY(Sinh) UNARY(Sqrt) UNARY(Square) UNARY(Tan) UNARY(Tanh)
BINARY(Add) BINARY(ArcTan2) BINARY(BitwiseBinary) BINARY(Divide) BINARY(Equal) BINARY(Greater) BINARY(GreaterEqual)
BINARY(Less) BINARY(LessEqual) BINARY(LogAddExp) BINARY(LogicalAnd) BINARY(LogicalOr) BINARY(Maximum)
BINARY(Minimum) BINARY(Multiply) BINARY(NotEqual) BINARY(Power) BINARY(Remainder) BINARY(Subtract)
FRESH(Arange) FRESH(ArgReduce) FRESH(Gather) FRESH(GatherAxis) FRESH(RandomBits)
UNREAD(ArgPartition) UNREAD(ArgSort) UNREAD(BlockMaskedMM) UNREAD(Cholesky) UNREAD(Convolution)
UNREAD(FFT) UNREAD(GatherMM) UNREAD(GatherQMM) UNREAD(GatherQQMM) UNREAD(Hadamard) UNREAD(Inverse) UNREAD(Load)
UNREAD(MaskedScatter) UNREAD(Partition) UNREAD(QQMatmul) UNREAD(Scan) UNREAD(SearchSorted) UNREAD(SegmentedMM)
UNREAD(SliceUpdate) UNREAD(Sort)
UNREAD_MULTI(DivMod) UNREAD_MULTI(Eig) UNREAD_MULTI(Eigh) UNREAD_MULTI(LUF) UNREAD_MULTI(QRF) UNREAD_MULTI(SVD)

void Select::eval_gpu(const std::vector<array>& inputs, array& out) {
  auto type = get_ternary_op_type(inputs[0], inputs[1], inputs[2]);
  set_ternary_op_output_data(inputs[0], inputs[1], inputs[2], out, type);
  encoder().dispatch(inputs[0], inputs[1], inputs[2], out);
}
void Softmax::eval_gpu(const std::vector<array>& inputs, array& out) {
  array in = rows_in_place(inputs[0], out, false, stream());
  encoder().dispatch(in, out);
}
void LogSumExp::eval_gpu(const std::vector<array>& inputs, array& out) {
  auto& x = inputs[0];
  array in = x.flags().contiguous && x.strides()[x.ndim() - 1] == 1 ? x : copied(x, stream());
  take(out);
  encoder().dispatch(in, out);
}
void Matmul::eval_gpu(const std::vector<array>& inputs, array& out) {
  multiply_matrices(inputs[0], inputs[1], out, stream());
}
void AddMM::eval_gpu(const std::vector<array>& inputs, array& out) {
  encoder().see(inputs[2]);
  multiply_matrices(inputs[0], inputs[1], out, stream());
}
void QuantizedMatmul::eval_gpu(const std::vector<array>& inputs, array& out) {
  take(out);
  for (auto& in : inputs) {
    encoder().see(rows_of(in, stream()));
  }
  encoder().dispatch(out);
}
void Reduce::eval_gpu(const std::vector<array>& inputs, array& out) {
  array in = inputs[0];
  if (in.size() > 0 && out.size() == in.size()) {
    copy_gpu(in, out, in.flags().contiguous ? CopyType::Vector : CopyType::General, stream());
    return;
  }
  out.set_data(allocator::malloc(std::max<size_t>(out.nbytes(), 4)));
  ReductionPlan plan = get_reduction_plan(in, axes_);
  if (plan.type == GeneralReduce) {
    in = copied(in, stream());
    plan = get_reduction_plan(in, axes_);
  }
  if (plan.type == ContiguousStridedReduce || plan.type == GeneralStridedReduce) {
    // the most that a reduction of long columns takes beside its output
    Shape shape{128};
    shape.insert(shape.end(), out.shape().begin(), out.shape().end());
    array accumulated(std::move(shape), out.dtype(), nullptr, {});
    if (plan.shape.back() >= 32768 && out.size() < 32768) {
      take(accumulated);
      encoder().temporary(accumulated);
    }
  }
  encoder().dispatch(in, out);
}
void Scatter::eval_gpu(const std::vector<array>& inputs, array& out) {
  fused_scatter(inputs[0], out, stream());
  encoder().dispatch(inputs.back(), out);
}
void ScatterAxis::eval_gpu(const std::vector<array>& inputs, array& out) {
  fused_scatter(inputs[0], out, stream());
  encoder().dispatch(inputs[1], inputs[2], out);
}
void Compiled::eval_gpu(const std::vector<array>& inputs, std::vector<array>& outputs) {
  auto [contiguous, negative, shape, strides] = compiled_collapse_contiguous_dims(inputs, outputs[0], is_constant_);
  for (size_t i = 0; i < inputs.size(); i++) {
    if (!is_constant_(i)) {
      encoder().see(inputs[i]);
    }
  }
  compiled_allocate_outputs(inputs, outputs, is_constant_, contiguous);
  for (auto& out : outputs) {
    encoder().see(out);
  }
  encoder().operations++;
}

namespace fast {

bool RMSNorm::use_fallback(Stream) { return false; }
bool LayerNorm::use_fallback(Stream) { return false; }
bool RoPE::use_fallback(Stream) { return false; }
bool CrossEntropy::use_fallback(Stream) { return true; }
bool ScaledDotProductAttention::use_fallback(
    const array&, const array&, const array&, bool, bool, bool, bool is_training, bool, bool, Stream) {
  return is_training;
}
bool ScaledDotProductAttention::supports_bool_mask() {
  return true;
}
bool ScaledDotProductAttentionVJP::use_fallback(const array&, Stream) {
  return true;
}

void RMSNorm::eval_gpu(const std::vector<array>& inputs, std::vector<array>& outputs) {
  array x = rows_in_place(inputs[0], outputs[0], true, stream());
  encoder().dispatch(x, inputs[1], outputs[0]);
}
UNREAD_MULTI(LayerNorm) UNREAD_MULTI(LayerNormVJP)

void RMSNormVJP::eval_gpu(const std::vector<array>& inputs, std::vector<array>& outputs) {
  auto& w = inputs[1];
  bool is_x_copied = !inputs[0].flags().row_contiguous, is_g_copied = !inputs[2].flags().row_contiguous;
  // (a second name holds what it reads there, so that nothing but a copy is ever handed on)
  array x = is_x_copied ? contiguous_copy_gpu(inputs[0], stream()) : inputs[0];
  array g = is_g_copied ? contiguous_copy_gpu(inputs[2], stream()) : inputs[2];
  if (is_x_copied || is_g_copied) {
    outputs[0].copy_shared_buffer(is_x_copied ? x : g);
  } else {
    take(outputs[0]);
  }
  if (is_g_copied && is_x_copied) {
    encoder().temporary(g);
  }
  if (w.ndim() != 0) {
    int rows = x.data_size() / x.shape().back();
    int each = x.shape().back() <= 4096 ? (rows + 511) / 512 : 1;
    array summed({(rows + each - 1) / each, x.shape().back()}, w.dtype(), nullptr, {});
    take(summed);
    encoder().temporary(summed);
    encoder().dispatch(summed);
  }
  take(outputs[1]);
  encoder().dispatch(x, g, outputs[0]);
}
void RoPE::eval_gpu(const std::vector<array>& inputs, std::vector<array>& outputs) {
  auto& in = inputs[0];
  auto& out = outputs[0];
  int ndim = in.ndim(), heads = 1;
  for (int i = 1; i < ndim - 2; ++i) {
    heads *= in.shape(i);
  }
  int64_t length = in.shape(-2), width = in.shape(-1);
  if (dims_ < width) {
    copy_gpu(in, out, in.flags().row_contiguous ? CopyType::Vector : CopyType::General, stream());
  } else if (in.flags().row_contiguous && in.is_donatable()) {
    out.copy_shared_buffer(in);
  } else if (
      in.flags().row_contiguous || ndim == 3 ||
      (ndim == 4 && in.strides()[0] == length * heads * width && in.strides()[1] == width &&
       in.strides()[2] == heads * width)) {
    take(out);
  } else {
    copy_gpu(in, out, CopyType::General, stream());
  }
  encoder().dispatch(in, out);
}
void Quantize::eval_gpu(const std::vector<array>& inputs, std::vector<array>& outputs) {
  for (auto& out : outputs) {
    take(out);
    encoder().dispatch(inputs[0], out);
  }
}
UNREAD_MULTI(ScaledDotProductAttention) UNREAD_MULTI(ScaledDotProductAttentionVJP) UNREAD_MULTI(ConvertFP8) UNREAD_MULTI(CustomKernel)
UNREAD_MULTI(CrossEntropy) UNREAD_MULTI(CrossEntropyVJP)
std::vector<array> CrossEntropy::vjp(const std::vector<array>&, const std::vector<array>&, const std::vector<int>&,
    const std::vector<array>&) { throw std::runtime_error("CrossEntropy was not read"); }
array cross_entropy(const array&, const array&, StreamOrDevice) { throw std::runtime_error("CrossEntropy was not read"); }

} // namespace fast

namespace distributed {
UNREAD_MULTI(AllReduce) UNREAD_MULTI(AllGather) UNREAD_MULTI(Send) UNREAD_MULTI(Recv) UNREAD_MULTI(ReduceScatter)
} // namespace distributed

} // namespace mlx::core
