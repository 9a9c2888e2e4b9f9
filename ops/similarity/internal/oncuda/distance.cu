// Distances of rows f (rows, width) from the rows that columns stand for, and their gradients, in float32. L2 1: |f - x|, summed from
// differences; 0: sqrt(sum arccos^2(f_k . x_k)) over the groups of `unit` channels, the spheres. See distance.go for the formulas.
//
// A block of 16 x 16 threads works on TILE x TILE pairs, a thread on 4 x 4 of them, STEP channels or columns at a time.
#define TILE 64
#define STEP 16
#define LIMIT 0.999999f // cosines beyond have no gradient

// Which rows stand for columns: without a pointer the n keys and then the queue, with one the queue, of which the rows from *pointer
// on, and on from the first one, are the keys. Columns from *cols on do not exist.
struct Columns {
  const float *keys, *queue;
  int n, total, from, count; // count exist
  bool valid, pool;
  __device__ Columns(const float *keys, const float *queue, const int *pointer, const int *cols, int n, int total)
      : keys(keys), queue(queue), n(n), total(total) {
    from = pointer ? *pointer : 0;
    count = cols ? *cols : total;
    valid = from >= 0 && from <= total && count >= 0 && count <= total;
    if (!valid) from = 0, count = 0;
    pool = pointer != nullptr;
  }
  __device__ const float *row(int j, int width) const {
    int k = j - from;
    if (k < 0) k += total;
    if (k < n) return keys + (size_t)k * width;
    return queue + (size_t)(pool ? j : j - n) * width;
  }
};

// Sums over the channels [at, at + unit) for the block's pairs of rows from i and columns from j on: products, or squares of
// differences.
__device__ __forceinline__ void pairs(float (&sum)[4][4], const float *f, int rows, int i, const Columns &x, int j, int width, int at,
                                      int unit) {
  __shared__ __align__(16) float fs[STEP][TILE + 4], xs[STEP][TILE + 4];
  int own = threadIdx.y * 16 + threadIdx.x;
#pragma unroll
  for (int a = 0; a < 4; a++)
#pragma unroll
    for (int b = 0; b < 4; b++) sum[a][b] = 0.f;
  for (int from = 0; from < unit; from += STEP) {
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 4; k++) {
      int r = (own + k * 256) / STEP, c = own % STEP;
      bool in = from + c < unit;
      fs[c][r] = in && i + r < rows ? f[(size_t)(i + r) * width + at + from + c] : 0.f;
      xs[c][r] = in && j + r < x.count ? x.row(j + r, width)[at + from + c] : 0.f;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < STEP; k++) {
      float u[4], v[4];
      load4(u, fs[k], 4 * threadIdx.y);
      load4(v, xs[k], 4 * threadIdx.x);
#pragma unroll
      for (int a = 0; a < 4; a++)
#pragma unroll
        for (int b = 0; b < 4; b++) {
#if L2
          float d = u[a] - v[b];
          sum[a][b] += d * d;
#else
          sum[a][b] += u[a] * v[b];
#endif
        }
    }
  }
}

__device__ __forceinline__ float angle(float cosine) {
  return acosf(cosine > LIMIT ? LIMIT : cosine < -LIMIT ? -LIMIT : cosine);
}

// scores (rows, total): negative distances, 0 where a column does not exist, NaN everywhere if the columns make no sense.
extern "C" __global__ void distance_scores(float *scores, const float *f, const float *keys, const float *queue, const int *pointer,
                                           const int *cols, int rows, int n, int total, int width, int unit) {
  Columns x(keys, queue, pointer, cols, n, total);
  int i = blockIdx.y * TILE, j = blockIdx.x * TILE;
  float all[4][4] = {};
  if (j < x.count) {
    for (int at = 0; at < width; at += unit) {
      float sum[4][4];
      pairs(sum, f, rows, i, x, j, width, at, unit);
#pragma unroll
      for (int a = 0; a < 4; a++)
#pragma unroll
        for (int b = 0; b < 4; b++) {
#if L2
          all[a][b] += sum[a][b];
#else
          float t = angle(sum[a][b]);
          all[a][b] += t * t;
#endif
        }
    }
  }
#pragma unroll
  for (int a = 0; a < 4; a++)
#pragma unroll
    for (int b = 0; b < 4; b++) {
      int r = i + 4 * threadIdx.y + a, c = j + 4 * threadIdx.x + b;
      float s = !x.valid ? NOT_A_NUMBER : c < x.count ? -sqrtf(all[a][b]) : 0.f;
      if (r < rows && c < total) scores[(size_t)r * total + c] = s;
    }
}

// slopes (rows, total): what the channels [at, at + unit) of a column's row are multiplied by in the gradient of a row: for cosine c,
// score s and its gradient dy, -dy/s arccos(c)/sqrt(1 - c^2). The score of row r and column j is at r row_step + j col_step.
extern "C" __global__ void distance_slopes(float *slopes, const float *scores, const float *dy, const float *f, const float *keys,
                                           const float *queue, const int *pointer, const int *cols, int rows, int n, int total,
                                           int width, int at, int unit, int64 row_step, int64 col_step) {
  Columns x(keys, queue, pointer, cols, n, total);
  int i = blockIdx.y * TILE, j = blockIdx.x * TILE;
  if (j >= x.count) return;
  float cosine[4][4];
  pairs(cosine, f, rows, i, x, j, width, at, unit);
#pragma unroll
  for (int a = 0; a < 4; a++)
#pragma unroll
    for (int b = 0; b < 4; b++) {
      int r = i + 4 * threadIdx.y + a, c = j + 4 * threadIdx.x + b;
      if (r >= rows || c >= x.count) continue;
      float v = cosine[a][b], s = scores[r * row_step + c * col_step], slope = 0.f;
      if (s != 0.f && !(fabsf(v) > LIMIT))
        slope = -dy[r * row_step + c * col_step] / s * angle(v) * rsqrtf((1.f - v) * (1.f + v));
      slopes[(size_t)r * total + c] = slope;
    }
}

// parts (chunks, rows, width), channels [at, at + unit): the gradients of rows from the columns of a chunk, `each` of them. Of l2 they are
// dy/s (f - x), else slopes x.
extern "C" __global__ void distance_gradient(float *parts, const float *slopes, const float *scores, const float *dy, const float *f,
                                             const float *keys, const float *queue, const int *pointer, const int *cols, int rows,
                                             int n, int total, int width, int at, int unit, int each, int64 row_step,
                                             int64 col_step) {
  __shared__ __align__(16) float cs[STEP][TILE + 4], xs[STEP][TILE + 4];
  Columns x(keys, queue, pointer, cols, n, total);
  int i = blockIdx.x * TILE, first = blockIdx.y * TILE, own = threadIdx.y * 16 + threadIdx.x;
  int from = blockIdx.z * each, to = min(from + each, x.count);
  float sum[4][4] = {};
#if L2
  float u[4][4] = {};
#pragma unroll
  for (int a = 0; a < 4; a++)
#pragma unroll
    for (int b = 0; b < 4; b++) {
      int r = i + 4 * threadIdx.y + a, c = first + 4 * threadIdx.x + b;
      if (r < rows && c < unit) u[a][b] = f[(size_t)r * width + at + c];
    }
#endif
  for (int j = from; j < to; j += STEP) {
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 4; k++) {
      int r = (own + k * 256) / STEP, c = own % STEP; // row r of column c
      float v = 0.f;
      if (i + r < rows && j + c < to) {
#if L2
        int64 p = (i + r) * row_step + (j + c) * col_step;
        float s = scores[p];
        if (s != 0.f) v = dy[p] / s;
#else
        v = slopes[(size_t)(i + r) * total + j + c];
#endif
      }
      cs[c][r] = v;
      c = (own + k * 256) / TILE, r = own % TILE; // channel r of column c
      xs[c][r] = j + c < to && first + r < unit ? x.row(j + c, width)[at + first + r] : 0.f;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < STEP; k++) {
      float c[4], v[4];
      load4(c, cs[k], 4 * threadIdx.y);
      load4(v, xs[k], 4 * threadIdx.x);
#pragma unroll
      for (int a = 0; a < 4; a++)
#pragma unroll
        for (int b = 0; b < 4; b++) {
#if L2
          sum[a][b] += c[a] * (u[a][b] - v[b]);
#else
          sum[a][b] += c[a] * v[b];
#endif
        }
    }
  }
#pragma unroll
  for (int a = 0; a < 4; a++)
#pragma unroll
    for (int b = 0; b < 4; b++) {
      int r = i + 4 * threadIdx.y + a, c = first + 4 * threadIdx.x + b;
      if (r < rows && c < unit) parts[((size_t)blockIdx.z * rows + r) * width + at + c] = sum[a][b];
    }
}

// out (n) = the sums of the chunks' parts (chunks, n).
extern "C" __global__ void distance_sum(float *out, const float *parts, int chunks, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0.f;
#pragma unroll 4
  for (int k = 0; k < chunks; k++) sum += parts[(size_t)k * n + i];
  out[i] = sum;
}
