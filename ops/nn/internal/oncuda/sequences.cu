// Rows of sequences: what is added to, put before or repeated for each sequence, and the sums over sequences that are their
// gradients.

// y (rows) = x + table (l), which begins anew with each sequence of l rows. y may be x.
extern "C" __global__ void add_repeated(float *y, const float *x, const float *table, int rows, int cols, int l) {
  int row = WARP_ROW;
  if (row >= rows) return;
  size_t at = (size_t)row * cols, from = (size_t)(row % l) * cols;
#pragma unroll
  EACH_PIECE(k, col, cols) {
    float v[PIECE], t[PIECE];
    load_piece(v, x + at, col);
    load_piece(t, table + from, col);
#pragma unroll
    for (int j = 0; j < PIECE; j++) v[j] += t[j];
    store_piece(y + at, col, v);
  }
}

#if COPY
// y (rows) is, for each sequence, head (first rows, the same for all of them; 0: nothing) and then count rows of x, of which skip
// rows are left out before each sequence.
extern "C" __global__ void copy_sequences(Y *y, const X *x, const float *head, int rows, int cols, int first, int count,
    int skip) {
  int row = WARP_ROW;
  if (row >= rows) return;
  int b = row / (first + count), i = row % (first + count);
  size_t from = (i < first ? (size_t)i : (size_t)b * (skip + count) + skip + i - first) * cols;
  y += (size_t)row * cols;
#pragma unroll
  EACH_PIECE(k, col, cols) {
    float v[PIECE];
    if (i < first)
      load_piece(v, head + from, col);
    else
      load_piece(v, x + from, col);
    store_piece(y, col, v);
  }
}
#endif

// y (total): the sums of n pieces of x, of size values each, which begin stride apart, and zeros behind them. A block adds up 32
// pieces of a thread: each of its 8 warps every eighth of the n, and then one warp the 8 sums, always in this order.
extern "C" __global__ void __launch_bounds__(256) sum_sequences(float *y, const float *x, int n, int64 size, int64 stride,
    int64 total) {
  __shared__ float room[8][32][PIECE];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int64 at = ((int64)blockIdx.x * 32 + lane) * PIECE;
  float s[PIECE];
  fill_piece(s, 0);
  if (at < size)
#pragma unroll 8
    for (int b = warp; b < n; b += 8) {
      float v[PIECE];
      load_piece(v, x, (size_t)(b * stride + at));
#pragma unroll
      for (int j = 0; j < PIECE; j++) s[j] += v[j];
    }
#pragma unroll
  for (int j = 0; j < PIECE; j++) room[warp][lane][j] = s[j];
  __syncthreads();
  if (warp > 0 || at >= total) return;
#pragma unroll
  for (int w = 1; w < 8; w++)
#pragma unroll
    for (int j = 0; j < PIECE; j++) s[j] += room[w][lane][j];
  store_piece(y, (size_t)at, s);
}

// y (rows, cols): sin and cos of p / 10000^(2i/cols) in columns 2i and 2i + 1 of place p of each l rows.
extern "C" __global__ void sinusoids(float *y, int64 n, int cols, int l) {
  int64 at = ((int64)blockIdx.x * blockDim.x + threadIdx.x) * 2;
  if (at >= n) return;
  int64 row = at / cols;
  int i = (int)(at - row * cols);
  double angle = (double)(row % l) * exp(-(double)i * 9.210340371976182736 / cols); // log 10000
  y[at] = (float)sin(angle);
  y[at + 1] = (float)cos(angle);
}

// y (rows, cols): the logarithm of the number, from 1 on, of place p of each l rows.
extern "C" __global__ void log_places(float *y, int64 n, int cols, int l) {
  int64 at = (int64)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= n) return;
  y[at] = (float)log((double)(at / cols % l + 1));
}
