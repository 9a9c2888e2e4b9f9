// Rows, columns and whole numbers that are moved. Values are float32, moved four at a time where the width of a row permits
// (VEC). Thread u moves unit u of a matrix of `cols` units a row; matrices of 2^31 units and more count in 64 bits (LARGE).

#if VEC
typedef float4 unit;
__device__ __forceinline__ unit zero_unit() { return make_float4(0.f, 0.f, 0.f, 0.f); }
__device__ __forceinline__ unit add_units(unit a, unit b) { return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }
#else
typedef float unit;
__device__ __forceinline__ unit zero_unit() { return 0.f; }
__device__ __forceinline__ unit add_units(unit a, unit b) { return a + b; }
#endif

#if LARGE
typedef uint64 index;
#else
typedef uint32 index;
#endif

__device__ __forceinline__ index thread_index() { return (index)blockIdx.x * blockDim.x + threadIdx.x; }

// Where the rows of a part lie in the whole: sequences of t rows from row `first` on, of each of which `kept` rows are the part.
// The part has the first `from` rows of a sequence, and all others `shift` rows further on.
struct part {
  int first, t, kept, from, shift;
};

// The row of the whole that row r of the part is.
__device__ __forceinline__ size_t whole_row(part p, uint32 r) {
  uint32 s = r / p.kept, q = r % p.kept;
  return (size_t)s * p.t + p.first + q + (q >= p.from ? p.shift : 0);
}

// The row of a part of `rows` rows that row r of the whole is, -1: it is not in the part.
__device__ __forceinline__ int part_row(part p, int r, int rows) {
  r -= p.first;
  if (r < 0) return -1;
  int s = r / p.t, q = r % p.t;
  if (q >= p.from) {
    q -= p.shift;
    if (q < p.from) return -1;
  }
  if (q >= p.kept) return -1;
  int at = s * p.kept + q; // at most r
  return at < rows ? at : -1;
}

// y, of n units, is the part of x.
extern "C" __global__ void take_rows(unit *y, const unit *x, uint64 n, int cols, int first, int t, int kept, int from, int shift) {
  index u = thread_index();
  if (u >= n) return;
  part p = {first, t, kept, from, shift};
  uint32 r = (uint32)(u / cols), c = (uint32)(u % cols);
  y[u] = x[whole_row(p, r) * cols + c];
}

// dx, of n units, has the rows of dy, its part, at their places among zeros.
extern "C" __global__ void place_rows(unit *dx, const unit *dy, uint64 n, int cols, int rows, int first, int t, int kept, int from, int shift) {
  index u = thread_index();
  if (u >= n) return;
  part p = {first, t, kept, from, shift};
  int at = part_row(p, (int)(u / cols), rows);
  dx[u] = at < 0 ? zero_unit() : dy[(size_t)at * cols + (uint32)(u % cols)];
}

// dx += those rows: dy has n units.
extern "C" __global__ void add_rows(unit *dx, const unit *dy, uint64 n, int cols, int first, int t, int kept, int from, int shift) {
  index u = thread_index();
  if (u >= n) return;
  part p = {first, t, kept, from, shift};
  size_t at = whole_row(p, (uint32)(u / cols)) * cols + (uint32)(u % cols);
  dx[at] = add_units(dx[at], dy[u]);
}

// z, of n units, has k rows of y behind the first `at` of every l rows of x.
extern "C" __global__ void join_rows(unit *z, const unit *x, const unit *y, uint64 n, int cols, int l, int k, int at) {
  index u = thread_index();
  if (u >= n) return;
  uint32 r = (uint32)(u / cols), c = (uint32)(u % cols), all = (uint32)l + k, s = r / all, q = r % all;
  if (q < at)
    z[u] = x[((size_t)s * l + q) * cols + c];
  else if (q < at + k)
    z[u] = y[((size_t)s * k + q - at) * cols + c];
  else
    z[u] = x[((size_t)s * l + q - k) * cols + c];
}

// z (rows, d+e) has the columns of x (rows, d), then those of y (rows, e).
extern "C" __global__ void join_columns(unit *z, const unit *x, const unit *y, uint64 n, int d, int e) {
  index u = thread_index();
  if (u >= n) return;
  size_t r = u / (index)(d + e);
  int c = (int)(u % (index)(d + e));
  z[u] = c < d ? x[r * d + c] : y[r * e + c - d];
}

// y (rows, cols) has the columns of x (rows, width) from one on.
extern "C" __global__ void column_range(unit *y, const unit *x, uint64 n, int cols, int width, int from) {
  index u = thread_index();
  if (u >= n) return;
  y[u] = x[(size_t)(u / cols) * width + from + (uint32)(u % cols)];
}
