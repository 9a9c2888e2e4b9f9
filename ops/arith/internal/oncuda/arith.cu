// Sums and multiples of arrays. Whole arrays begin at multiples of 16 bytes, so that a thread takes four neighbours at once.

// The first of the thread's four elements, in blocks of 256 threads.
__device__ __forceinline__ int64 first_of_four() { return 4 * ((int64)blockIdx.x * 256 + threadIdx.x); }

// y_i = f(a_i). y may be a.
template <class F> __device__ __forceinline__ void each(float *y, int64 n, const float *a, F f) {
  int64 i = first_of_four();
  if (i + 4 <= n) {
    float v[4];
    load4(v, a, i);
#pragma unroll
    for (int k = 0; k < 4; k++) v[k] = f(v[k]);
    store4(y, i, v);
  } else {
    for (; i < n; i++) y[i] = f(a[i]);
  }
}

// y_i = f(a_i, b_i). y may be a or b.
template <class F> __device__ __forceinline__ void each(float *y, int64 n, const float *a, const float *b, F f) {
  int64 i = first_of_four();
  if (i + 4 <= n) {
    float v[4], w[4];
    load4(v, a, i);
    load4(w, b, i);
#pragma unroll
    for (int k = 0; k < 4; k++) v[k] = f(v[k], w[k]);
    store4(y, i, v);
  } else {
    for (; i < n; i++) y[i] = f(a[i], b[i]);
  }
}

extern "C" __global__ void add(float *y, int64 n, const float *a, const float *b) {
  each(y, n, a, b, [](float a, float b) { return a + b; });
}

// y = a + s b.
extern "C" __global__ void add_scaled(float *y, int64 n, const float *a, const float *b, const float *s) {
  float f = s[0];
  each(y, n, a, b, [f](float a, float b) { return a + f * b; });
}

// y = factor x.
extern "C" __global__ void scale(float *y, int64 n, const float *x, float factor) {
  each(y, n, x, [factor](float x) { return factor * x; });
}

// y = s x.
extern "C" __global__ void mul_scalar(float *y, int64 n, const float *x, const float *s) {
  float f = s[0];
  each(y, n, x, [f](float x) { return f * x; });
}

// y = x / s, as the host's: by the reciprocal.
extern "C" __global__ void div_scalar(float *y, int64 n, const float *x, const float *s) {
  float f = 1.f / s[0];
  each(y, n, x, [f](float x) { return f * x; });
}

// y = exp(s) x.
extern "C" __global__ void mul_exp(float *y, int64 n, const float *x, const float *s) {
  float f = expf(s[0]);
  each(y, n, x, [f](float x) { return f * x; });
}

extern "C" __global__ void square(float *y, int64 n, const float *x) {
  each(y, n, x, [](float x) { return x * x; });
}

// dx = 2 x dy.
extern "C" __global__ void square_dx(float *dx, int64 n, const float *x, const float *dy) {
  each(dx, n, x, dy, [](float x, float dy) { return 2.f * (x * dy); });
}

// y = factor s, everywhere.
extern "C" __global__ void spread(float *y, int64 n, const float *s, float factor) {
  int64 i = first_of_four();
  float v = factor * s[0], four[4] = {v, v, v, v};
  if (i + 4 <= n)
    store4(y, i, four);
  else
    for (; i < n; i++) y[i] = v;
}

// y = sum_k w_k x_k for count of up to eight arrays. y may be x0.
extern "C" __global__ void combine(float *y, int64 n, int count, const float *x0, const float *x1, const float *x2,
                                   const float *x3, const float *x4, const float *x5, const float *x6, const float *x7, float w0, float w1,
                                   float w2, float w3, float w4, float w5, float w6, float w7) {
  const float *x[8] = {x0, x1, x2, x3, x4, x5, x6, x7};
  float w[8] = {w0, w1, w2, w3, w4, w5, w6, w7};
  int64 i = first_of_four();
  if (i + 4 <= n) {
    float sum[4] = {};
#pragma unroll
    for (int k = 0; k < 8; k++)
      if (k < count) {
        float v[4];
        load4(v, x[k], i);
#pragma unroll
        for (int j = 0; j < 4; j++) sum[j] += w[k] * v[j];
      }
    store4(y, i, sum);
    return;
  }
  for (; i < n; i++) {
    float sum = 0.f;
#pragma unroll
    for (int k = 0; k < 8; k++)
      if (k < count) sum += w[k] * x[k][i];
    y[i] = sum;
  }
}

// The same of scalars, in double: parts of a loss may nearly cancel. One thread.
extern "C" __global__ void weighted_sum(float *y, int count, const float *x0, const float *x1, const float *x2, const float *x3,
                                        const float *x4, const float *x5, const float *x6, const float *x7, float w0, float w1,
                                        float w2, float w3, float w4, float w5, float w6, float w7) {
  const float *x[8] = {x0, x1, x2, x3, x4, x5, x6, x7};
  float w[8] = {w0, w1, w2, w3, w4, w5, w6, w7};
  double sum = 0;
#pragma unroll
  for (int k = 0; k < 8; k++)
    if (k < count) sum += (double)w[k] * x[k][0];
  y[0] = (float)sum;
}

// out = factor sum, or factor / over[0] sum where over is not null, whose quotient is a float as on the host.
__device__ __forceinline__ void finish(float *out, double sum, double factor, const float *over) {
  if (over) factor = (float)factor / over[0];
  out[0] = (float)(factor * sum);
}

// The sum of x y, or of x where y is null: one block finishes it, several leave partial sums. Blocks of 1024 threads.
extern "C" __global__ void __launch_bounds__(1024) sum(float *out, double *partial, const float *x, const float *y, int64 n,
                                                       double factor, const float *over) {
  double s = 0;
  int64 step = (int64)gridDim.x * 4096, i = 4 * ((int64)blockIdx.x * 1024 + threadIdx.x);
  for (; i + 4 <= n; i += step) {
    float v[4], w[4] = {1.f, 1.f, 1.f, 1.f};
    load4(v, x, i);
    if (y) load4(w, y, i);
#pragma unroll
    for (int k = 0; k < 4; k++) s += (double)v[k] * w[k];
  }
  for (; i < n; i++) s += (double)x[i] * (y ? y[i] : 1.f); // less than four are left, for one thread
  s = block_sum_double(s);
  if (threadIdx.x != 0) return;
  if (gridDim.x == 1)
    finish(out, s, factor, over);
  else
    partial[blockIdx.x] = s;
}

// Puts count partial sums together. One block of 1024 threads.
extern "C" __global__ void __launch_bounds__(1024) finish_sum(float *out, const double *partial, int count, double factor,
                                                              const float *over) {
  double s = 0;
  for (int i = threadIdx.x; i < count; i += 1024) s += partial[i];
  s = block_sum_double(s);
  if (threadIdx.x == 0) finish(out, s, factor, over);
}

// out (rows, n) with out_rj = sum_k a_(r,k,j) b_(r,k,j), whose elements lie at r*row + k*step + j*col of a and of b: a thread for
// each element. Blocks of 256 threads.
extern "C" __global__ void products(float *out, const float *a, const float *b, int64 size, int n, int depth, int64 a_row,
                                    int a_step, int a_col, int64 b_row, int b_step, int b_col) {
  int64 i = (int64)blockIdx.x * 256 + threadIdx.x;
  if (i >= size) return;
  int64 r = i / n;
  int j = (int)(i % n);
  a += r * a_row + (int64)j * a_col;
  b += r * b_row + (int64)j * b_col;
  float sum = 0.f;
  for (int k = 0; k < depth; k++) sum += a[(int64)k * a_step] * b[(int64)k * b_step];
  out[i] = sum;
}

// The same by a warp for each element, 8 of them a block.
extern "C" __global__ void products_of_warps(float *out, const float *a, const float *b, int64 size, int n, int depth,
                                             int64 a_row, int a_step, int a_col, int64 b_row, int b_step, int b_col) {
  int64 i = (int64)blockIdx.x * 8 + threadIdx.x / WARP;
  if (i >= size) return;
  int64 r = i / n;
  int j = (int)(i % n);
  a += r * a_row + (int64)j * a_col;
  b += r * b_row + (int64)j * b_col;
  float sum = 0.f;
  for (int k = threadIdx.x % WARP; k < depth; k += WARP) sum += a[(int64)k * a_step] * b[(int64)k * b_step];
  sum = warp_sum(sum);
  if (threadIdx.x % WARP == 0) out[i] = sum;
}

// dx = x dy for x (rows, width) of groups of n columns and dy (rows, n). dx may be x.
extern "C" __global__ void mul_groups(float *dx, int64 size, const float *x, const float *dy, int width, int n) {
  int64 i = first_of_four();
#pragma unroll
  for (int k = 0; k < 4; k++, i++)
    if (i < size) dx[i] = x[i] * dy[i / width * n + i % n];
}

// y (rows, m*n) with y_(r,i,j) = a_ri b_rj.
extern "C" __global__ void outer(float *y, int64 size, const float *a, const float *b, int m, int n) {
  int64 i = first_of_four();
#pragma unroll
  for (int k = 0; k < 4; k++, i++)
    if (i < size) y[i] = a[i / n] * b[i / n / m * n + i % n];
}
