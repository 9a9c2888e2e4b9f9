// Columns of a pool by cluster, and columns by id.

// How many columns a block sorts.
#define CHUNK 512

// The cluster of column j, `total` for none: a column that does not exist, no graph, or an owner outside [0, total), an error of the
// run on the host, whose scores are NaN here.
__device__ __forceinline__ int cluster(const pool_state &s, const int *keys, const int *owner, const int *count, int j, int total) {
  if (j >= s.cols || *count == 0) return total;
  int k = s.of(keys, owner, j);
  return k >= 0 && k < total ? k : total;
}

// counts (chunks, total): how many columns of a chunk each cluster has. A block counts a chunk.
extern "C" __global__ void count_members(int *counts, const int *owner, const int *keys, const int *count, const int *pointer, const int *cols, int batch, int n, int total) {
  pool_state s = read_pool(pointer, cols, batch, n);
  int *own = counts + (size_t)blockIdx.x * total;
  for (int k = threadIdx.x; k < total; k += CHUNK) own[k] = 0;
  __syncthreads();
  int j = blockIdx.x * CHUNK + threadIdx.x;
  int k = j < n ? cluster(s, keys, owner, count, j, total) : total;
  if (k < total) atomicAdd(own + k, 1);
}

// Turns counts into the places in the lists where the columns of a chunk begin, and sets starts (total+1). One block of 1024 threads:
// the sums of all clusters before it, 1024 at a time.
extern "C" __global__ void start_members(int *starts, int *counts, int chunks, int total) {
  __shared__ int sums[1024];
  int before = 0;
  for (int from = 0; from < total; from += 1024) {
    int k = from + threadIdx.x, own = 0;
    if (k < total)
#pragma unroll 4
      for (int c = 0; c < chunks; c++) own += counts[(size_t)c * total + k];
    __syncthreads();
    sums[threadIdx.x] = own;
    __syncthreads();
    for (int d = 1; d < 1024; d *= 2) { // inclusive sums
      int x = threadIdx.x >= d ? sums[threadIdx.x - d] : 0;
      __syncthreads();
      sums[threadIdx.x] += x;
      __syncthreads();
    }
    int at = before + sums[threadIdx.x] - own;
    before += sums[1023];
    if (k >= total) continue;
    starts[k] = at;
    for (int c = 0; c < chunks; c++) {
      int here = counts[(size_t)c * total + k];
      counts[(size_t)c * total + k] = at;
      at += here;
    }
  }
  if (threadIdx.x == 0) starts[total] = before;
}

// Puts the columns of a chunk into the lists, in ascending order.
extern "C" __global__ void list_members(int *lists, const int *places, const int *owner, const int *keys, const int *count, const int *pointer, const int *cols, int batch, int n, int total) {
  __shared__ int clusters[CHUNK];
  pool_state s = read_pool(pointer, cols, batch, n);
  int j = blockIdx.x * CHUNK + threadIdx.x;
  int k = j < n ? cluster(s, keys, owner, count, j, total) : total;
  clusters[threadIdx.x] = k;
  __syncthreads();
  if (k == total) return;
  int before = 0; // columns of the cluster earlier in the chunk
  for (int t = 0; t < threadIdx.x; t++) before += clusters[t] == k;
  lists[places[(size_t)blockIdx.x * total + k] + before] = j;
}

// next (n) = -1.
extern "C" __global__ void clear_next(int *next, int n) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j < n) next[j] = -1;
}

// first[i] is the first column with the id of row i and next[j] the next one with that of column j, -1 the end; an id below 0 is
// nobody's. A block of 1024 threads links the columns of a row: each warp those of a part of the pool, 32 at a time, then one
// thread the parts. Rows with one id write the same values.
extern "C" __global__ void link_columns(int *first, int *next, const int *row_ids, const int *col_ids, const int *cols, int n) {
  __shared__ int firsts[32], lasts[32];
  int i = blockIdx.x, lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, id = row_ids[i];
  int exist = cols ? max(0, min(*cols, n)) : n;
  if (id < 0) exist = 0;
  int part = (exist + 32 * WARP - 1) / (32 * WARP) * WARP, head = -1, last = -1;
  for (int from = warp * part; from < min((warp + 1) * part, exist); from += WARP) {
    int j = from + lane;
    uint32 found = __ballot_sync(FULL, j < exist && col_ids[j] == id);
    if (found == 0) continue;
    if (lane == 0) {
      if (last >= 0)
        next[last] = from + __ffs(found) - 1;
      else
        head = from + __ffs(found) - 1;
    }
    uint32 above = lane < 31 ? found >> (lane + 1) : 0;
    if (found >> lane & 1 && above) next[j] = j + __ffs(above);
    last = from + 31 - __clz(found);
  }
  if (lane == 0) firsts[warp] = head, lasts[warp] = last;
  __syncthreads();
  if (threadIdx.x != 0) return;
  head = -1, last = -1;
  for (int w = 0; w < 32; w++) {
    if (firsts[w] < 0) continue;
    if (last >= 0)
      next[last] = firsts[w];
    else
      head = firsts[w];
    last = lasts[w];
  }
  first[i] = head;
}
