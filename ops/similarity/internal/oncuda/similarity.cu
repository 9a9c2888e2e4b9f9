// Kernels of products of rows of features.

// Columns of scores (rows, total) that do not exist are zero: those from *cols on. Where *cols makes no sense everything is NaN, as a
// device has no other way to say so.
extern "C" __global__ void clear_columns(float *scores, const int *cols, int total) {
  int from = *cols;
  float fill = 0.f;
  if (from < 0 || from > total) from = 0, fill = NOT_A_NUMBER;
  float *row = scores + (size_t)blockIdx.x * total;
  for (int c = from + blockIdx.y * blockDim.x + threadIdx.x; c < total; c += gridDim.y * blockDim.x) row[c] = fill;
}

// out_r = x_r . y_(r/each) for x (rows, cols): a warp a row.
extern "C" __global__ void row_products(float *out, const float *x, const float *y, int rows, int cols, int each) {
  int r = blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP;
  if (r >= rows) return;
  x += (size_t)r * cols;
  y += (size_t)(r / each) * cols;
  float sum = 0.f;
  for (int c = threadIdx.x % WARP; c < cols; c += WARP) sum += x[c] * y[c];
  sum = warp_sum(sum);
  if (threadIdx.x % WARP == 0) out[r] = sum;
}

// dx_r = d_r y_(r/each), dy_i = sum d_r x_r over its rows: a block the rows of one y, a thread one column of them.
extern "C" __global__ void row_products_gradient(float *dx, float *dy, const float *x, const float *y, const float *d, int cols, int each) {
  int c = blockIdx.y * blockDim.x + threadIdx.x;
  if (c >= cols) return;
  size_t i = blockIdx.x;
  float own = y[i * cols + c], sum = 0.f;
  for (size_t r = i * each; r < (i + 1) * each; r++) {
    sum += d[r] * x[r * cols + c];
    dx[r * cols + c] = d[r] * own;
  }
  dy[i * cols + c] = sum;
}

// y = x with the columns from `from` on, in heads of n, times w (n). y may be x.
extern "C" __global__ void multiply_columns(float *y, const float *x, const float *w, int cols, int from, int width, int n) {
  int c = blockIdx.y * blockDim.x + threadIdx.x;
  if (c >= cols) return;
  size_t at = (size_t)blockIdx.x * cols + c;
  y[at] = c >= from && c < from + width ? x[at] * w[(c - from) % n] : x[at];
}

// dw_i = sum x dy over the rows, and over the heads of n columns from `from` on. A block of 32 x 32 threads sums 32 weights, a thread
// every 32nd row.
extern "C" __global__ void multiply_columns_weights(float *dw, const float *x, const float *dy, int rows, int cols, int from,
                                                    int width, int n) {
  __shared__ float room[32][33];
  int i = blockIdx.x * 32 + threadIdx.x;
  float sum = 0.f;
  if (i < n) {
    for (size_t r = threadIdx.y; r < rows; r += 32)
      for (int c = from + i; c < from + width; c += n) sum += x[r * cols + c] * dy[r * cols + c];
  }
  room[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  sum = warp_sum(room[threadIdx.x][threadIdx.y]);
  int own = blockIdx.x * 32 + threadIdx.y;
  if (threadIdx.x == 0 && own < n) dw[own] = sum;
}
