// Sums of arrays. Whole arrays begin at multiples of 16 bytes, so that a thread takes four neighbours at once.

// y = sum_k w_k x_k for count of up to eight scalars, in double: parts of a loss may nearly cancel. One thread.
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
