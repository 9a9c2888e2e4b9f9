// Sums over the rows of a matrix in two stages, in an order that its shape fixes.

#ifdef X
// n neighbours that are read at once: their address is aligned to all of them.
template <class T, int n> struct alignas(sizeof(T) * n) Neighbours {
  T v[n];
};

// parts (blocks, cols): the sums over each blocks' `rows` rows of x (total, cols). A block of 32 x 8 threads sums 32 WIDE columns, a
// thread every eighth row of WIDE of them.
extern "C" __global__ void sum_rows(float *parts, const X *x, int total, int cols, int rows) {
  __shared__ float room[8][32 * WIDE + 1];
  int col = (blockIdx.y * 32 + threadIdx.x) * WIDE;
  int64 from = (int64)blockIdx.x * rows, to = min(from + rows, (int64)total);
  float sum[WIDE] = {};
  if (col < cols) {
#pragma unroll 8
    for (int64 r = from + threadIdx.y; r < to; r += 8) {
      Neighbours<X, WIDE> v = *reinterpret_cast<const Neighbours<X, WIDE> *>(x + r * cols + col);
#pragma unroll
      for (int k = 0; k < WIDE; k++) sum[k] += to_float(v.v[k]);
    }
  }
#pragma unroll
  for (int k = 0; k < WIDE; k++) room[threadIdx.y][threadIdx.x + 32 * k] = sum[k];
  __syncthreads();
  for (int i = threadIdx.y; i < WIDE; i += 8) {
    int at = threadIdx.x + 32 * i;
    float all = 0.f;
#pragma unroll
    for (int k = 0; k < 8; k++) all += room[k][at];
    if (col < cols) parts[(size_t)blockIdx.x * cols + col + i] = all;
  }
}
#else
// sums (total): from element `from` on the sums over the rows of parts (rows, cols), zero elsewhere. A block of 32 x 8 threads sums 32
// columns, a thread every eighth row of one.
extern "C" __global__ void sum_parts(float *sums, const float *parts, int rows, int cols, int from, int total) {
  __shared__ float room[8][32];
  int at = blockIdx.x * 32 + threadIdx.x, col = at - from;
  float sum = 0.f;
  if (col >= 0 && col < cols) {
#pragma unroll 8
    for (int r = threadIdx.y; r < rows; r += 8) sum += parts[(size_t)r * cols + col];
  }
  room[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0 && at < total) {
    sum = 0.f;
#pragma unroll
    for (int k = 0; k < 8; k++) sum += room[k][threadIdx.x];
    sums[at] = sum;
  }
}
#endif
