// Batch norm of the columns of a matrix (rows, cols),
//
//   y = (x - mean) scale + beta (+ add), scale = gamma rstd, rstd = 1 / sqrt(var + eps); with RELU its positive part
//
// over the rows that count: the first lengths (s) of the l rows of sequence s, or all where lengths is null. Sums are in
// double, of differences that are rounded to float, as the host's. A block has LANES pieces of neighbouring columns, and as
// many rows at a time as its 256 threads are for.

#define ROWS (256 / LANES)
#define COLUMN ((int)(blockIdx.y * LANES + threadIdx.x % LANES) * PIECE)
#define ROW_LANE ((int)threadIdx.x / LANES)

__device__ __forceinline__ bool counts(const int *lengths, int row, int l) { return !lengths || row % l < lengths[row / l]; }

// The first row that counts, by all lanes of a warp.
__device__ __forceinline__ int first_row(const int *lengths, int rows, int l) {
  if (!lengths) return 0;
  int first = rows / l;
  for (int s = threadIdx.x % 32; s < first; s += 32)
    if (lengths[s] > 0) first = s;
#pragma unroll
  for (int d = 16; d > 0; d /= 2) first = min(first, __shfl_xor_sync(FULL, first, d));
  return first < rows / l ? first * l : 0;
}

// The number of rows that count, by all lanes of a warp; -1 where a length is outside [0, l], which the host reports.
__device__ __forceinline__ int counted_rows(const int *lengths, int rows, int l) {
  if (!lengths) return rows;
  int n = 0, bad = 0;
  for (int s = threadIdx.x % 32; s < rows / l; s += 32) n += lengths[s], bad |= lengths[s] < 0 || lengths[s] > l;
#pragma unroll
  for (int d = 16; d > 0; d /= 2) n += __shfl_xor_sync(FULL, n, d), bad |= __shfl_xor_sync(FULL, bad, d);
  return bad ? -1 : n;
}

// y before anything is added. The gradient must find the same sign: product and sum are rounded each, as the host's.
__device__ __forceinline__ float value(float x, float mean, float scale, float beta) {
  return __fadd_rn(__fmul_rn(x - mean, scale), beta);
}

// Writes the sums of both over the row lanes of a block to part (2, cols).
__device__ __forceinline__ void store_sums(double *part, const double (&a)[PIECE], const double (&b)[PIECE], int cols) {
  __shared__ double room[256][2];
  int lane = threadIdx.x % LANES, col = COLUMN;
#pragma unroll
  for (int j = 0; j < PIECE; j++) {
    __syncthreads();
    room[threadIdx.x][0] = a[j], room[threadIdx.x][1] = b[j];
    __syncthreads();
    if (ROW_LANE > 1 || col >= cols) continue;
    int which = ROW_LANE; // one of the two sums
    double s = 0;
    for (int r = 0; r < ROWS; r++) s += room[r * LANES + lane][which];
    part[(size_t)which * cols + col + j] = s;
  }
}

// parts (part, 0): sums of x - f over rows of the part, f being the first row that counts, (part, 1): of its square.
extern "C" __global__ void __launch_bounds__(256) batch_norm_moments(double *parts, const float *x, const int *lengths, int rows,
    int cols, int l) {
  int first = first_row(lengths, rows, l), col = COLUMN;
  int from = (int)((int64)rows * blockIdx.x / gridDim.x), to = (int)((int64)rows * (blockIdx.x + 1) / gridDim.x);
  double sum[PIECE] = {}, square[PIECE] = {};
  if (col < cols) {
    float f[PIECE];
    load_piece(f, x, (size_t)first * cols + col);
#pragma unroll 4
    for (int row = from + ROW_LANE; row < to; row += ROWS) {
      if (!counts(lengths, row, l)) continue;
      float v[PIECE];
      load_piece(v, x, (size_t)row * cols + col);
#pragma unroll
      for (int j = 0; j < PIECE; j++) {
        double d = v[j] - f[j];
        sum[j] += d;
        square[j] += d * d;
      }
    }
  }
  store_sums(parts + (size_t)blockIdx.x * 2 * cols, sum, square, cols);
}

// Both sums of column blockIdx.x * 32 + warp over n parts (n, 2, cols), in all lanes of the warp. A block has 32 warps.
__device__ __forceinline__ void total_sums(double &a, double &b, const double *parts, int n, int cols) {
  __shared__ double room[2][32][33];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, col = blockIdx.x * 32 + lane;
  a = 0, b = 0;
  if (col < cols)
#pragma unroll 4
    for (int k = warp; k < n; k += 32) a += parts[(size_t)k * 2 * cols + col], b += parts[((size_t)k * 2 + 1) * cols + col];
  room[0][lane][warp] = a, room[1][lane][warp] = b;
  __syncthreads();
  a = warp_sum_double(room[0][warp][lane]), b = warp_sum_double(room[1][warp][lane]);
}

// Statistics of the sums of parts: mean = f + S/n, var = (Q - S^2/n)/n, divided by n - 1 in variance. Of fewer than 2 rows,
// which the host reports, they are not numbers.
extern "C" __global__ void __launch_bounds__(1024)
    batch_norm_statistics(float *mean, float *rstd, float *variance, const double *parts, int n, const float *x,
        const int *lengths, int rows, int cols, int l, float eps) {
  double sum, square;
  total_sums(sum, square, parts, n, cols);
  int first = first_row(lengths, rows, l), count = counted_rows(lengths, rows, l), col = blockIdx.x * 32 + threadIdx.x / 32;
  if (threadIdx.x % 32 > 0 || col >= cols) return;
  double away = sum / count, squares = fmax(square - sum * away, 0.);
  bool good = count > 1;
  mean[col] = good ? (float)(x[(size_t)first * cols + col] + away) : NOT_A_NUMBER;
  rstd[col] = good ? (float)(1. / sqrt(squares / count + (double)eps)) : NOT_A_NUMBER;
  variance[col] = good ? (float)(squares / (count - 1)) : NOT_A_NUMBER;
}

// Statistics that are given.
extern "C" __global__ void batch_norm_given(float *mean, float *rstd, float *variance, const float *from, const float *of,
    int cols, float eps) {
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (col >= cols) return;
  mean[col] = from[col], variance[col] = of[col];
  rstd[col] = (float)(1. / sqrt((double)of[col] + (double)eps));
}

// y may be x or add. Rows that do not count are 0.
extern "C" __global__ void __launch_bounds__(256)
    batch_norm(float *y, const float *x, const float *gamma, const float *beta, const float *add, const float *mean,
        const float *rstd, const int *lengths, int rows, int cols, int l) {
  int col = COLUMN;
  if (col >= cols) return;
  float m[PIECE], s[PIECE], b[PIECE], g[PIECE];
  load_piece(m, mean, col), load_piece(s, rstd, col), load_piece(b, beta, col), load_piece(g, gamma, col);
#pragma unroll
  for (int j = 0; j < PIECE; j++) s[j] *= g[j];
#pragma unroll
  for (int k = 0; k < 8; k++) {
    int row = (blockIdx.x * 8 + k) * ROWS + ROW_LANE;
    if (row >= rows) return;
    size_t at = (size_t)row * cols + col;
    float v[PIECE];
    if (counts(lengths, row, l)) {
      load_piece(v, x, at);
#pragma unroll
      for (int j = 0; j < PIECE; j++) v[j] = value(v[j], m[j], s[j], b[j]);
      if (add) {
        float more[PIECE];
        load_piece(more, add, at);
#pragma unroll
        for (int j = 0; j < PIECE; j++) v[j] += more[j];
      }
#pragma unroll
      for (int j = 0; j < PIECE; j++)
        if (RELU && v[j] < 0) v[j] = 0;
    } else {
      fill_piece(v, 0);
    }
    store_piece(y, at, v);
  }
}

// The gradient, with h = (x - mean) rstd and g = dy, with RELU of positive y alone:
//
//   dx = scale (g - dbeta/n - h dgamma/n), of given statistics scale g; dgamma = sum of g h, dbeta = sum of g

// parts (part, 0): sums of g over rows of the part, (part, 1): of g (x - mean).
extern "C" __global__ void __launch_bounds__(256)
    batch_norm_dx_sums(double *parts, const float *x, const float *gamma, const float *beta, const float *dy, const float *mean,
        const float *rstd, const int *lengths, int rows, int cols, int l) {
  int col = COLUMN;
  int from = (int)((int64)rows * blockIdx.x / gridDim.x), to = (int)((int64)rows * (blockIdx.x + 1) / gridDim.x);
  double sum[PIECE] = {}, product[PIECE] = {};
  if (col < cols) {
    float m[PIECE], s[PIECE], b[PIECE], w[PIECE];
    load_piece(m, mean, col), load_piece(s, rstd, col), load_piece(b, beta, col), load_piece(w, gamma, col);
#pragma unroll
    for (int j = 0; j < PIECE; j++) s[j] *= w[j];
#pragma unroll 4
    for (int row = from + ROW_LANE; row < to; row += ROWS) {
      if (!counts(lengths, row, l)) continue;
      float v[PIECE], g[PIECE];
      load_piece(v, x, (size_t)row * cols + col);
      load_piece(g, dy, (size_t)row * cols + col);
#pragma unroll
      for (int j = 0; j < PIECE; j++) {
        if (RELU && !(value(v[j], m[j], s[j], b[j]) > 0)) continue;
        sum[j] += (double)g[j];
        product[j] += (double)g[j] * (double)(v[j] - m[j]);
      }
    }
  }
  store_sums(parts + (size_t)blockIdx.x * 2 * cols, sum, product, cols);
}

// dgamma, dbeta, and with h and g as above slope = -scale dbeta/n and product = -scale dgamma rstd/n; both 0 of given statistics.
extern "C" __global__ void __launch_bounds__(1024)
    batch_norm_dx_totals(float *dgamma, float *dbeta, float *slope, float *product, const double *parts, int n,
        const float *gamma, const float *rstd, const int *lengths, int rows, int cols, int l, int given) {
  double sum, dot;
  total_sums(sum, dot, parts, n, cols);
  int count = counted_rows(lengths, rows, l), col = blockIdx.x * 32 + threadIdx.x / 32;
  if (threadIdx.x % 32 > 0 || col >= cols) return;
  double r = rstd[col], h = dot * r, scale = (double)(gamma[col] * rstd[col]) / count;
  dgamma[col] = (float)h, dbeta[col] = (float)sum;
  slope[col] = given ? 0.f : (float)(-scale * sum);
  product[col] = given ? 0.f : (float)(-scale * h * r);
}

// dx may be dy. Rows that do not count are 0.
extern "C" __global__ void __launch_bounds__(256)
    batch_norm_dx(float *dx, const float *x, const float *gamma, const float *beta, const float *dy, const float *mean,
        const float *rstd, const float *slope, const float *product, const int *lengths, int rows, int cols, int l) {
  int col = COLUMN;
  if (col >= cols) return;
  float m[PIECE], s[PIECE], b[PIECE], w[PIECE], p[PIECE], a[PIECE];
  load_piece(m, mean, col), load_piece(s, rstd, col), load_piece(b, beta, col), load_piece(w, gamma, col);
  load_piece(a, slope, col), load_piece(p, product, col);
#pragma unroll
  for (int j = 0; j < PIECE; j++) s[j] *= w[j];
#pragma unroll
  for (int k = 0; k < 8; k++) {
    int row = (blockIdx.x * 8 + k) * ROWS + ROW_LANE;
    if (row >= rows) return;
    size_t at = (size_t)row * cols + col;
    float d[PIECE];
    fill_piece(d, 0);
    if (counts(lengths, row, l)) {
      float v[PIECE];
      load_piece(v, x, at);
      load_piece(d, dy, at);
#pragma unroll
      for (int j = 0; j < PIECE; j++) {
        float g = !RELU || value(v[j], m[j], s[j], b[j]) > 0 ? d[j] : 0.f;
        d[j] = g * s[j] + ((v[j] - m[j]) * p[j] + a[j]);
      }
    }
    store_piece(dx, at, d);
  }
}
