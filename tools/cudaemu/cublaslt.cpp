// The part of cuBLASLt (cublasLt.h) that the project uses: products of column- or row-major matrices in fp32 and bf16,
// strided batches, alpha and beta on the host, a bias, and gradients of a bias.
//
// D = alpha op(A) op(B) + beta C (+ bias). Operands are widened to fp32 (rounded to tf32 for that compute type), products are
// summed in fp32 in blocks of the inner dimension, the result is rounded once.
#include "state.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace {

// Values of cublas_api.h (lines 90-99, 109-112, 206-217), library_types.h (lines 59-63) and cublasLt.h of CUDA 13.
enum Status { SUCCESS = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 7, EXECUTION_FAILED = 13, NOT_SUPPORTED = 15 };
enum DataType { R_32F = 0, R_16BF = 14 };
enum Compute { C_32F = 68, C_32F_PEDANTIC = 69, C_32F_FAST_16BF = 75, C_32F_FAST_TF32 = 77 };
enum Epilogue { DEFAULT = 1, BIAS = 4, BGRADA = 256, BGRADB = 512 }; // cublasLt.h:2086-2188
enum DescAttribute { // cublasLt.h:1384-1657
  DESC_COMPUTE_TYPE = 0, DESC_SCALE_TYPE = 1, DESC_POINTER_MODE = 2, DESC_TRANSA = 3, DESC_TRANSB = 4, DESC_TRANSC = 5,
  DESC_EPILOGUE = 7, DESC_BIAS_POINTER = 8, DESC_BIAS_BATCH_STRIDE = 10, DESC_SM_COUNT_TARGET = 15, DESC_FAST_ACCUM = 25,
  DESC_BIAS_DATA_TYPE = 26,
};
enum LayoutAttribute { // cublasLt.h:1154-1213
  LAYOUT_TYPE = 0, LAYOUT_ORDER = 1, LAYOUT_ROWS = 2, LAYOUT_COLS = 3, LAYOUT_LD = 4, LAYOUT_BATCH_COUNT = 5,
  LAYOUT_STRIDED_BATCH_OFFSET = 6,
};
enum PreferenceAttribute { PREF_MAX_WORKSPACE_BYTES = 1 }; // cublasLt.h:2238

struct Desc {
  int compute, scale;
  int transa = 0, transb = 0, transc = 0, pointer_mode = 0;
  uint32_t epilogue = DEFAULT;
  uint64_t bias = 0;
  int64_t bias_stride = 0;
  int bias_type = -1;
  int sm_count = 0;
  int8_t fast_accum = 0;
};
struct Layout {
  int type, order = 0; // 0: column-major, 1: row-major
  uint64_t rows, cols;
  int64_t ld;
  int batch = 1;
  int64_t stride = 0;
};
struct Preference { uint64_t workspace = 0; };
struct Algo { uint64_t data[8]; };                 // cublasLtMatmulAlgo_t
struct Heuristic {                                 // cublasLtMatmulHeuristicResult_t, cublasLt.h:2389-2413
  Algo algo;
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};
constexpr uint64_t algo_mark = 0x554d45414455434cull;

size_t width(int type) { return type == R_32F ? 4 : 2; }
float widen(uint16_t x) {
  uint32_t u = (uint32_t)x << 16;
  float f;
  memcpy(&f, &u, 4);
  return f;
}
uint16_t narrow(float x) { // to nearest, ties to even
  uint32_t u;
  memcpy(&u, &x, 4);
  if ((u & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  return (uint16_t)((u + 0x7fffu + (u >> 16 & 1)) >> 16);
}
float tf32(float x) { // 10 bits of mantissa, to nearest, ties away from zero (cvt.rna.tf32.f32)
  uint32_t u;
  memcpy(&u, &x, 4);
  if ((u & 0x7f800000u) == 0x7f800000u) return x;
  u = (u + 0x1000u) & 0xffffe000u;
  memcpy(&x, &u, 4);
  return x;
}
float load(const void *p, int type, int64_t i) { return type == R_32F ? ((const float *)p)[i] : widen(((const uint16_t *)p)[i]); }
void store(void *p, int type, int64_t i, float x) {
  if (type == R_32F)
    ((float *)p)[i] = x;
  else
    ((uint16_t *)p)[i] = narrow(x);
}

// Elements between neighbours of a column and of a row.
int64_t row_step(const Layout &l) { return l.order ? l.ld : 1; }
int64_t col_step(const Layout &l) { return l.order ? 1 : l.ld; }
// Elements from the first to behind the last, over the batch.
uint64_t extent(const Layout &l) {
  if (!l.rows || !l.cols) return 0;
  return (l.rows - 1) * row_step(l) + (l.cols - 1) * col_step(l) + 1 + (uint64_t)(l.batch - 1) * l.stride;
}

int refuse(Status s, const char *format, long long a = 0, long long b = 0) {
  char text[300];
  snprintf(text, sizeof text, format, a, b);
  say("cublasLt: %s", text);
  return s;
}

// Whether the operation is one that is possible: shapes, types, leading dimensions.
int check(const Desc &d, const Layout &a, const Layout &b, const Layout &c, const Layout &out) {
  if (d.scale != R_32F) return refuse(NOT_SUPPORTED, "scale type %lld; only CUDA_R_32F (0) is emulated", d.scale);
  if (d.compute != C_32F && d.compute != C_32F_PEDANTIC && d.compute != C_32F_FAST_16BF && d.compute != C_32F_FAST_TF32)
    return refuse(NOT_SUPPORTED, "compute type %lld is not emulated", d.compute);
  if (d.pointer_mode)
    return refuse(NOT_SUPPORTED, "pointer mode %lld; only alpha and beta on the host are emulated", d.pointer_mode);
  if (d.transc) return refuse(NOT_SUPPORTED, "C cannot be transposed");
  for (const Layout *l : {&a, &b, &c, &out}) {
    if (l->type != R_32F && l->type != R_16BF) return refuse(NOT_SUPPORTED, "matrices of type %lld are not emulated", l->type);
    if (l->order != 0 && l->order != 1) return refuse(NOT_SUPPORTED, "order %lld is not emulated", l->order);
    if (!l->rows || !l->cols) return refuse(INVALID_VALUE, "a matrix of %lld rows and %lld columns", l->rows, l->cols);
    if (l->ld < (int64_t)(l->order ? l->cols : l->rows))
      return refuse(INVALID_VALUE, "leading dimension %lld is below %lld", l->ld, l->order ? l->cols : l->rows);
    if (l->batch != out.batch) return refuse(INVALID_VALUE, "batch counts differ: %lld and %lld", l->batch, out.batch);
  }
  if (a.type != b.type) return refuse(NOT_SUPPORTED, "A and B differ in type: %lld and %lld", a.type, b.type);
  if (c.type != out.type) return refuse(NOT_SUPPORTED, "C and D differ in type: %lld and %lld", c.type, out.type);
  if (a.type == R_32F && out.type != R_32F) return refuse(NOT_SUPPORTED, "A in fp32 needs D in fp32");
  uint64_t m = d.transa ? a.cols : a.rows, k = d.transa ? a.rows : a.cols;
  uint64_t k2 = d.transb ? b.cols : b.rows, n = d.transb ? b.rows : b.cols;
  if (k != k2) return refuse(INVALID_VALUE, "op(A) has %lld columns but op(B) has %lld rows", k, k2);
  if (m != out.rows) return refuse(INVALID_VALUE, "op(A) has %lld rows but D has %lld", m, out.rows);
  if (n != out.cols) return refuse(INVALID_VALUE, "op(B) has %lld columns but D has %lld", n, out.cols);
  if (c.rows != out.rows || c.cols != out.cols || c.order != out.order)
    return refuse(INVALID_VALUE, "C and D differ in shape or order: %lld and %lld rows", c.rows, out.rows);
  if (d.epilogue != DEFAULT && d.epilogue != BIAS && d.epilogue != BGRADA && d.epilogue != BGRADB)
    return refuse(NOT_SUPPORTED, "epilogue %lld is not emulated", d.epilogue);
  if (d.epilogue != DEFAULT && out.order) return refuse(NOT_SUPPORTED, "an epilogue needs D in column order");
  // cublasLt.h:1645: the elements of a bias are of the type of D.
  if (d.epilogue != DEFAULT && d.bias_type >= 0 && d.bias_type != out.type)
    return refuse(NOT_SUPPORTED, "a bias of type %lld with D of type %lld", d.bias_type, out.type);
  return SUCCESS;
}

// The product of packed panels: 16 rows of A by 4 columns of B, summed over `depth`. Vectors are g++'s own type.
typedef float Vector __attribute__((vector_size(32), aligned(4), may_alias));
inline __attribute__((always_inline)) void tile_body(const float *a, const float *b, int64_t depth, float *c) {
  Vector s[4][2] = {};
  for (int64_t k = 0; k < depth; k++) {
    const Vector *p = (const Vector *)(a + 16 * k);
    Vector a0 = p[0], a1 = p[1];
    for (int j = 0; j < 4; j++) {
      float x = b[4 * k + j];
      Vector v = {x, x, x, x, x, x, x, x};
      s[j][0] += a0 * v;
      s[j][1] += a1 * v;
    }
  }
  for (int j = 0; j < 4; j++)
    for (int i = 0; i < 2; i++) *(Vector *)(c + 16 * j + 8 * i) += s[j][i];
}
typedef void Tile(const float *a, const float *b, int64_t depth, float *c);
__attribute__((optimize("O3"))) void tile_plain(const float *a, const float *b, int64_t depth, float *c) {
  tile_body(a, b, depth, c);
}
#if defined(__x86_64__)
__attribute__((optimize("O3"), target("avx2,fma"))) void tile_avx2(const float *a, const float *b, int64_t depth, float *c) {
  tile_body(a, b, depth, c);
}
Tile *const tile = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? tile_avx2 : tile_plain;
#else
Tile *const tile = tile_plain;
#endif

// Copies a block of op(X) into panels of `wide` lines each: element (line, k) of a panel is at k*wide + line; the rest is 0.
void pack(float *to, const void *x, int type, bool round, int64_t lines, int64_t depth, int64_t line_step, int64_t k_step,
          int wide) {
  for (int64_t l0 = 0; l0 < lines; l0 += wide, to += wide * depth)
    for (int64_t k = 0; k < depth; k++)
      for (int l = 0; l < wide; l++) {
        float v = l0 + l < lines ? load(x, type, (l0 + l) * line_step + k * k_step) : 0;
        to[k * wide + l] = round ? tf32(v) : v;
      }
}

const void *at(const void *p, int type, int64_t elements) { return (const char *)p + elements * (int64_t)width(type); }

void product(const Desc &d, float alpha, const void *A, const Layout &la, const void *B, const Layout &lb, float beta,
             const void *C, const Layout &lc, void *D, const Layout &ld, void *bias) {
  int64_t m = ld.rows, n = ld.cols, k = d.transa ? la.rows : la.cols;
  bool round = d.compute == C_32F_FAST_TF32 && la.type == R_32F;
  int64_t a_line = d.transa ? col_step(la) : row_step(la), a_k = d.transa ? row_step(la) : col_step(la);
  int64_t b_k = d.transb ? col_step(lb) : row_step(lb), b_line = d.transb ? row_step(lb) : col_step(lb);
  int bias_type = d.bias_type < 0 ? ld.type : d.bias_type;
  constexpr int64_t depth = 256;
  int64_t mt = (m + 15) / 16, nt = (n + 3) / 4;
  std::vector<float> sums(mt * 16 * nt * 4), pa(mt * 16 * depth), pb(nt * 4 * depth);
  for (int64_t k0 = 0; k0 < k; k0 += depth) {
    int64_t kd = k - k0 < depth ? k - k0 : depth;
    pack(pa.data(), at(A, la.type, k0 * a_k), la.type, round, m, kd, a_line, a_k, 16);
    pack(pb.data(), at(B, lb.type, k0 * b_k), lb.type, round, n, kd, b_line, b_k, 4);
    for (int64_t i = 0; i < mt; i++)
      for (int64_t j = 0; j < nt; j++) tile(&pa[i * 16 * kd], &pb[j * 4 * kd], kd, &sums[(i * nt + j) * 64]);
  }
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < m; i++) {
      float v = alpha * sums[(i / 16 * nt + j / 4) * 64 + j % 4 * 16 + i % 16];
      if (beta != 0) v += beta * load(C, lc.type, i * row_step(lc) + j * col_step(lc));
      if (d.epilogue == BIAS) v += load(bias, bias_type, i);
      store(D, ld.type, i * row_step(ld) + j * col_step(ld), v);
    }
  // Gradient of a bias: the sum of op(A) over k for each row of D, or of op(B) for each column.
  if (d.epilogue == BGRADA)
    for (int64_t i = 0; i < m; i++) {
      float s = 0;
      for (int64_t x = 0; x < k; x++) s += load(A, la.type, i * a_line + x * a_k);
      store(bias, bias_type, i, s);
    }
  if (d.epilogue == BGRADB)
    for (int64_t j = 0; j < n; j++) {
      float s = 0;
      for (int64_t x = 0; x < k; x++) s += load(B, lb.type, j * b_line + x * b_k);
      store(bias, bias_type, j, s);
    }
}

template <class T> int set(T &field, const void *value, size_t bytes) {
  if (bytes != sizeof(T)) return refuse(INVALID_VALUE, "an attribute of %lld bytes was given %lld", sizeof(T), bytes);
  memcpy(&field, value, bytes);
  return SUCCESS;
}

} // namespace

EMU_API int cublasLtCreate(void **handle) {
  FAULT;
  if (!handle) return INVALID_VALUE;
  *handle = malloc(1);
  return SUCCESS;
}
EMU_API int cublasLtDestroy(void *handle) {
  FAULT;
  free(handle);
  return SUCCESS;
}
EMU_API size_t cublasLtGetVersion() { return 130000; }
EMU_API const char *cublasLtGetStatusName(int s) {
  switch (s) {
  case 0: return "CUBLAS_STATUS_SUCCESS";
  case 1: return "CUBLAS_STATUS_NOT_INITIALIZED";
  case 3: return "CUBLAS_STATUS_ALLOC_FAILED";
  case 7: return "CUBLAS_STATUS_INVALID_VALUE";
  case 13: return "CUBLAS_STATUS_EXECUTION_FAILED";
  case 14: return "CUBLAS_STATUS_INTERNAL_ERROR";
  case 15: return "CUBLAS_STATUS_NOT_SUPPORTED";
  default: return "CUBLAS_STATUS_UNKNOWN";
  }
}
EMU_API const char *cublasLtGetStatusString(int s) { return cublasLtGetStatusName(s); }

EMU_API int cublasLtMatmulDescCreate(void **desc, int compute, int scale) {
  FAULT;
  if (!desc) return INVALID_VALUE;
  Desc *d = new Desc;
  d->compute = compute;
  d->scale = scale;
  *desc = d;
  return SUCCESS;
}
EMU_API int cublasLtMatmulDescDestroy(void *desc) {
  FAULT;
  delete (Desc *)desc;
  return SUCCESS;
}
EMU_API int cublasLtMatmulDescSetAttribute(void *desc, int attribute, const void *value, size_t bytes) {
  FAULT;
  if (!desc || !value) return INVALID_VALUE;
  Desc &d = *(Desc *)desc;
  switch (attribute) {
  case DESC_COMPUTE_TYPE: return set(d.compute, value, bytes);
  case DESC_SCALE_TYPE: return set(d.scale, value, bytes);
  case DESC_POINTER_MODE: return set(d.pointer_mode, value, bytes);
  case DESC_TRANSA: return set(d.transa, value, bytes);
  case DESC_TRANSB: return set(d.transb, value, bytes);
  case DESC_TRANSC: return set(d.transc, value, bytes);
  case DESC_EPILOGUE: return set(d.epilogue, value, bytes);
  case DESC_BIAS_POINTER: return set(d.bias, value, bytes);
  case DESC_BIAS_BATCH_STRIDE: return set(d.bias_stride, value, bytes);
  case DESC_SM_COUNT_TARGET: return set(d.sm_count, value, bytes);
  case DESC_FAST_ACCUM: return set(d.fast_accum, value, bytes);
  case DESC_BIAS_DATA_TYPE: return set(d.bias_type, value, bytes);
  }
  return refuse(INVALID_VALUE, "attribute %lld of an operation is not emulated", attribute);
}

EMU_API int cublasLtMatrixLayoutCreate(void **layout, int type, uint64_t rows, uint64_t cols, int64_t ld) {
  FAULT;
  if (!layout) return INVALID_VALUE;
  Layout *l = new Layout;
  l->type = type;
  l->rows = rows;
  l->cols = cols;
  l->ld = ld;
  *layout = l;
  return SUCCESS;
}
EMU_API int cublasLtMatrixLayoutDestroy(void *layout) {
  FAULT;
  delete (Layout *)layout;
  return SUCCESS;
}
EMU_API int cublasLtMatrixLayoutSetAttribute(void *layout, int attribute, const void *value, size_t bytes) {
  FAULT;
  if (!layout || !value) return INVALID_VALUE;
  Layout &l = *(Layout *)layout;
  switch (attribute) {
  case LAYOUT_TYPE: return set(l.type, value, bytes);
  case LAYOUT_ORDER: return set(l.order, value, bytes);
  case LAYOUT_ROWS: return set(l.rows, value, bytes);
  case LAYOUT_COLS: return set(l.cols, value, bytes);
  case LAYOUT_LD: return set(l.ld, value, bytes);
  case LAYOUT_BATCH_COUNT: return set(l.batch, value, bytes);
  case LAYOUT_STRIDED_BATCH_OFFSET: return set(l.stride, value, bytes);
  }
  return refuse(INVALID_VALUE, "attribute %lld of a matrix is not emulated", attribute);
}

EMU_API int cublasLtMatmulPreferenceCreate(void **preference) {
  FAULT;
  if (!preference) return INVALID_VALUE;
  *preference = new Preference;
  return SUCCESS;
}
EMU_API int cublasLtMatmulPreferenceDestroy(void *preference) {
  FAULT;
  delete (Preference *)preference;
  return SUCCESS;
}
EMU_API int cublasLtMatmulPreferenceSetAttribute(void *preference, int attribute, const void *value, size_t bytes) {
  FAULT;
  if (!preference || !value) return INVALID_VALUE;
  if (attribute == PREF_MAX_WORKSPACE_BYTES) return set(((Preference *)preference)->workspace, value, bytes);
  return SUCCESS; // the others only narrow the choice of algorithms
}

EMU_API int cublasLtMatmulAlgoGetHeuristic(void *handle, void *desc, void *a, void *b, void *c, void *d, void *preference,
                                           int wanted, Heuristic *results, int *count) {
  FAULT;
  if (!handle || !desc || !a || !b || !c || !d || !preference || wanted <= 0 || !results || !count) return INVALID_VALUE;
  *count = 0;
  if (int s = check(*(Desc *)desc, *(Layout *)a, *(Layout *)b, *(Layout *)c, *(Layout *)d)) return s;
  Heuristic h = {};
  h.algo.data[0] = algo_mark;
  h.workspace = ((Preference *)preference)->workspace >= (64 << 10) ? 64 << 10 : 0;
  h.waves = 1;
  results[0] = h;
  *count = 1;
  return SUCCESS;
}

EMU_API int cublasLtMatmul(void *handle, void *desc, const void *alpha, const void *A, void *a, const void *B, void *b,
                           const void *beta, const void *C, void *c, void *D, void *d, const Algo *algo, void *workspace,
                           size_t workspace_bytes, void *stream) {
  FAULT;
  Guard g(emu_lock);
  if (!handle) return NOT_INITIALIZED;
  if (!desc || !alpha || !beta || !A || !a || !B || !b || !C || !c || !D || !d)
    return refuse(INVALID_VALUE, "cublasLtMatmul with a null pointer (give D for C where beta is 0)");
  if (ready()) return EXECUTION_FAILED;
  Desc e = *(Desc *)desc;
  Layout la = *(Layout *)a, lb = *(Layout *)b, lc = *(Layout *)c, ld = *(Layout *)d;
  if (int s = check(e, la, lb, lc, ld)) return s;
  if (algo && algo->data[0] != algo_mark)
    return refuse(INVALID_VALUE, "the algorithm does not come from cublasLtMatmulAlgoGetHeuristic");
  float factor = *(const float *)alpha, keep = *(const float *)beta;
  if (workspace_bytes && (!workspace || (uintptr_t)workspace % 256))
    return refuse(INVALID_VALUE, "the workspace is null or not aligned to 256 bytes");
  if (C == D && (lc.ld != ld.ld || lc.stride != ld.stride)) return refuse(INVALID_VALUE, "C is D but their layouts differ");
  int bias_type = e.bias_type < 0 ? ld.type : e.bias_type;
  uint64_t bias_count = (e.epilogue == BGRADB ? ld.cols : ld.rows) + (uint64_t)(ld.batch - 1) * e.bias_stride;
  if (e.epilogue != DEFAULT && !e.bias) return refuse(INVALID_VALUE, "epilogue %lld without a bias pointer", e.epilogue);
  auto inside = [=]() {
    return memory_check((CUdeviceptr)A, extent(la) * width(la.type), "cublasLtMatmul, A") &&
           memory_check((CUdeviceptr)B, extent(lb) * width(lb.type), "cublasLtMatmul, B") &&
           memory_check((CUdeviceptr)C, extent(lc) * width(lc.type), "cublasLtMatmul, C") &&
           memory_check((CUdeviceptr)D, extent(ld) * width(ld.type), "cublasLtMatmul, D") &&
           (e.epilogue == DEFAULT || memory_check(e.bias, bias_count * width(bias_type), "cublasLtMatmul, bias")) &&
           memory_check((CUdeviceptr)workspace, workspace_bytes, "cublasLtMatmul, workspace");
  };
  for (auto &p : {std::make_pair((uintptr_t)A, la.type), std::make_pair((uintptr_t)B, lb.type),
                  std::make_pair((uintptr_t)C, lc.type), std::make_pair((uintptr_t)D, ld.type)})
    if (p.first % width(p.second)) return refuse(INVALID_VALUE, "the address of a matrix is not aligned to its type");
  CUresult r = enqueue(stream, OP_KERNEL, [=]() -> CUresult {
    if (!inside()) return CUDA_ERROR_ILLEGAL_ADDRESS;
    for (int i = 0; i < ld.batch; i++)
      product(e, factor, at(A, la.type, i * la.stride), la, at(B, lb.type, i * lb.stride), lb, keep,
              at(C, lc.type, i * lc.stride), lc, (void *)at(D, ld.type, i * ld.stride), ld,
              (void *)at((void *)e.bias, bias_type, i * e.bias_stride));
    // A workspace is scratch: what it held is gone.
    if (workspace_bytes) memset(workspace, 0xff, workspace_bytes < (64 << 10) ? workspace_bytes : 64 << 10);
    return CUDA_SUCCESS;
  });
  return r ? EXECUTION_FAILED : SUCCESS;
}
