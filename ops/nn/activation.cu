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

template <int n, class T> __device__ __forceinline__ void store(T *p, const float (&x)[n]) {
  Neighbours<T, n> v;
#pragma unroll
  for (int i = 0; i < n; i++) v.v[i] = from_float<T>(x[i]);
  *reinterpret_cast<Neighbours<T, n> *>(p) = v;
}

__device__ __forceinline__ float sigmoid(float x) { return 1.f / (1.f + expf(-x)); }

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

// gelu: x Phi(x); gelu_tanh, quick_gelu, silu: x sigmoid(SLOPE x + CUBIC x^3); relu: max(x, 0), NaN of NaN.
__device__ __forceinline__ float activation(float x) {
#if F == GELU
  return x < -14.f ? -0.f : 0.5f * x * (1.f + erff(x * 0.70710678118654752f));
#elif F == RELU
  return x < 0.f ? 0.f : x;
#elif F == TANH
  return tanhf(x);
#else
  return x * sigmoid(x * (SLOPE + CUBIC * x * x));
#endif
}

// The derivative at x, of relu and tanh for the result x.
__device__ __forceinline__ float derivative(float x) {
#if F == GELU // Phi(x) + x phi(x)
  x = x < -14.f ? -14.f : x > 14.f ? 14.f : x;
  return 0.5f * (1.f + erff(x * 0.70710678118654752f)) + x * 0.39894228040143268f * expf(-0.5f * x * x);
#elif F == RELU
  return x > 0.f ? 1.f : 0.f;
#elif F == TANH
  return 1.f - x * x;
#else // s + x s (1 - s) (SLOPE + 3 CUBIC x^2)
  float s = sigmoid(x * (SLOPE + CUBIC * x * x));
  return s + x * s * (1.f - s) * (SLOPE + 3.f * CUBIC * x * x);
#endif
}

#ifndef HALVES
#ifndef DY
// y = activation(x) for n values, 8 a thread. y may be x.
extern "C" __global__ void activate(Y *y, const X *x, int64 n) {
  int64 at = ((int64)blockIdx.x * blockDim.x + threadIdx.x) * 8;
  if (at + 8 <= n) {
    float v[8];
    load(v, x + at);
#pragma unroll
    for (int k = 0; k < 8; k++) v[k] = activation(v[k]);
    store(y + at, v);
    return;
  }
  for (; at < n; at++) y[at] = from_float<Y>(activation(to_float(x[at])));
}
#else
// dx = dy times the derivative at x for n values, 8 a thread. dx may be x or dy.
extern "C" __global__ void activate_gradient(Y *dx, const X *x, const DY *dy, int64 n) {
  int64 at = ((int64)blockIdx.x * blockDim.x + threadIdx.x) * 8;
  if (at + 8 <= n) {
    float v[8], d[8];
    load(v, x + at);
    load(d, dy + at);
#pragma unroll
    for (int k = 0; k < 8; k++) v[k] = d[k] * derivative(v[k]);
    store(dx + at, v);
    return;
  }
  for (; at < n; at++) dx[at] = from_float<Y>(to_float(dy[at]) * derivative(to_float(x[at])));
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
