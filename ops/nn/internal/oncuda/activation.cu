// Activations element by element, and their gradients. F is the number of one (see activations in activation_cuda.go).
#define GELU 1
#define GELU_TANH 2
#define QUICK_GELU 3
#define SILU 4
#define RELU 5
#define TANH 6

// n neighbours that are read or written at once: their address is aligned to all of them.
template <class T, int n> struct alignas(sizeof(T) * n) Neighbours {
  T v[n];
};

template <int n, class T> __device__ __forceinline__ void load(float (&x)[n], const T *p) {
  Neighbours<T, n> v = *reinterpret_cast<const Neighbours<T, n> *>(p);
#pragma unroll
  for (int i = 0; i < n; i++) x[i] = to_float(v.v[i]);
}

// Eight bfloat16 are four words, of which one instruction each makes two floats.
__device__ __forceinline__ void load(float (&x)[8], const bf16 *p) {
  uint4 v = *reinterpret_cast<const uint4 *>(p);
  const uint32 words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int i = 0; i < 4; i++) {
    x[2 * i] = __uint_as_float(words[i] << 16);
    x[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
  }
}

template <int n, class T> __device__ __forceinline__ void store(T *p, const float (&x)[n]) {
  Neighbours<T, n> v;
#pragma unroll
  for (int i = 0; i < n; i++) v.v[i] = from_float<T>(x[i]);
  *reinterpret_cast<Neighbours<T, n> *>(p) = v;
}

// 1 / (1 + 2^x). FAST is for results that are rounded to bfloat16, whose unit is 2^-8: by the device's approximations of 2^x and
// 1/x, which are right to 2^-22, subnormal numbers being 0.
__device__ __forceinline__ float sigmoid_of_power(float x) {
#if FAST && !defined(EMULATED)
  float e, r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(x));
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(1.f + e));
  return r;
#else
  return 1.f / (1.f + exp2f(x));
#endif
}

// Phi, the distribution function of the standard normal distribution. FAST: the sigmoid of x times a polynomial in x^2, in
// place of the 30 instructions of erff. Its coefficients, which have the factor -1/ln 2, make the larger one of the error of x
// Phi(x) and of 0.05 times its relative error least for |x| < 5. Errors: of Phi 5e-5, of x Phi(x) 2.7e-5, relative 5.3e-4 for x
// > -5 (that of the rounding is 3.9e-3); at -5 x Phi(x) is -1.4e-6. Phi(-14) is 1e-19 instead of 8e-45.
__device__ __forceinline__ float normal_distribution(float x) {
#if FAST
  float t = fminf(x * x, 25.f);
  float p = fmaf(t, 3.4154112e-8f, -2.4144035e-6f);
  p = fmaf(t, p, 4.8615588e-5f);
  p = fmaf(t, p, 7.4279378e-4f);
  p = fmaf(t, p, -1.0639044e-1f);
  p = fmaf(t, p, -2.3012006f);
  return sigmoid_of_power(x * p);
#else
  return 0.5f * (1.f + erff(x * 0.70710678118654752f));
#endif
}

// exp(-x^2/2)
__device__ __forceinline__ float normal_density(float x) {
#if FAST && !defined(EMULATED)
  float e;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(-0.72134752044448170f * x * x));
  return e;
#else
  return expf(-0.5f * x * x);
#endif
}

#if F == GELU_TANH // (1 + tanh u)/2 is the sigmoid of 2u, u = sqrt(2/pi) (x + 0.044715 x^3)
#define SLOPE 1.5957691216057308f
#define CUBIC (1.5957691216057308f * 0.044715f)
#elif F == QUICK_GELU
#define SLOPE 1.702f
#define CUBIC 0.f
#else
#define SLOPE 1.f
#define CUBIC 0.f
#endif

// sigmoid(SLOPE x + CUBIC x^3), by which the activations that have it multiply x.
__device__ __forceinline__ float gate(float x) {
  x *= SLOPE + CUBIC * x * x;
#if FAST
  return sigmoid_of_power(-1.4426950408889634f * x);
#else
  return sigmoid(x);
#endif
}

// gelu: x Phi(x); gelu_tanh, quick_gelu, silu: x sigmoid(SLOPE x + CUBIC x^3); relu: max(x, 0), NaN of NaN.
__device__ __forceinline__ float activation(float x) {
#if F == GELU
  x = x < -14.f ? -14.f : x; // so is -Inf; the compiler would make a branch of a choice between results
  return x * normal_distribution(x);
#elif F == RELU
  return x < 0.f ? 0.f : x;
#elif F == TANH
  return tanhf(x);
#else
  return x * gate(x);
#endif
}

// The derivative at x, of relu and tanh for the result x.
__device__ __forceinline__ float derivative(float x) {
#if F == GELU // Phi(x) + x phi(x)
  x = x < -14.f ? -14.f : x > 14.f ? 14.f : x;
  return normal_distribution(x) + x * 0.39894228040143268f * normal_density(x);
#elif F == RELU
  return x > 0.f ? 1.f : 0.f;
#elif F == TANH
  return 1.f - x * x;
#else // s + x s (1 - s) (SLOPE + 3 CUBIC x^2)
  float s = gate(x);
  return s + x * s * (1.f - s) * (SLOPE + 3.f * CUBIC * x * x);
#endif
}

#ifndef HALVES
// A thread has RUNS runs of WIDE neighbours, 16 values in all, which are loaded before the first one is used: those of a
// block's threads follow each other. Blocks go from the end to the beginning where BACKWARDS is 1: what a product wrote last is
// in the cache still, and what the next one reads first will be.
#ifdef DY
#define WIDEST_TYPE (sizeof(X) + sizeof(Y) + sizeof(DY) > 6)
#else
#define WIDEST_TYPE (sizeof(X) + sizeof(Y) > 4)
#endif
#define WIDE (WIDEST_TYPE ? 4 : 8)
#define RUNS (16 / WIDE)
#ifndef BACKWARDS
#define BACKWARDS 1
#endif

// The first value of a thread, those of its next run are blockDim.x * WIDE behind it. whole: all of the block's values exist.
__device__ __forceinline__ int64 first_value(bool &whole, int64 n) {
  int64 block = BACKWARDS ? gridDim.x - 1 - blockIdx.x : blockIdx.x, each = 16 * blockDim.x;
  whole = (block + 1) * each <= n;
  return block * each + threadIdx.x * WIDE;
}

// DROPPED: value i is multiplied by scale where its bit is one, else 0, even if it is not finite. Each row of cols values has its own words of bits.
#if DROPPED
#define DROPOUT_ARGUMENTS , const uint32 *bits, int cols, float scale
#define DROPOUT(i, v) (kept(bits, i, cols) ? scale * (v) : 0.f)
__device__ __forceinline__ bool kept(const uint32 *bits, int64 i, int cols) {
  if (cols % 32 == 0) return bits[i >> 5] >> (i & 31) & 1;
  int64 row = i / cols;
  int col = (int)(i - row * cols);
  return bits[row * ((cols + 31) / 32) + col / 32] >> (col % 32) & 1;
}
#else
#define DROPOUT_ARGUMENTS
#define DROPOUT(i, v) (v)
#endif

#ifndef DY
// y = activation(x) for n values. y may be x.
extern "C" __global__ void activate(Y *y, const X *x, int64 n DROPOUT_ARGUMENTS) {
  bool whole;
  int64 at = first_value(whole, n), step = blockDim.x * WIDE;
  if (whole) {
    float v[RUNS][WIDE];
#pragma unroll
    for (int r = 0; r < RUNS; r++) load(v[r], x + at + r * step);
#pragma unroll
    for (int r = 0; r < RUNS; r++) {
#pragma unroll
      for (int k = 0; k < WIDE; k++) v[r][k] = DROPOUT(at + r * step + k, activation(v[r][k]));
      store(y + at + r * step, v[r]);
    }
    return;
  }
#pragma unroll 1
  for (int r = 0; r < RUNS; r++, at += step) {
    if (at + WIDE <= n) {
      float v[WIDE];
      load(v, x + at);
#pragma unroll
      for (int k = 0; k < WIDE; k++) v[k] = DROPOUT(at + k, activation(v[k]));
      store(y + at, v);
      continue;
    }
#pragma unroll 1
    for (int64 i = at; i < n; i++) y[i] = from_float<Y>(DROPOUT(i, activation(to_float(x[i]))));
  }
}
#else
// dx = dy times the derivative at x for n values. dx may be x or dy.
extern "C" __global__ void activate_gradient(Y *dx, const X *x, const DY *dy, int64 n DROPOUT_ARGUMENTS) {
  bool whole;
  int64 at = first_value(whole, n), step = blockDim.x * WIDE;
  if (whole) {
    float v[RUNS][WIDE], d[RUNS][WIDE];
#pragma unroll
    for (int r = 0; r < RUNS; r++) load(v[r], x + at + r * step), load(d[r], dy + at + r * step);
#pragma unroll
    for (int r = 0; r < RUNS; r++) {
#pragma unroll
      for (int k = 0; k < WIDE; k++) v[r][k] = DROPOUT(at + r * step + k, d[r][k] * derivative(v[r][k]));
      store(dx + at + r * step, v[r]);
    }
    return;
  }
#pragma unroll 1
  for (int r = 0; r < RUNS; r++, at += step) {
    if (at + WIDE <= n) {
      float v[WIDE], d[WIDE];
      load(v, x + at), load(d, dy + at);
#pragma unroll
      for (int k = 0; k < WIDE; k++) v[k] = DROPOUT(at + k, d[k] * derivative(v[k]));
      store(dx + at, v);
      continue;
    }
#pragma unroll 1
    for (int64 i = at; i < n; i++) dx[i] = from_float<Y>(DROPOUT(i, to_float(dy[i]) * derivative(to_float(x[i]))));
  }
}
#endif
#else
// y (rows, h) = activation(g) v for rows [g | v] of x. WIDE neighbours a thread.
extern "C" __global__ void gated(float *y, const float *x, int h) {
  int col = (blockIdx.y * blockDim.x + threadIdx.x) * WIDE;
  if (col >= h) return;
  size_t row = blockIdx.x;
  float g[WIDE], v[WIDE];
  load(g, x + row * 2 * h + col);
  load(v, x + row * 2 * h + h + col);
#pragma unroll
  for (int k = 0; k < WIDE; k++) v[k] *= activation(g[k]);
  store(y + row * h + col, v);
}

// dx = [dy v activation'(g) | dy activation(g)]. dx may be x.
extern "C" __global__ void gated_gradient(float *dx, const float *x, const float *dy, int h) {
  int col = (blockIdx.y * blockDim.x + threadIdx.x) * WIDE;
  if (col >= h) return;
  size_t row = blockIdx.x;
  float g[WIDE], v[WIDE], d[WIDE];
  load(g, x + row * 2 * h + col);
  load(v, x + row * 2 * h + h + col);
  load(d, dy + row * h + col);
#pragma unroll
  for (int k = 0; k < WIDE; k++) {
    v[k] *= d[k] * derivative(g[k]);
    d[k] *= activation(g[k]);
  }
  store(dx + row * 2 * h + col, v);
  store(dx + row * 2 * h + h + col, d);
}
#endif
