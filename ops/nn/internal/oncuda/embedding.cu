// Rows by index, and the sums of rows of one index. Rows are width columns here: those of a block of rows one after the other.

// y (r) = x (index[r]). A row whose index is outside [0, n), which the host reports, is not a number.
extern "C" __global__ void gather(float *y, const float *x, const int *index, int rows, int width, int n) {
  int row = WARP_ROW;
  if (row >= rows) return;
  int from = index[row];
  bool there = from >= 0 && from < n;
  const float *source = x + (size_t)(there ? from : 0) * width;
  y += (size_t)row * width;
#pragma unroll
  EACH_PIECE(k, col, width) {
    float v[PIECE];
    if (there)
      load_piece(v, source, col);
    else
      fill_piece(v, NOT_A_NUMBER);
    store_piece(y, col, v);
  }
}

// The gradient sums the rows of dy of each index. So that sums have one order, and that an index of very many rows does not take
// long, the places of rows are sorted by index, and runs of one index are summed in parts of CHUNK places: runs within a part
// go to the result, the others are added up when all parts are done.

#define CHUNK 64

// order: the places of the n values of index, sorted by value, equal ones in their order; sorted: the values. A place is the
// number of values that come before: 8 warps count for 32 values, each those of an eighth.
extern "C" __global__ void __launch_bounds__(256) sort_index(int *order, int *sorted, const int *index, int n) {
  __shared__ int room[8][32];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int at = blockIdx.x * 32 + lane;
  int own = at < n ? index[at] : 0;
  int eighth = (n + 31) / 32 * 4; // limits are multiples of 4 but for the end
  int from = min(warp * eighth, n), to = min(from + eighth, n);
  int tied = min(max((int)blockIdx.x * 32, from), to);       // equal values before here come before
  int apart = min(max((int)blockIdx.x * 32 + 32, from), to); // and none from here on
  int before = 0, k = from;
#pragma unroll 2
  for (; k < tied; k += 4) {
    int4 v = *(const int4 *)(index + k);
    before += (v.x <= own) + (v.y <= own) + (v.z <= own) + (v.w <= own);
  }
  for (; k < apart; k++) before += index[k] < own || (index[k] == own && k < at);
#pragma unroll 2
  for (; k + 4 <= to; k += 4) {
    int4 v = *(const int4 *)(index + k);
    before += (v.x < own) + (v.y < own) + (v.z < own) + (v.w < own);
  }
  for (; k < to; k++) before += index[k] < own;
  room[warp][lane] = before;
  __syncthreads();
  if (warp > 0 || at >= n) return;
#pragma unroll
  for (int w = 1; w < 8; w++) before += room[w][lane];
  order[before] = at;
  sorted[before] = own;
}

__device__ __forceinline__ void add_piece(float *y, size_t i, float (&v)[PIECE]) {
#if ACCUMULATE
  float old[PIECE];
  load_piece(old, y, i);
#pragma unroll
  for (int j = 0; j < PIECE; j++) v[j] += old[j];
#endif
  store_piece(y, i, v);
}

// The sums of part blockIdx.x. dx (n, width) is zero before, or has what is added to. A run that began before the part leaves its
// sum in parts (part, 0), one that begins in it and goes on behind it in (part, 1). Index still has no gradient, those outside
// [0, n) are left out.
extern "C" __global__ void sum_runs(float *dx, float *parts, const float *dy, const int *order, const int *sorted, int rows,
    int width, int n, int still) {
  __shared__ int place[CHUNK], value[CHUNK];
  int first = blockIdx.x * CHUNK, count = min(CHUNK, rows - first);
  for (int k = threadIdx.x; k < count; k += blockDim.x) {
    int i = sorted[first + k];
    place[k] = order[first + k];
    value[k] = i < 0 || i >= n || i == still ? -1 : i;
  }
  __syncthreads();
  int col = (blockIdx.y * blockDim.x + threadIdx.x) * PIECE;
  if (col >= width) return;
  bool begun = first > 0 && sorted[first - 1] == sorted[first];
  bool on = first + count < rows && sorted[first + count] == sorted[first + count - 1];
  parts += (size_t)blockIdx.x * 2 * width;
  float sum[PIECE];
  fill_piece(sum, 0);
  for (int from = 0; from < count; from += 8) {
    float v[8][PIECE];
#pragma unroll
    for (int k = 0; k < 8; k++)
      if (from + k < count && value[from + k] >= 0) load_piece(v[k], dy + (size_t)place[from + k] * width, col);
#pragma unroll
    for (int k = 0; k < 8; k++) {
      int at = from + k;
      if (at >= count || value[at] < 0) continue;
#pragma unroll
      for (int j = 0; j < PIECE; j++) sum[j] += v[k][j];
      bool last = at == count - 1;
      if (!last && value[at + 1] == value[at]) continue;
      bool old = begun && value[at] == value[0]; // the run has a beginning before the part
      if (old)
        store_piece(parts, col, sum);
      else if (last && on)
        store_piece(parts + width, col, sum);
      else
        add_piece(dx, (size_t)value[at] * width + col, sum);
      fill_piece(sum, 0);
    }
  }
}

// Adds up the runs that begin in part blockIdx.x and go on behind it.
extern "C" __global__ void join_runs(float *dx, const float *parts, const int *sorted, int rows, int width, int n, int still) {
  int first = blockIdx.x * CHUNK, next = first + CHUNK;
  if (next >= rows) return;
  int i = sorted[next - 1];
  if (sorted[next] != i || i < 0 || i >= n || i == still) return;
  if (sorted[first] == i && first > 0 && sorted[first - 1] == i) return; // it began before
  int col = (blockIdx.y * blockDim.x + threadIdx.x) * PIECE;
  if (col >= width) return;
  int low = blockIdx.x + 1, high = (rows - 1) / CHUNK + 1; // the parts from low on begin with i until one before high does not
  while (high - low > 1) {
    int mid = low + (high - low) / 2;
    if (sorted[mid * CHUNK] == i)
      low = mid;
    else
      high = mid;
  }
  float sum[PIECE];
  load_piece(sum, parts + ((size_t)blockIdx.x * 2 + 1) * width, col);
#pragma unroll 8
  for (int part = blockIdx.x + 1; part < high; part++) {
    float v[PIECE];
    load_piece(v, parts + (size_t)part * 2 * width, col);
#pragma unroll
    for (int j = 0; j < PIECE; j++) sum[j] += v[j];
  }
  add_piece(dx, (size_t)i * width + col, sum);
}
