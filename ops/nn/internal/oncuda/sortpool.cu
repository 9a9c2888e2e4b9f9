// Sums of the values of each column of a sequence under a weight for each rank, the largest value first.

// w (b, l) = softmax(scores / temperature) over the rows that count, else 0; a warp for each sequence.
extern "C" __global__ void sort_pool_weights(float *w, const float *scores, const int *lengths, int sequences, int l,
    float inverse) {
  int b = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (b >= sequences) return;
  int n = lengths[b];
  if (n < 0 || n > l) n = 0; // the host reports it
  w += (size_t)b * l, scores += (size_t)b * l;
  float top = -INFINITY_F, sum = 0;
  for (int k = lane; k < n; k += 32) top = fmaxf(top, scores[k] * inverse);
  top = warp_max(top);
  for (int k = lane; k < n; k += 32) sum += expf(scores[k] * inverse - top);
  sum = warp_sum(sum);
  for (int k = lane; k < l; k += 32) w[k] = k < n ? expf(scores[k] * inverse - top) / sum : 0.f;
}

// A whole number with the order of the value: equal ones for 0 and -0, and NaNs have a place too.
__device__ __forceinline__ int ordered(float x) {
  int i = __float_as_int(x + 0.f);
  return i < 0 ? i ^ 0x7fffffff : i;
}

// order (b l, cols): the row of the value of a rank in its column, equal ones in their order, and 0 behind the rows that count.
// y (b, cols): the sum of w times the values in this order. A block has 32 columns of a sequence; the rank of a value is the
// number of those that come before it.
extern "C" __global__ void __launch_bounds__(256) sort_pool(float *y, int *order, const float *w, const float *x,
    const int *lengths, int cols, int l) {
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, b = blockIdx.x, col = blockIdx.y * 32 + lane;
  int n = lengths[b];
  bool bad = n < 0 || n > l;
  if (bad) n = 0; // the host reports it
  size_t from = (size_t)b * l * cols + col;
  x += from, order += from;
  if (col < cols) {
    for (int k = warp; k < n; k += 8) {
      int own = ordered(x[(size_t)k * cols]), rank = 0;
#pragma unroll 4
      for (int i = 0; i < k; i++) rank += ordered(x[(size_t)i * cols]) >= own;
#pragma unroll 4
      for (int i = k + 1; i < n; i++) rank += ordered(x[(size_t)i * cols]) > own;
      order[(size_t)rank * cols] = k;
    }
    for (int k = n + warp; k < l; k += 8) order[(size_t)k * cols] = 0;
  }
  __syncthreads();
  if (warp > 0 || col >= cols) return;
  float sum = 0;
  for (int k = 0; k < n; k++) sum = fmaf(w[(size_t)b * l + k], x[(size_t)order[(size_t)k * cols] * cols], sum);
  y[(size_t)b * cols + col] = bad ? NOT_A_NUMBER : sum;
}

// dx, which is zero, of the rank k of each column: w dy at the place of its value.
extern "C" __global__ void sort_pool_dx(float *dx, const int *order, const float *w, const float *dy, int rows, int cols, int l) {
  int row = WARP_ROW;
  if (row >= rows || w[row] == 0) return;
  int b = row / l;
#pragma unroll
  EACH_PIECE(k, col,
      cols) dx[((size_t)b * l + order[(size_t)row * cols + col]) * cols + col] = w[row] * dy[(size_t)b * cols + col];
}

// ds (b l) = w (dw - sum w dw) / temperature, with dw_k the sum over columns of the value of rank k times dy and sum w dw = y
// dy; a warp for each rank.
extern "C" __global__ void sort_pool_dscores(float *ds, const int *order, const float *w, const float *y, const float *x,
    const float *dy, int rows, int cols, int l, float inverse) {
  int row = WARP_ROW, lane = threadIdx.x % 32;
  if (row >= rows) return;
  size_t b = row / l;
  float weight = w[row], dw = 0, mean = 0;
  if (weight != 0) {
    for (int col = lane; col < cols; col += 32) {
      float d = dy[b * cols + col];
      dw = fmaf(x[(b * l + order[(size_t)row * cols + col]) * cols + col], d, dw);
      mean = fmaf(y[b * cols + col], d, mean);
    }
    dw = warp_sum(dw), mean = warp_sum(mean);
  }
  if (lane == 0) ds[row] = weight == 0 ? 0.f : weight * (dw - mean) * inverse;
}
