// The search for neighbours: scores of anchors x (anchors, n) and all rows of a queue (Q, n), and of each anchor the best `near` of
// them, of which `count` are drawn. Everything is computed in one order for all pairs, so that equal rows have equal scores, and of
// those the lower row is nearer.
//
// Only the first *filled rows exist. With clusters of which *used are in use, an anchor is compared with the members of its own
// cluster, then of the next nearest, until there are `candidates`: an anchor's offset of a cluster is the number of members that
// come before. Numbers that make no sense, errors of the run on the host, leave an anchor without neighbours, which are -1 then.
#define TILE 64
#define STEP 16
#define FLOOR 1e-12

// Floats in the order of unsigned numbers above 0; what is no finite number counts as -Inf, and 0 has no sign.
__device__ __forceinline__ uint32 ordered(float v) {
  if (!(v - v == 0.f)) v = -INFINITY_F;
  uint32 bits = __float_as_uint(v == 0.f ? 0.f : v);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

// A key of two items compares as they do: by value, of equal ones the lower index is better. 0 stands for no item.
__device__ __forceinline__ uint64 item(float v, int i) { return (uint64)ordered(v) << 32 | (uint32)~i; }

__device__ __forceinline__ bool sensible(const int *n, int most) { return *n >= 0 && *n <= most; }

// inverse (Q) = 1/|row| of the queue: a warp a row.
extern "C" __global__ void __launch_bounds__(256) queue_norms(float *inverse, const float *queue, int rows, int n) {
  int r = blockIdx.x * 8 + threadIdx.x / WARP;
  if (r >= rows) return;
  queue += (size_t)r * n;
  double sum = 0;
  for (int i = threadIdx.x % WARP; i < n; i += WARP) sum += (double)queue[i] * (double)queue[i];
  sum = warp_sum_double(sum);
  if (threadIdx.x % WARP == 0) inverse[r] = (float)(1. / fmax(sqrt(sum), FLOOR));
}

// scores (anchors, Q) = x queue^T over the norms of the queue's rows; an anchor's own does not change its order. A block has
// TILE x TILE scores, a thread 4 x 4.
extern "C" __global__ void __launch_bounds__(256)
    neighbour_scores(float *scores, const float *x, const float *queue, const float *inverse, const int *filled, int anchors, int rows, int n) {
  __shared__ __align__(16) float us[STEP][TILE + 4], vs[STEP][TILE + 4];
  int i = blockIdx.y * TILE, j = blockIdx.x * TILE, own = threadIdx.y * 16 + threadIdx.x;
  if (j >= *filled) return;
  float all[4][4] = {};
  for (int from = 0; from < n; from += STEP) {
    __syncthreads();
#pragma unroll
    for (int t = 0; t < 4; t++) {
      int r = (own + t * 256) / STEP, c = own % STEP;
      bool in = from + c < n;
      us[c][r] = in && i + r < anchors ? x[(size_t)(i + r) * n + from + c] : 0.f;
      vs[c][r] = in && j + r < rows ? queue[(size_t)(j + r) * n + from + c] : 0.f;
    }
    __syncthreads();
    float sum[4][4] = {};
#pragma unroll
    for (int c = 0; c < STEP; c++) {
      float u[4], v[4];
      load4(u, us[c], 4 * threadIdx.y);
      load4(v, vs[c], 4 * threadIdx.x);
#pragma unroll
      for (int p = 0; p < 4; p++)
#pragma unroll
        for (int q = 0; q < 4; q++) sum[p][q] += u[p] * v[q];
    }
#pragma unroll
    for (int p = 0; p < 4; p++)
#pragma unroll
      for (int q = 0; q < 4; q++) all[p][q] += sum[p][q];
  }
#pragma unroll
  for (int p = 0; p < 4; p++)
#pragma unroll
    for (int q = 0; q < 4; q++) {
      int r = i + 4 * threadIdx.y + p, c = j + 4 * threadIdx.x + q;
      if (r < anchors && c < rows) scores[(size_t)r * rows + c] = all[p][q] * inverse[c];
    }
}

// counts (K), the members of each cluster, and places (Q), how many members of its cluster lie before a row: a block a cluster.
extern "C" __global__ void __launch_bounds__(256) cluster_places(int *counts, int *places, const int *owner, const int *filled, int rows) {
  __shared__ int room[8];
  int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, before = 0, end = min(*filled, rows);
  for (int from = 0; from < end; from += 256) {
    int i = from + threadIdx.x;
    bool own = i < end && owner[i] == (int)blockIdx.x;
    unsigned in = __ballot_sync(FULL, own);
    __syncthreads();
    if (lane == 0) room[warp] = __popc(in);
    __syncthreads();
    int at = before + __popc(in & ((1u << lane) - 1u));
    for (int w = 0; w < 8; w++) {
      if (w < warp) at += room[w];
      before += room[w];
    }
    if (own) places[i] = at;
  }
  if (threadIdx.x == 0) counts[blockIdx.x] = before;
}

// offsets (anchors, K): members of the clusters that an anchor looks at before one. They are ordered by the path from its own, which
// comes first; of equal paths, and of clusters that none reaches, the lower one. A block an anchor.
extern "C" __global__ void __launch_bounds__(256) cluster_offsets(int *offsets, const int *counts, const float *paths, const int *own, const int *used, int k) {
  int a = blockIdx.x, o = own[a];
  if (!sensible(used, k) || o < 0 || o >= *used) return;
  paths += (size_t)o * k;
  for (int c = threadIdx.x; c < *used; c += 256) {
    uint64 mine = item(c == o ? 3.402823466e38f : -paths[c], c);
    int sum = 0;
    for (int other = 0; other < *used; other++)
      if (item(other == o ? 3.402823466e38f : -paths[other], other) > mine) sum += counts[other];
    offsets[(size_t)a * k + c] = sum;
  }
}

// Sorts n keys, a power of two, the largest first, by the whole block.
__device__ void sort_keys(uint64 *keys, int n) {
  for (int run = 2; run <= n; run *= 2)
    for (int step = run / 2; step > 0; step /= 2) {
      __syncthreads();
      for (int i = threadIdx.x; i < n / 2; i += 256) {
        int a = 2 * i - (i & (step - 1)), b = a + step;
        uint64 x = keys[a], y = keys[b];
        if ((x < y) == ((a & run) == 0)) keys[a] = y, keys[b] = x;
      }
    }
  __syncthreads();
}

#if LAW
// The key of a rank in a draw: those with the largest ones are drawn, see SampleKey.
__device__ __forceinline__ float sample_key(int rank, float u) {
#if LAW == 1
  return u;
#else
  return (float)(-log1p((double)rank) - log(-log((double)u)));
#endif
}
#endif

// out (anchors, count). LAW: 0 the closest, 1 uniform, 2 biased. A block an anchor: it finds the smallest of the best `near` keys digit
// by digit, gathers them, sorts them and draws. room is a power of two from near on.
extern "C" __global__ void __launch_bounds__(256)
    choose_neighbours(int *out, const float *scores, const float *noise, const int *filled, const int *owner, const int *own,
        const int *used, const int *places, const int *offsets, int rows, int near, int count, int room, int k, int candidates) {
  DYNAMIC_SHARED(uint64, keys); // (room), then int rows of them (room)
  __shared__ int bins[256], found, more;
  __shared__ uint64 least;
  int *best = reinterpret_cast<int *>(keys + room);
  size_t a = blockIdx.x;
  out += a * count, scores += a * rows;
  int end = *filled, o = 0;
  bool grouped = owner && *used != 0, good = sensible(filled, rows) && end >= near;
  if (grouped) {
    o = own[a];
    good = good && sensible(used, k) && o >= 0 && o < *used;
    offsets += a * k;
  }
  if (!good) {
    for (int i = threadIdx.x; i < count; i += 256) out[i] = -1;
    return;
  }
  auto key = [&](int i) -> uint64 {
    if (grouped) {
      int c = owner[i];
      if (c < 0 || c >= *used || offsets[c] + places[i] >= candidates) return 0;
    }
    return item(scores[i], i);
  };
  // The digits of the smallest key that is kept; those below are 0 where all keys with these are kept.
  uint64 prefix = 0;
  int need = near, shift = 64;
  while (shift > 0) {
    shift -= 8;
    bins[threadIdx.x] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < end; i += 256) {
      uint64 x = key(i);
      if (shift == 56 || x >> (shift + 8) == prefix) atomicAdd(&bins[(int)(x >> shift & 255)], 1);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      int above = 0, digit = 255;
      while (digit > 0 && above + bins[digit] < need) above += bins[digit--];
      found = digit, more = need - above;
    }
    __syncthreads();
    bool whole = bins[found] == more;
    prefix = prefix << 8 | (uint64)found, need = more;
    __syncthreads();
    if (whole) break;
  }
  if (threadIdx.x == 0) least = prefix << shift, found = 0;
  for (int i = threadIdx.x; i < room; i += 256) keys[i] = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < end; i += 256) {
    uint64 x = key(i);
    if (x && x >= least) keys[atomicAdd(&found, 1)] = x; // in any order: they are sorted
  }
  sort_keys(keys, room);
#if LAW
  for (int i = threadIdx.x; i < room; i += 256) {
    best[i] = keys[i] ? ~(int)(uint32)keys[i] : -1;
    keys[i] = i < near ? item(sample_key(i, noise[a * near + i]), i) : 0;
  }
  sort_keys(keys, room);
  for (int i = threadIdx.x; i < room; i += 256) keys[i] = i < count ? (uint64)(uint32)keys[i] : 0; // the lower rank first
  sort_keys(keys, room);
  for (int i = threadIdx.x; i < count; i += 256) out[i] = best[~(int)(uint32)keys[i]];
#else
  for (int i = threadIdx.x; i < count; i += 256) out[i] = keys[i] ? ~(int)(uint32)keys[i] : -1;
#endif
}
