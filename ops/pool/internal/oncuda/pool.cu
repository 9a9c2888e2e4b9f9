// A pool of N rows is a queue (N, C) with a batch's keys (B2, C) in the place of its rows [pointer, pointer+B2) mod N. Its rows from
// `cols` on do not exist. Both numbers are known on the device alone, so products read a copy of the pool with the keys in their
// places. V: float, or bf16 for products in bfloat16. A pointer outside [0, N) and cols outside [0, N], errors of the run on the
// host, make every result NaN.


struct pool_state {
  int pointer, cols;
  bool valid;
};

__device__ __forceinline__ pool_state read_pool(const int *pointer, const int *cols, int n) {
  pool_state s = {*pointer, cols ? *cols : n, true};
  s.valid = s.pointer >= 0 && s.pointer < n && s.cols >= 0 && s.cols <= n;
  if (!s.valid) s.pointer = 0, s.cols = n;
  return s;
}

// The row of the keys that row j of a pool of n is; not below `batch`: it is row j of the queue.
__device__ __forceinline__ int key_row(int j, int pointer, int n) { return j >= pointer ? j - pointer : j - pointer + n; }

// out (N, ld) is the pool, rows that do not exist and columns from `width` on zeros. A block copies 8 rows, each with 32 threads.
extern "C" __global__ void assemble(V *out, const float *keys, const float *queue, const int *pointer, const int *cols, int batch, int n, int width, int ld) {
  int j = blockIdx.x * 8 + threadIdx.y;
  if (j >= n) return;
  pool_state s = read_pool(pointer, cols, n);
  int k = key_row(j, s.pointer, n);
  const float *row = k < batch ? keys + (size_t)k * width : queue + (size_t)j * width;
  V *to = out + (size_t)j * ld;
  bool exists = j < s.cols;
#if VEC // width is a multiple of 4, and ld with it
  for (int c = 4 * threadIdx.x; c < ld; c += 4 * 32) {
    float v[4] = {0.f, 0.f, 0.f, 0.f};
    if (exists && c < width) load4(v, row, c);
    if (!s.valid) v[0] = NOT_A_NUMBER;
    store4(to, c, v);
  }
#else
  for (int c = threadIdx.x; c < ld; c += 32) {
    float v = exists && c < width ? row[c] : 0.f;
    to[c] = from_float<V>(s.valid ? v : NOT_A_NUMBER);
  }
#endif
}

// out (rows, ld) is x (rows, width) as V, columns from `width` on zeros.
extern "C" __global__ void widen(V *out, const float *x, int64 units, int width, int ld) {
  int64 u = (int64)blockIdx.x * blockDim.x + threadIdx.x;
  if (u >= units) return;
  int64 r = u / ld;
  int c = (int)(u % ld);
  out[u] = from_float<V>(c < width ? x[r * width + c] : 0.f);
}

// y (rows, n) has the columns [pointer, pointer+n) mod total of x (rows, total).
extern "C" __global__ void pool_columns(float *y, const float *x, const int *pointer, int64 values, int n, int total) {
  int64 u = (int64)blockIdx.x * blockDim.x + threadIdx.x;
  if (u >= values) return;
  pool_state s = read_pool(pointer, nullptr, total);
  int64 r = u / n;
  int j = s.pointer + (int)(u % n);
  if (j >= total) j -= total;
  y[u] = s.valid ? x[r * total + j] : NOT_A_NUMBER;
}
