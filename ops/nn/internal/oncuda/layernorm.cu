// Layer norm of the rows of a matrix,
//
//   y = (x - mean) rstd gamma + beta, rstd = 1 / sqrt(var + eps)
//
// THREADS threads keep a row in registers, PIECES pieces each: a warp, of which a block has 4, or a whole block of more.
// EXACT: the pieces are as many as the row has.

#if THREADS == 32
#define BLOCK 128
#define FIRST_ROW (blockIdx.x * 4 + threadIdx.x / 32)
#else
#define BLOCK THREADS
#define FIRST_ROW blockIdx.x
#endif

// Blocks that a multiprocessor shall hold at least: not more, so that the compiler has registers for all loads of a row at once.
#ifndef RESIDENT
#define RESIDENT (PIECE == 1 || BLOCK > 640 ? 1 : 640 / BLOCK)
#endif

#define COLUMN(i) (((i) * THREADS + (int)threadIdx.x % THREADS) * PIECE)
#define INSIDE(col) (EXACT || (col) < cols)

__device__ __forceinline__ float row_sum(float x, float *room) {
#if THREADS == 32
  return warp_sum(x);
#else
  return block_sum(x, room);
#endif
}

// Mean and 1/sqrt(var + eps) of the row v, in two passes over registers.
__device__ __forceinline__ void row_moments(float &mean, float &rstd, const float (&v)[PIECES][PIECE], int cols, float eps,
    float *room) {
  float s = 0;
#pragma unroll
  for (int i = 0; i < PIECES; i++)
    if (INSIDE(COLUMN(i)))
#pragma unroll
      for (int j = 0; j < PIECE; j++) s += v[i][j];
  mean = row_sum(s, room) / cols;
  s = 0;
#pragma unroll
  for (int i = 0; i < PIECES; i++)
    if (INSIDE(COLUMN(i)))
#pragma unroll
      for (int j = 0; j < PIECE; j++) s += (v[i][j] - mean) * (v[i][j] - mean);
  rstd = 1.f / sqrtf(row_sum(s, room) / cols + eps);
}

// Writes the normalised v to row y and, where SHADOW is 1, rounded to row shadow.
__device__ __forceinline__ void store_normalised(Y *y, bf16 *shadow, const float (&v)[PIECES][PIECE], const float *__restrict__ gamma,
    const float *__restrict__ beta, float mean, float rstd, int cols) {
#pragma unroll
  for (int i = 0; i < PIECES; i++) {
    int col = COLUMN(i);
    if (!INSIDE(col)) continue;
    float g[PIECE], b[PIECE];
    load_piece(g, gamma, col);
    load_piece(b, beta, col);
#pragma unroll
    for (int j = 0; j < PIECE; j++) b[j] = fmaf((v[i][j] - mean) * rstd, g[j], b[j]);
    store_piece(y, col, b);
#if SHADOW
    store_piece(shadow, col, b);
#endif
  }
}

// x (rows, cols) is float; y may be x where it is float too.
extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT)
    layer_norm(Y *y, bf16 *shadow, const float *x, const float *__restrict__ gamma, const float *__restrict__ beta, float *mean,
        float *rstd, int rows, int cols, float eps) {
  __shared__ float room[33];
  int row = FIRST_ROW;
  if (row >= rows) return;
  size_t at = (size_t)row * cols;
  float v[PIECES][PIECE], m, s;
#pragma unroll
  for (int i = 0; i < PIECES; i++)
    if (INSIDE(COLUMN(i))) load_piece(v[i], x + at, COLUMN(i));
  row_moments(m, s, v, cols, eps, room);
  if (threadIdx.x % THREADS == 0) mean[row] = m, rstd[row] = s;
  store_normalised(y + at, shadow + at, v, gamma, beta, m, s, cols);
}

#if ADD
// sum = x + Dropout(h), written where SUM is 1, y = LayerNorm(sum). bits: none where it is null; scale = 1/keep. sum may be x or h.
extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT)
    add_norm(float *sum, Y *y, bf16 *shadow, const H *h, const float *x, const uint32 *__restrict__ bits,
        const float *__restrict__ gamma, const float *__restrict__ beta, float *mean, float *rstd, int rows, int cols, float eps,
        float scale) {
  __shared__ float room[33];
  int row = FIRST_ROW;
  if (row >= rows) return;
  size_t at = (size_t)row * cols;
  float v[PIECES][PIECE], more[PIECES][PIECE], m, s; // all is loaded before the first store, behind which no load may go
#pragma unroll
  for (int i = 0; i < PIECES; i++)
    if (INSIDE(COLUMN(i))) load_piece(v[i], x + at, COLUMN(i)), load_piece(more[i], h + at, COLUMN(i));
#if DROPOUT
  uint32 kept[PIECES];
#pragma unroll
  for (int i = 0; i < PIECES; i++)
    if (INSIDE(COLUMN(i))) kept[i] = piece_bits(bits + (size_t)row * ((cols + 31) / 32), COLUMN(i));
#endif
#pragma unroll
  for (int i = 0; i < PIECES; i++) {
    int col = COLUMN(i);
    if (!INSIDE(col)) continue;
#pragma unroll
    for (int j = 0; j < PIECE; j++)
#if DROPOUT
      if (kept[i] >> j & 1) v[i][j] = fmaf(scale, more[i][j], v[i][j]);
#else
      v[i][j] += more[i][j];
#endif
#if SUM
    store_piece(sum + at, col, v[i]);
#endif
  }
  row_moments(m, s, v, cols, eps, room);
  if (threadIdx.x % THREADS == 0) mean[row] = m, rstd[row] = s;
  store_normalised(y + at, shadow + at, v, gamma, beta, m, s, cols);
}
#endif

// y = (x - mean) rstd gamma + beta of statistics that are known: the bits of the first time.
extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT)
    normalise(Y *y, bf16 *shadow, const float *x, const float *__restrict__ gamma, const float *__restrict__ beta,
        const float *__restrict__ mean, const float *__restrict__ rstd, int rows, int cols) {
  int row = FIRST_ROW;
  if (row >= rows) return;
  size_t at = (size_t)row * cols;
  float v[PIECES][PIECE];
#pragma unroll
  for (int i = 0; i < PIECES; i++)
    if (INSIDE(COLUMN(i))) load_piece(v[i], x + at, COLUMN(i));
  store_normalised(y + at, shadow + at, v, gamma, beta, mean[row], rstd[row], cols);
}
