// Geodesic scores of rows and a pool, and their gradients, as the op's description has them:
//   s_ij = cos(min(theta_ij, limit) pi/limit),  theta_ij = E[i, owner_j] + reach_j, or a direct distance.
// SAME: columns of the row's own cluster have a direct distance. POSITIVES: which ones else have it where no path is shorter,
// 0 none, 1 the row's own key, 2 the columns with the row's id. ROUNDED: products are in bfloat16.
// An owner or a cluster of a row that is none of the K centres, and scalars that are out of range, are errors of the run on the
// host: scores that depend on them are NaN here.

#define GRAPH_PARAMETERS                                                                                                          \
  const float *f, const float *distances, const int *owner, const float *reach, const int *key_owner, const float *key_reach,     \
      const int *count, const int *members, const float *keys, const float *queue, const int *pointer, const int *cols,           \
      const int *nearest, const int *positives, int rows, int centres, int size, int batch, int width, int groups, float limit
#define READ_GRAPH                                                                                                                 \
  graph g = {f, distances, owner, reach, key_owner, key_reach, members, keys, queue, nearest, positives, rows, centres, width,     \
             groups, limit, *count, read_pool(pointer, cols, batch, size)};                                                        \
  if (!g.pool.valid || g.count < 0 || g.count > centres) g.count = -1;

struct graph {
  const float *f, *distances;
  const int *owner;
  const float *reach;
  const int *key_owner;
  const float *key_reach;
  const int *members;
  const float *keys, *queue;
  const int *nearest, *positives;
  int rows, centres, width, groups;
  float limit;
  int count; // -1: a scalar is out of range
  pool_state pool;

  __device__ __forceinline__ int owner_of(int j) const {
    int k = pool.of(key_owner, owner, j);
    return k >= 0 && k < centres ? k : -1;
  }

  // theta of row i and column j of centre k through the graph.
  __device__ __forceinline__ float path(int i, int j, int k) const {
    return k < 0 ? NOT_A_NUMBER : distances[(size_t)i * centres + k] + pool.of(key_reach, reach, j);
  }

  __device__ __forceinline__ float score(float theta) const {
    theta = fabsf(theta);
    if (theta > limit) theta = limit;
    return cospif(theta / limit);
  }

  // dy times the slope of score, 0 where the path is cut.
  __device__ __forceinline__ float slope(float theta, float dy) const {
    if (theta >= limit || theta <= -limit) return 0.f;
    return -dy * sinpif(theta / limit) * (3.14159265358979f / limit);
  }

  __device__ __forceinline__ const float *column(int j) const { return pool.row(keys, queue, j, width); }

  // The first positive column of row i, and the one after j; -1: none.
  __device__ __forceinline__ int first_positive(int i) const {
#if POSITIVES == 2
    return positives[i];
#else
    int j = (pool.pointer + i) % pool.size;
    return j < pool.cols ? j : -1;
#endif
  }

  __device__ __forceinline__ int next_positive(int j) const {
#if POSITIVES == 2
    return positives[rows + j];
#else
    return -1;
#endif
  }
};

// Calls visit(j, y, separation, positive) for the columns of row i with a direct distance, x being its features: all lanes of warp w
// of so many share the work of a column. Without a graph these are all columns.
template <class Visit> __device__ __forceinline__ void each_direct(const graph &g, int i, const float *x, int w, int warps, Visit visit) {
  if (g.count == 0) {
    for (int j = w; j < g.pool.cols; j += warps) {
      const float *y = g.column(j);
#if SPACE == 2
      visit(j, y, separation(x, y, g.width, g.groups), false);
#else
      visit(j, y, 0.f, false); // cosines need none
#endif
    }
    return;
  }
#if SAME
  int own = g.nearest[i];
  if (own < 0 || own >= g.centres) return;
  for (int p = g.members[own] + w; p < g.members[own + 1]; p += warps) {
    int j = g.members[g.centres + 1 + p];
    const float *y = g.column(j);
    visit(j, y, separation(x, y, g.width, g.groups), false);
  }
#endif
#if POSITIVES
  int t = 0;
  for (int j = g.first_positive(i); j >= 0; j = g.next_positive(j), t++) {
    if (t % warps != w) continue;
    int k = g.owner_of(j);
#if SAME
    if (k == own) continue; // has its distance already
#endif
    const float *y = g.column(j);
    float s = separation(x, y, g.width, g.groups);
    if (k >= 0 && !(g.path(i, j, k) < distance_of(s))) visit(j, y, s, true);
  }
#endif
}

// How many rows a thread of path_scores has for its column.
#define PATH_ROWS 8

// Scores by the paths through the graph, 0 in columns that do not exist. across blocks of 256 columns lie side by side.
extern "C" __global__ void path_scores(float *out, int across, GRAPH_PARAMETERS) {
  READ_GRAPH
  if (g.count == 0) return;
  int j = blockIdx.x % across * 256 + threadIdx.x, from = blockIdx.x / across * PATH_ROWS;
  if (j >= size) return;
  bool exists = j < g.pool.cols;
  int k = g.count > 0 && exists ? g.owner_of(j) : -1;
  float here = k >= 0 ? g.pool.of(key_reach, reach, j) : NOT_A_NUMBER;
  for (int i = from; i < min(from + PATH_ROWS, rows); i++) {
    float s = 0.f;
    if (exists || g.count < 0) {
      s = g.score((k >= 0 ? distances[(size_t)i * centres + k] : 0.f) + here);
#if SAME
      if (nearest[i] < 0 || nearest[i] >= centres) s = NOT_A_NUMBER;
#endif
    }
    out[(size_t)i * size + j] = s;
  }
}

// Scores of the columns with a direct distance where there is a graph: `splits` blocks of 256 threads for a row.
extern "C" __global__ void direct_scores(float *out, int splits, GRAPH_PARAMETERS) {
  READ_GRAPH
  if (g.count <= 0) return;
  int i = blockIdx.x / splits, w = blockIdx.x % splits * 8 + threadIdx.x / WARP;
  each_direct(g, i, f + (size_t)i * width, w, 8 * splits, [&](int j, const float *, float s, bool) {
    if (threadIdx.x % WARP == 0) out[(size_t)i * size + j] = g.score(distance_of(s));
  });
}

struct pool_rows {
  const graph &g;
  __device__ __forceinline__ const float *operator()(int j) const { return j < g.pool.cols ? g.column(j) : nullptr; }
};

// Scores without a graph: cosines, on a product of spheres their mean; in a Euclidean space those of the distances. Tiles of 64 x 64,
// across of them side by side.
extern "C" __global__ void plain_scores(float *out, int across, GRAPH_PARAMETERS) {
  READ_GRAPH
  if (g.count != 0) return;
  int row0 = blockIdx.x / across * TILE, col0 = blockIdx.x % across * TILE;
  float acc[4][4];
  tile_pairs<ROUNDED && SPACE != 2>(acc, f, rows, row0, pool_rows{g}, col0, width);
  row0 += threadIdx.x / 16 * 4, col0 += threadIdx.x % 16 * 4;
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) {
      if (row0 + i >= rows || col0 + j >= size) continue;
      float s = acc[i][j];
      if (SPACE == 1) s *= 1.f / groups;
      if (SPACE == 2) s = g.score(sqrtf(finite(s)));
      out[(size_t)(row0 + i) * size + col0 + j] = col0 + j < g.pool.cols ? s : 0.f;
    }
}

// df (rows, width), through the columns with a direct distance, by a block for each row: its warps share the columns and are added
// up in their order. Without a graph on spheres the gradient is that of cosines. taken tells path_gradient which positives have a
// direct distance: the column, -1 for none, or with ids a bit for each column in `words` words.
extern "C" __global__ void direct_gradient(float *df, int *taken, int words, const float *dy, GRAPH_PARAMETERS) {
  READ_GRAPH
  DYNAMIC_SHARED(float, x); // the row, then a sum for each warp
  int i = blockIdx.x, w = threadIdx.x / WARP, warps = blockDim.x / WARP;
  float *sums = x + width, *own = sums + (size_t)w * width;
  for (int c = threadIdx.x; c < width; c += blockDim.x) x[c] = f[(size_t)i * width + c];
  for (int c = threadIdx.x; c < warps * width; c += blockDim.x) sums[c] = 0.f;
#if POSITIVES == 1
  if (threadIdx.x == 0) taken[i] = -1;
#elif POSITIVES == 2
  taken += (size_t)i * words;
  for (int c = threadIdx.x; c < words; c += blockDim.x) taken[c] = 0;
#endif
  dy += (size_t)i * size;
  __syncthreads();
  if (g.count >= 0) {
    each_direct(g, i, x, w, warps, [&](int j, const float *y, float s, bool positive) {
#if SPACE != 2
      if (g.count == 0) {
        float v = factor<ROUNDED>(dy[j]);
        for (int c = threadIdx.x % WARP; c < width; c += WARP) own[c] += v * factor<ROUNDED>(y[c]);
        return;
      }
#endif
      add_gradient(own, g.slope(distance_of(s), dy[j]), x, y, s, width, groups);
      if (positive && threadIdx.x % WARP == 0) {
#if POSITIVES == 1
        taken[i] = j;
#elif POSITIVES == 2
        atomicOr(taken + j / 32, 1 << j % 32);
#endif
      }
    });
  }
  __syncthreads();
  for (int c = threadIdx.x; c < width; c += blockDim.x) {
    float s = g.count < 0 ? NOT_A_NUMBER : 0.f;
    for (int k = 0; k < warps; k++) s += sums[(size_t)k * width + c];
    if (SPACE == 1 && g.count == 0) s *= 1.f / groups;
    df[(size_t)i * width + c] = s;
  }
}

// de (rows, centres): the sum of the slopes over the columns of a centre, without those that have a direct distance. A warp computes
// a sum.
extern "C" __global__ void path_gradient(float *de, const int *taken, int words, const float *dy, GRAPH_PARAMETERS) {
  READ_GRAPH
  size_t at = (size_t)blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP;
  if (at >= (size_t)rows * centres) return;
  int i = (int)(at / centres), k = (int)(at % centres);
  float sum = g.count < 0 ? NOT_A_NUMBER : 0.f;
  bool direct = g.count <= 0;
#if SAME
  direct = direct || k == nearest[i];
#endif
  if (!direct) {
    float e = distances[at];
    dy += (size_t)i * size;
    for (int p = members[k] + threadIdx.x % WARP; p < members[k + 1]; p += WARP) {
      int j = members[centres + 1 + p];
#if POSITIVES == 1
      if (j == taken[i]) continue;
#elif POSITIVES == 2
      if (taken[(size_t)i * words + j / 32] >> j % 32 & 1) continue;
#endif
      sum += g.slope(e + g.pool.of(key_reach, reach, j), dy[j]);
    }
    sum = warp_sum(sum);
  }
  if (threadIdx.x % WARP == 0) de[at] = sum;
}
