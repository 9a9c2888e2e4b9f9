// Kernels of the reasoning over the graph of the nodes of each pair, behind those of vectors.cu. Node i of those that take part,
// n of a pair, is node_of(i) of all of it; edges between them are rows of 1 + ql values. With first only the first node, the
// whole, looks at the others: that of the last step, whose other results nothing reads.

#define DEPTH 16
#define ACROSS 128 // threads of small_product

__device__ __forceinline__ int count_nodes(const Pair &p) { return 1 + p.r1 - p.r0; }
__device__ __forceinline__ int node_of(const Pair &p, int i) { return i == 0 ? 0 : p.r0 + i; }

// Parts of the factors of small_product: 32 rows of one, 64 columns of the other.
struct __align__(16) Tiles {
  float a[DEPTH][32 + 4], b[DEPTH][64 + 4];
};

// put(i, j, sum_k a(i, k) b(k, j)) for factors (m, k) and (k, n), in float32. DEEP says of a factor whether neighbours along k
// are neighbours in memory. A thread of ACROSS makes 4 x 4 values at a time.
template <bool DEEP_A, bool DEEP_B, class A, class B, class Put>
__device__ void small_product(Tiles &t, int m, int n, int depth, A a, B b, Put put) {
  int row = threadIdx.x / 16 * 4, col = threadIdx.x % 16 * 4;
  for (int i0 = 0; i0 < m; i0 += 32)
    for (int j0 = 0; j0 < n; j0 += 64) {
      float sum[4][4] = {};
      for (int k0 = 0; k0 < depth; k0 += DEPTH) {
        __syncthreads(); // all have read what was there
        for (int at = threadIdx.x; at < 32 * DEPTH; at += ACROSS) {
          int i = DEEP_A ? at / DEPTH : at % 32, k = DEEP_A ? at % DEPTH : at / 32;
          t.a[k][i] = i0 + i < m && k0 + k < depth ? a(i0 + i, k0 + k) : 0.f;
        }
        for (int at = threadIdx.x; at < 64 * DEPTH; at += ACROSS) {
          int j = DEEP_B ? at / DEPTH : at % 64, k = DEEP_B ? at % DEPTH : at / 64;
          t.b[k][j] = j0 + j < n && k0 + k < depth ? b(k0 + k, j0 + j) : 0.f;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
          float x[4], y[4];
          load4(x, t.a[k], row);
          load4(y, t.b[k], col);
#pragma unroll
          for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 4; j++) sum[i][j] += x[i] * y[j];
        }
      }
      for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
          if (i0 + row + i < m && j0 + col + j < n) put(i0 + row + i, j0 + col + j, sum[i][j]);
    }
}

// What values of nodes have for those that take no part: 0. A row has ld values, of which size count.
template <class T> __device__ void clear_nodes(T *x, const Pair &p, int size, int ld) {
  EACH_NODE(j, p) {
    if (is_node(p, j)) continue;
    EACH_COLUMN(c, 0, size) x[(size_t)j * ld + c] = from_float<T>(0.f);
  }
}

// edges = softmax(query key^T) and mixed = edges nodes, of the nodes of each pair.
extern "C" __global__ void mix_nodes(float *edges, D *mixed, const float *query, const float *key, const float *nodes, PAIRS,
    int size, int ldm, int first) {
  __shared__ Tiles t;
  Pair p = PAIR;
  size_t at = (size_t)blockIdx.x * (ql + 1);
  edges += at * (ql + 1), mixed += at * ldm, query += at * size, key += at * size, nodes += at * size;
  int n = count_nodes(p), m = first ? 1 : n, lde = ql + 1;
  auto node = [&](int i) { return (size_t)node_of(p, i); };
  small_product<true, true>(
      t, m, n, size, [&](int i, int k) { return query[node(i) * size + k]; },
      [&](int k, int j) { return key[node(j) * size + k]; },
      [&](int i, int j, float v) { edges[(size_t)i * lde + j] = v; });
  __syncthreads();
  for (int i = threadIdx.x / WARP; i < m; i += ACROSS / WARP) {
    float *e = edges + (size_t)i * lde, top = -INFINITY_F, sum = 0;
    EACH_COLUMN(j, 0, n) top = fmaxf(top, e[j]);
    top = warp_max(top);
    EACH_COLUMN(j, 0, n) sum += e[j] = expf(e[j] - top);
    sum = 1 / warp_sum(sum);
    EACH_COLUMN(j, 0, n) e[j] *= sum;
  }
  __syncthreads();
  small_product<true, false>(
      t, m, size, n, [&](int i, int k) { return edges[(size_t)i * lde + k]; },
      [&](int k, int j) { return nodes[node(k) * size + j]; },
      [&](int i, int j, float v) { mixed[node(i) * ldm + j] = from_float<D>(v); });
  if (!first) clear_nodes(mixed, p, size, ldm);
}

// Back through mix_nodes from dmixed: dnodes are the gradients of nodes through the mix. slopes is room like edges.
extern "C" __global__ void mix_slopes(float *dnodes, D *dquery, D *dkey, float *slopes, const float *dmixed,
    const float *edges, const float *query, const float *key, const float *nodes, PAIRS, int size, int ldh, int first) {
  __shared__ Tiles t;
  Pair p = PAIR;
  size_t at = (size_t)blockIdx.x * (ql + 1);
  edges += at * (ql + 1), slopes += at * (ql + 1), dquery += at * ldh, dkey += at * ldh;
  dnodes += at * size, dmixed += at * size, query += at * size, key += at * size, nodes += at * size;
  int n = count_nodes(p), m = first ? 1 : n, lde = ql + 1;
  auto node = [&](int i) { return (size_t)node_of(p, i); };
  small_product<true, true>(
      t, m, n, size, [&](int i, int k) { return dmixed[node(i) * size + k]; },
      [&](int k, int j) { return nodes[node(j) * size + k]; },
      [&](int i, int j, float v) { slopes[(size_t)i * lde + j] = v; });
  __syncthreads();
  for (int i = threadIdx.x / WARP; i < m; i += ACROSS / WARP) {
    const float *e = edges + (size_t)i * lde;
    float *s = slopes + (size_t)i * lde, dot = 0;
    EACH_COLUMN(j, 0, n) dot += e[j] * s[j];
    dot = warp_sum(dot);
    EACH_COLUMN(j, 0, n) s[j] = e[j] * (s[j] - dot);
  }
  __syncthreads();
  small_product<false, false>(
      t, n, size, m, [&](int i, int k) { return edges[(size_t)k * lde + i]; },
      [&](int k, int j) { return dmixed[node(k) * size + j]; },
      [&](int i, int j, float v) { dnodes[node(i) * size + j] = v; });
  small_product<true, false>(
      t, m, size, n, [&](int i, int k) { return slopes[(size_t)i * lde + k]; },
      [&](int k, int j) { return key[node(k) * size + j]; },
      [&](int i, int j, float v) { dquery[node(i) * ldh + j] = from_float<D>(v); });
  small_product<false, false>(
      t, n, size, m, [&](int i, int k) { return slopes[(size_t)k * lde + i]; },
      [&](int k, int j) { return query[node(k) * size + j]; },
      [&](int i, int j, float v) { dkey[node(i) * ldh + j] = from_float<D>(v); });
  clear_nodes(dnodes, p, size, size);
  clear_nodes(dkey, p, size, ldh);
  if (!first) clear_nodes(dquery, p, size, ldh);
}

// x = ReLU(x) of rows (n, size) that begin step rows of all apart.
extern "C" __global__ void relu(float *x, D *half, int n, int size, int ldh, int step) {
  size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x, row = at / size;
  int c = at - row * size;
  if (row >= n) return;
  row *= step;
  float v = x[row * size + c];
  v = v < 0 ? 0.f : v; // NaN stays
  x[row * size + c] = v;
  if (half) half[row * ldh + c] = from_float<D>(v);
}

// Back through relu, where out are its results: d becomes 0 where out is.
extern "C" __global__ void relu_slopes(float *d, D *half, const float *out, int n, int size, int ldh) {
  size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x, row = at / size;
  int c = at - row * size;
  if (row >= n) return;
  float v = out[at] <= 0 ? 0.f : d[at];
  d[at] = v;
  if (half) half[row * ldh + c] = from_float<D>(v);
}

// The score of a pair, sigmoid(weight . f + bias). All threads.
__device__ float score_of(const float *f, const float *weight, const float *bias, int size, float *room) {
  float dot = 0;
  for (int c = threadIdx.x; c < size; c += blockDim.x) dot += f[c] * weight[c];
  return sigmoid(block_sum(dot, room) + (bias ? *bias : 0.f));
}

// scores of pairs by the first of their nodes.
extern "C" __global__ void score_nodes(float *scores, const float *nodes, const float *weight, const float *bias, PAIRS,
    int size) {
  __shared__ float room[33];
  Pair p = PAIR;
  float y = score_of(nodes + (size_t)blockIdx.x * (ql + 1) * size, weight, bias, size, room);
  if (threadIdx.x == 0) scores[p.score] = p.checked(p.empty() ? 0.f : y);
}

// Back from the gradient dy of scores: dlogits (pairs), and the gradients of the first node of each pair before its ReLU.
extern "C" __global__ void score_nodes_slopes(float *dlogits, float *dnodes, D *half, const float *nodes, const float *weight,
    const float *bias, const float *dy, PAIRS, int size, int ldh) {
  __shared__ float room[33];
  Pair p = PAIR;
  size_t node = (size_t)blockIdx.x * (ql + 1);
  nodes += node * size, dnodes += node * size;
  float y = score_of(nodes, weight, bias, size, room), g = p.empty() ? 0.f : dy[p.score] * y * (1 - y);
  if (threadIdx.x == 0) dlogits[blockIdx.x] = g;
  for (int c = threadIdx.x; c < size; c += blockDim.x) {
    float v = nodes[c] <= 0 ? 0.f : g * weight[c];
    dnodes[c] = v;
    if (half) half[node * ldh + c] = from_float<D>(v);
  }
}
