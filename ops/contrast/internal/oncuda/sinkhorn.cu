// Sinkhorn and Knopp's iteration, see Sinkhorn: Q is kept as diag(row) P diag(col) with P = exp((S - top of its row)/epsilon)
// of the rows of the batch (b, k) and of the first existing[0] rows of the queue (null: none).

// The number of rows, -1 for one out of range, which is an error on the host: then codes are NaN.
__device__ __forceinline__ int rows_of(int b, int most, const int *existing) {
  if (!existing) return b;
  return existing[0] < 0 || existing[0] > most - b ? -1 : b + existing[0];
}

// P and the tops of rows. A block for each row.
extern "C" __global__ void sinkhorn_start(float *p, float *top, const float *scores, const float *queue, const int *existing,
                                          int b, int most, int k, float scale) {
  __shared__ float room[33];
  int n = blockIdx.x;
  if (n >= rows_of(b, most, existing)) return;
  const float *s = n < b ? scores + (int64)n * k : queue + (int64)(n - b) * k;
  float m = -INFINITY_F;
  for (int j = threadIdx.x; j < k; j += blockDim.x) m = fmaxf(m, s[j]);
  m = block_max(m, room) * scale;
  for (int j = threadIdx.x; j < k; j += blockDim.x) p[(int64)n * k + j] = expf(scale * s[j] - m);
  if (threadIdx.x == 0) top[n] = m;
}

// The first scaling of columns knows Q itself, whose rows differ by their tops. One block.
extern "C" __global__ void __launch_bounds__(1024) sinkhorn_rows(float *row, const float *top, const int *existing, int b,
                                                                 int most) {
  __shared__ float room[33];
  int rows = rows_of(b, most, existing);
  float m = -INFINITY_F;
  for (int n = threadIdx.x; n < rows; n += blockDim.x) m = fmaxf(m, top[n]);
  m = block_max(m, room);
  for (int n = threadIdx.x; n < rows; n += blockDim.x) row[n] = expf(top[n] - m);
}

// col_j = 1 / max(sum_n row_n P_nj, least). A block of (32, 16) threads takes 32 columns.
extern "C" __global__ void sinkhorn_columns(float *col, const float *row, const float *p, const int *existing, int b, int most,
                                            int k, float least) {
  __shared__ float sums[16][32];
  int rows = rows_of(b, most, existing), j = blockIdx.x * 32 + threadIdx.x;
  float sum = 0.f;
  if (j < k)
#pragma unroll 8
    for (int n = threadIdx.y; n < rows; n += 16) sum += row[n] * p[(int64)n * k + j];
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || j >= k) return;
  for (int y = 1; y < 16; y++) sum += sums[y][threadIdx.x];
  col[j] = sum > least || sum != sum ? 1.f / sum : 1.f / least;
}

// row_n = 1 / sum_j P_nj col_j. A block for each row.
extern "C" __global__ void sinkhorn_balance(float *row, const float *col, const float *p, const int *existing, int b, int most,
                                            int k) {
  __shared__ float room[33];
  int n = blockIdx.x;
  if (n >= rows_of(b, most, existing)) return;
  float sum = 0.f;
  for (int j = threadIdx.x; j < k; j += blockDim.x) sum += p[(int64)n * k + j] * col[j];
  sum = block_sum(sum, room);
  if (threadIdx.x == 0) row[n] = 1.f / sum;
}

// out = log(N Q_nj) = S_nj/epsilon - top_n + log row_n + log col_j. A block for each row of the batch.
extern "C" __global__ void sinkhorn_codes(float *out, const float *scores, const float *top, const float *row, const float *col,
                                          const int *existing, int b, int most, int k, float scale) {
  int n = blockIdx.x;
  float shift = rows_of(b, most, existing) < 0 ? NOT_A_NUMBER : logf(row[n]) - top[n];
  for (int j = threadIdx.x; j < k; j += blockDim.x) {
    int64 at = (int64)n * k + j;
    out[at] = scale * scores[at] + logf(col[j]) + shift;
  }
}
