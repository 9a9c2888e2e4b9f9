// Kernels of the unit that attends to a memory, with those of gru.cu. Sequence k has the places of a memory (m) that count
// first, rows k m on of keys (h) and values (3h).

// How many places of its memory a sequence has; -1 for a number that is not in [0, m], which cannot be told: it makes the state
// NaN.
__device__ __forceinline__ int memory_of(const int *memory, int k,
    int m) { return memory[k] < 0 || memory[k] > m ? -1 : memory[k]; }

// rows (r l, 4h) = x (r l, 3h), reset, update and new, in packed order as [new | reset | update | ...], 0 for rows of no token.
extern "C" __global__ void pack_gates(float *rows, const float *x, const int *packing, int r, int l, int h) {
  Packing p(packing, r, l);
  int row = blockIdx.x, t = p.step(row);
  rows += (size_t)row * 4 * h;
  if (t < l) x += p.place(row - p.from[t], t, false) * 3 * h;
  for (int k = threadIdx.x; k < 3 * h; k += blockDim.x) rows[k] = t == l ? 0.f : x[k < h ? 2 * h + k : k - h];
}

// dx (r l, 3h) = the gradients (r l, 4h) of what pack_gates gives, 0 beyond the lengths. A block for each rank and place.
extern "C" __global__ void unpack_gates(float *dx, const float *rows, const int *packing, int r, int l, int h) {
  Packing p(packing, r, l);
  int i = blockIdx.x % r, t = blockIdx.x / r;
  bool token = t < p.length[i];
  dx += (token ? p.place(i, t, false) : (size_t)p.order[i] * l + t) * 3 * h;
  if (token) rows += (size_t)(p.from[t] + i) * 4 * h;
  for (int k = threadIdx.x; k < 3 * h; k += blockDim.x) dx[k] = token ? rows[k < 2 * h ? h + k : k - 2 * h] : 0.f;
}

// Step t: weights (r l, m) = p = softmax_m(score . tanh(K_m + q)) with queries q (r, h), and rows += sum_m p_m V_m. A block for
// each rank.
extern "C" __global__ void attend(float *rows, float *weights, const float *queries, const float *keys, const float *values,
    const float *score, const int *memory, const int *packing, int r, int l, int h, int m, int t) {
  DYNAMIC_SHARED(float, w); // (m)
  Packing p(packing, r, l);
  int i = blockIdx.x, lane = threadIdx.x % WARP;
  if (i >= p.alive[t]) return;
  int seq = p.order[i], n = memory_of(memory, seq, m);
  size_t at = p.from[t] + i;
  rows += at * 4 * h, weights += at * m;
  if (n < 0)
    for (int k = threadIdx.x; k < 3 * h; k += blockDim.x) rows[k] = NOT_A_NUMBER;
  if (n <= 0) return;
  keys += (size_t)seq * m * h, values += (size_t)seq * m * 3 * h, queries += (size_t)i * h;
  for (int k = threadIdx.x / WARP; k < n; k += blockDim.x / WARP) {
    float dot = 0;
    for (int j = lane; j < h; j += WARP) dot += tanh_sum(keys[(size_t)k * h + j], queries[j]) * score[j];
    dot = warp_sum(dot);
    if (lane == 0) w[k] = dot;
  }
  __syncthreads();
  float top = -INFINITY_F, sum = 0; // each warp makes them
  for (int k = lane; k < n; k += WARP) top = fmaxf(top, w[k]);
  top = warp_max(top);
  for (int k = lane; k < n; k += WARP) sum += expf(w[k] - top);
  sum = warp_sum(sum);
  __syncthreads();
  for (int k = threadIdx.x; k < n; k += blockDim.x) weights[k] = w[k] = expf(w[k] - top) / sum;
  __syncthreads();
  for (int j = threadIdx.x; j < 3 * h; j += blockDim.x) {
    const float *v = values + (j < h ? 2 * h + j : j - h);
    float add = 0;
    for (int k = 0; k < n; k++) add += w[k] * v[(size_t)k * 3 * h];
    rows[j] += add;
  }
}

#ifdef P
// half (r, ld) = the states before token t by rank, rounded, 0 for a sequence without one.
extern "C" __global__ void before_step(P *half, const float *states, const float *start, const int *packing, int r, int l,
    int h, int ld, int t) {
  Packing p(packing, r, l);
  int i = blockIdx.x;
  const float *from = 0;
  if (i < p.alive[t]) from = t > 0 ? states + p.place(i, t - 1, false) * h : start + (size_t)p.order[i] * h;
  half += (size_t)i * ld;
  for (int k = threadIdx.x; k < ld; k += blockDim.x) half[k] = from_float<P>(from && k < h ? from[k] : 0.f);
}

// Back through the attention of step t, whose gates have the gradients rows (r l, 4h): dqueries (r l, h) in packed rows, and
// rounded by rank to half (r, ld); dkeys and dvalues of the memory and dscores (r, h), the gradients of the score by rank, are
// added to.
extern "C" __global__ void attend_back(float *dqueries, P *half, float *dkeys, float *dvalues, float *dscores,
    const float *rows, const float *weights, const float *queries, const float *keys, const float *values, const float *score,
    const int *memory, const int *packing, int r, int l, int h, int m, int ld, int t) {
  DYNAMIC_SHARED(float, dp); // (m)
  Packing p(packing, r, l);
  int i = blockIdx.x, lane = threadIdx.x % WARP;
  half += (size_t)i * ld;
  if (i >= p.alive[t]) {
    for (int j = threadIdx.x; j < ld; j += blockDim.x) half[j] = from_float<P>(0.f);
    return;
  }
  int seq = p.order[i], n = max(memory_of(memory, seq, m), 0);
  size_t at = p.from[t] + i;
  rows += at * 4 * h, weights += at * m, dqueries += at * h, queries += (size_t)i * h, dscores += (size_t)i * h;
  keys += (size_t)seq * m * h, dkeys += (size_t)seq * m * h, values += (size_t)seq * m * 3 * h,
      dvalues += (size_t)seq * m * 3 * h;
  for (int k = threadIdx.x / WARP; k < n; k += blockDim.x / WARP) {
    const float *v = values + (size_t)k * 3 * h;
    float dot = 0;
    for (int j = lane; j < 3 * h; j += WARP) dot += rows[j < 2 * h ? h + j : j - 2 * h] * v[j];
    dot = warp_sum(dot);
    if (lane == 0) dp[k] = dot;
  }
  __syncthreads();
  float sum = 0; // each warp makes it
  for (int k = lane; k < n; k += WARP) sum += weights[k] * dp[k];
  sum = warp_sum(sum);
  for (int j = threadIdx.x; j < 3 * h; j += blockDim.x) {
    float d = rows[j < 2 * h ? h + j : j - 2 * h];
    for (int k = 0; k < n; k++) dvalues[(size_t)k * 3 * h + j] += weights[k] * d;
  }
  for (int j = threadIdx.x; j < ld; j += blockDim.x) {
    float dq = 0, ds = 0;
    if (j < h) {
      for (int k = 0; k < n; k++) {
        float v = tanh_sum(keys[(size_t)k * h + j], queries[j]), de = weights[k] * (dp[k] - sum), g = de * score[j] * (1 - v * v);
        ds += de * v, dq += g;
        dkeys[(size_t)k * h + j] += g;
      }
      dscores[j] += ds, dqueries[j] = dq;
    }
    half[j] = from_float<P>(dq);
  }
}

// to (rows, ld) = x (rows, n) rounded, with zeros from column n on. A block for each row.
extern "C" __global__ void round_rows(P *to, const float *x, int n, int ld) {
  to += (size_t)blockIdx.x * ld, x += (size_t)blockIdx.x * n;
  for (int k = threadIdx.x; k < ld; k += blockDim.x) to[k] = from_float<P>(k < n ? x[k] : 0.f);
}
#endif
