// The gradient of layer norm. With h = (x - mean) rstd and g = dy gamma for the rows of n columns,
//
//   dx = rstd (g - sum(g)/n - h sum(g h)/n) + more, dgamma = sum over rows of dy h, dbeta = sum over rows of dy
//
// THREADS threads keep a row in registers, PIECES pieces each: a warp, of which a block has 4, or a whole block of more.
// They take rows in turns, with sums of their own for dgamma and dbeta; a second kernel adds those of all blocks up.

#if THREADS == 32
#define BLOCK 128
#define GROUPS 4
#define GROUP (threadIdx.x / 32)
#else
#define BLOCK THREADS
#define GROUPS 1
#define GROUP 0
#endif

#define COLUMN(i) (((i) * THREADS + (int)threadIdx.x % THREADS) * PIECE)
#define INSIDE(col) (EXACT || (col) < cols)

// Both sums over the threads of a row, in all of them. room has 64 floats.
__device__ __forceinline__ void row_sums(float &a, float &b, float *room) {
  a = warp_sum(a), b = warp_sum(b);
#if THREADS > 32
  int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  __syncthreads(); // room may be read still
  if (lane == 0) room[warp] = a, room[32 + warp] = b;
  __syncthreads();
  a = warp_sum(lane < THREADS / WARP ? room[lane] : 0.f);
  b = warp_sum(lane < THREADS / WARP ? room[32 + lane] : 0.f);
#endif
}

// more is added to dx where MORE is 1; dx may be dy or more; shadow is dx rounded where SHADOW is 1. parts (blocks, 2, cols) are
// sums for dgamma and dbeta.
extern "C" __global__ void __launch_bounds__(BLOCK, BLOCK > 128 ? 1 : PIECES * PIECE <= 24 ? 3 : 2)
    layer_norm_dx(float *dx, bf16 *shadow, float *parts, const float *__restrict__ x, const float *gamma, const DY *dy,
        const float *more, const float *__restrict__ mean, const float *__restrict__ rstd, int rows, int cols) {
  DYNAMIC_SHARED(float, total); // (2, cols), where a block has several rows at a time
  __shared__ float room[64];
  float dgamma[PIECES][PIECE] = {}, dbeta[PIECES][PIECE] = {};
  for (int row = blockIdx.x * GROUPS + GROUP; row < rows; row += gridDim.x * GROUPS) {
    size_t at = (size_t)row * cols;
    float h[PIECES][PIECE] = {}, g[PIECES][PIECE] = {};
#pragma unroll
    for (int i = 0; i < PIECES; i++) {
      int col = COLUMN(i);
      if (!INSIDE(col)) continue;
      load_piece(h[i], x + at, col);
      load_piece(g[i], dy + at, col);
    }
    float m = mean[row], scale = rstd[row], a = 0, b = 0;
#pragma unroll
    for (int i = 0; i < PIECES; i++) {
      int col = COLUMN(i);
      if (!INSIDE(col)) continue;
      float w[PIECE];
      load_piece(w, gamma, col);
#pragma unroll
      for (int j = 0; j < PIECE; j++) {
        h[i][j] = (h[i][j] - m) * scale;
        dgamma[i][j] += g[i][j] * h[i][j];
        dbeta[i][j] += g[i][j];
        g[i][j] *= w[j];
        a += g[i][j];
        b += g[i][j] * h[i][j];
      }
    }
    float d[PIECES][PIECE] = {};
#if MORE // loaded before the sums are there, and before the first store, behind which no load may go
#pragma unroll
    for (int i = 0; i < PIECES; i++)
      if (INSIDE(COLUMN(i))) load_piece(d[i], more + at, COLUMN(i));
#endif
    row_sums(a, b, room);
    a /= cols, b /= cols;
#pragma unroll
    for (int i = 0; i < PIECES; i++) {
      int col = COLUMN(i);
      if (!INSIDE(col)) continue;
#pragma unroll
      for (int j = 0; j < PIECE; j++) d[i][j] += scale * (g[i][j] - a - h[i][j] * b);
      store_piece(dx + at, col, d[i]);
#if SHADOW
      store_piece(shadow + at, col, d[i]);
#endif
    }
  }
  parts += (size_t)blockIdx.x * 2 * cols;
  for (int k = 0; k < GROUPS; k++) {
    if (k == GROUP)
#pragma unroll
      for (int i = 0; i < PIECES; i++) {
        int col = COLUMN(i);
        if (!INSIDE(col)) continue;
        if (k > 0) {
#pragma unroll
          for (int j = 0; j < PIECE; j++) {
            dgamma[i][j] += total[col + j];
            dbeta[i][j] += total[cols + col + j];
          }
        }
        if (k == GROUPS - 1) {
          store_piece(parts, col, dgamma[i]);
          store_piece(parts + cols, col, dbeta[i]);
        } else {
#pragma unroll
          for (int j = 0; j < PIECE; j++) {
            total[col + j] = dgamma[i][j];
            total[cols + col + j] = dbeta[i][j];
          }
        }
      }
    if (k < GROUPS - 1) __syncthreads();
  }
}
