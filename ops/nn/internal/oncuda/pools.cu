// What is left of the first lengths (b) of the l rows of each sequence: means, largest values, and means under weights. Sequences
// whose length is outside [0, l], which the host reports, are not numbers.

// The rows of sequence b that count; -1: there are not so many.
__device__ __forceinline__ int length_of(const int *lengths, int b, int l) {
  int n = lengths ? lengths[b] : l;
  return n < 0 || n > l ? -1 : n;
}

// y (b, cols): the mean of rows skip to length of sequence b, 0 of none. A block has 32 pieces of a sequence: each of its 8 warps
// adds up every eighth row, and then one warp the 8 sums.
extern "C" __global__ void __launch_bounds__(256) mean_tokens(float *y, const float *x, const int *lengths, int cols, int l,
    int skip) {
  __shared__ float room[8][32][PIECE];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, b = blockIdx.x;
  int col = (blockIdx.y * 32 + lane) * PIECE, n = length_of(lengths, b, l);
  float s[PIECE];
  fill_piece(s, 0);
  if (col < cols)
#pragma unroll 4
    for (int r = skip + warp; r < n; r += 8) {
      float v[PIECE];
      load_piece(v, x, ((size_t)b * l + r) * cols + col);
#pragma unroll
      for (int j = 0; j < PIECE; j++) s[j] += v[j];
    }
#pragma unroll
  for (int j = 0; j < PIECE; j++) room[warp][lane][j] = s[j];
  __syncthreads();
  if (warp > 0 || col >= cols) return;
#pragma unroll
  for (int w = 1; w < 8; w++)
#pragma unroll
    for (int j = 0; j < PIECE; j++) s[j] += room[w][lane][j];
  float scale = n < 0 ? NOT_A_NUMBER : n > skip ? 1.f / (n - skip) : 0.f;
#pragma unroll
  for (int j = 0; j < PIECE; j++) s[j] *= scale;
  store_piece(y, (size_t)b * cols + col, s);
}

// dx (b l, cols) of mean_tokens: dy / (length - skip) in the rows that count, else 0.
extern "C" __global__ void mean_tokens_dx(float *dx, const float *dy, const int *lengths, int rows, int cols, int l, int skip) {
  int row = WARP_ROW;
  if (row >= rows) return;
  int b = row / l, r = row % l, n = length_of(lengths, b, l);
  float scale = r >= skip && r < n ? 1.f / (n - skip) : 0.f;
#pragma unroll
  EACH_PIECE(k, col, cols) {
    float v[PIECE];
    fill_piece(v, 0);
    if (r >= skip && r < n) load_piece(v, dy, (size_t)b * cols + col);
#pragma unroll
    for (int j = 0; j < PIECE; j++) v[j] *= scale;
    store_piece(dx + (size_t)row * cols, col, v);
  }
}

// y (b, cols): the largest of the rows that count of each column, and place, its row, -1 for none. Of equal ones the first
// counts.
extern "C" __global__ void max_tokens(float *y, int *place, const float *x, const int *lengths, int cols, int l) {
  int b = blockIdx.x, col = blockIdx.y * blockDim.x + threadIdx.x, n = length_of(lengths, b, l);
  if (col >= cols) return;
  x += (size_t)b * l * cols + col;
  float top = n < 0 ? NOT_A_NUMBER : 0.f;
  int at = -1;
#pragma unroll 8
  for (int r = 0; r < n; r++) {
    float v = x[(size_t)r * cols];
    if (r == 0 || v > top) top = v, at = r;
  }
  y[(size_t)b * cols + col] = top;
  place[(size_t)b * cols + col] = at;
}

// dx (b l, cols) of max_tokens: dy where the largest was, else 0.
extern "C" __global__ void max_tokens_dx(float *dx, const int *place, const float *dy, int rows, int cols, int l) {
  int row = WARP_ROW;
  if (row >= rows) return;
  int b = row / l, r = row % l;
#pragma unroll
  EACH_PIECE(k, col, cols) {
    float v[PIECE];
#pragma unroll
    for (int j = 0; j < PIECE; j++) {
      size_t i = (size_t)b * cols + col + j;
      v[j] = place[i] == r ? dy[i] : 0.f;
    }
    store_piece(dx + (size_t)row * cols, col, v);
  }
}

// y (b, cols) = sum_k p_k x_k with p = softmax of the scores s of a column over the rows that count; top, the largest score, and
// scale = 1 / sum exp(s - top) are what the backward pass makes p of again. All 0 of no rows.
extern "C" __global__ void soft_pool(float *y, float *top, float *scale, const float *x, const float *s, const int *lengths,
    int cols, int l) {
  int b = blockIdx.x, col = blockIdx.y * blockDim.x + threadIdx.x, n = length_of(lengths, b, l);
  if (col >= cols) return;
  x += (size_t)b * l * cols + col;
  s += (size_t)b * l * cols + col;
  float most = 0, total = 0, sum = 0;
#pragma unroll 8
  for (int r = 0; r < n; r++) {
    float v = s[(size_t)r * cols];
    if (r == 0 || v > most) most = v;
  }
#pragma unroll 4
  for (int r = 0; r < n; r++) {
    float w = expf(s[(size_t)r * cols] - most);
    total += w;
    sum = fmaf(w, x[(size_t)r * cols], sum);
  }
  if (total > 0) total = 1.f / total, sum *= total;
  size_t at = (size_t)b * cols + col;
  y[at] = n < 0 ? NOT_A_NUMBER : sum, top[at] = most, scale[at] = total;
}

// dx = p dy and ds = p (x - y) dy of soft_pool, 0 in rows that do not count.
extern "C" __global__ void soft_pool_dx(float *dx, float *ds, const float *y, const float *x, const float *s, const int *lengths,
                                        const float *dy,
                                        const float *top, const float *scale, int rows, int cols, int l) {
  int row = WARP_ROW;
  if (row >= rows) return;
  int b = row / l;
  bool counts = row % l < length_of(lengths, b, l);
#pragma unroll
  EACH_PIECE(k, col, cols) {
    size_t at = (size_t)row * cols + col, of = (size_t)b * cols + col;
    float d[PIECE], e[PIECE];
#pragma unroll
    for (int j = 0; j < PIECE; j++) {
      d[j] = counts ? expf(s[at + j] - top[of + j]) * scale[of + j] * dy[of + j] : 0.f;
      e[j] = counts ? d[j] * (x[at + j] - y[of + j]) : 0.f;
    }
    store_piece(dx, at, d);
    store_piece(ds, at, e);
  }
}
