// Sums over the rows of a matrix, in an order that its shape fixes.

// n neighbours that are read at once: their address is aligned to all of them.
template <class T, int n> struct alignas(sizeof(T) * n) Neighbours {
  T v[n];
};

#define BLOCK 256              // threads
#define BATCH 8                // rows that a thread loads before it adds the first of them
#define COLUMNS (LANES * WIDE) // of a block
#define PARTS (WIDE < 4 ? 1 : 4)

// The sum of column threadIdx.x over the rows of x, which begin ld values apart and of which the first lanes n columns count,
// if there are so many. A thread adds n neighbours of every BLOCK/lanes-th row, and then one thread for a column what these
// have. room has BLOCK n floats.
template <int lanes, int n, class T>
__device__ __forceinline__ float block_column(float *room, const T *x, int64 rows, int64 ld, int columns) {
  constexpr int groups = BLOCK / lanes;
  int lane = threadIdx.x % lanes, group = threadIdx.x / lanes;
  Neighbours<float, n> sum = {};
  if (lane * n < columns) {
    const T *at = x + group * ld + lane * n;
    for (int64 r = group; r < rows; r += groups * BATCH) {
      Neighbours<T, n> v[BATCH] = {};
#pragma unroll
      for (int k = 0; k < BATCH; k++)
        if (r + k * groups < rows) v[k] = *reinterpret_cast<const Neighbours<T, n> *>(at + k * groups * ld);
#pragma unroll
      for (int k = 0; k < BATCH; k++)
#pragma unroll
        for (int j = 0; j < n; j++) sum.v[j] += to_float(v[k].v[j]);
      at += groups * BATCH * ld;
    }
  }
  *reinterpret_cast<Neighbours<float, n> *>(room + threadIdx.x * n) = sum;
  __syncthreads();
  float all = 0;
  if ((int)threadIdx.x < columns)
#pragma unroll 8
    for (int g = 0; g < groups; g++) all += room[g * lanes * n + threadIdx.x];
  return all;
}

// How many blocks of a strip of columns have written their sums; 0 before and after a launch.
static __device__ unsigned arrived[STRIPS];

// Whether all other blocks of the strip have come here. Then what they wrote before can be read.
__device__ __forceinline__ bool is_last_block() {
  __shared__ bool last;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicInc(&arrived[blockIdx.x], gridDim.y - 1) == gridDim.y - 1;
    __threadfence();
  }
  __syncthreads();
  return last;
}

// sums (total) = from element `from` on the sums over the rows of x (rows, cols), zero elsewhere. Block (i, j) sums strip i of
// COLUMNS columns over the j-th `each` rows, into row j of parts (.., cols) if there are several j. Of those the block that is
// done last adds the sums up, in the order of j, whichever it is.
extern "C" __global__ void __launch_bounds__(BLOCK, 4) // else it saves registers, and has two loads in flight, not seven
    sum_rows(float *sums, float *parts, const X *x, int rows, int cols, int each, int from, int total) {
  __shared__ __align__(32) float room[BLOCK * WIDE];
  int first = blockIdx.x * COLUMNS, columns = min(COLUMNS, cols - first);
  int64 row = (int64)blockIdx.y * each;
  float sum = block_column<LANES, WIDE>(room, x + row * cols + first, min((int64)each, rows - row), cols, columns);
  bool mine = (int)threadIdx.x < columns;
  if (gridDim.y > 1) {
    if (mine) parts[(int64)blockIdx.y * cols + first + threadIdx.x] = sum;
    if (!is_last_block()) return;
    sum = block_column<COLUMNS / PARTS, PARTS>(room, parts + first, gridDim.y, cols, columns);
  }
  if (mine) sums[from + first + threadIdx.x] = sum;
  if (blockIdx.x > 0) return;
  for (int i = threadIdx.x; i < total; i += BLOCK)
    if (i < from || i >= from + cols) sums[i] = 0.f;
}
