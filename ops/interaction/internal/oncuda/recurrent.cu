// Kernels of recurrent attention with memory, behind those of cross.cu. What a pair has of its own, such as its refined queries, lies
// in matrices of rows ki rows + local + r, where rows are those of the queries of the block. D is the type of what products read.

#define UNIT_EPS 1e-8f // added to the length of a refined query

// The row of a pair that a warp works on: blocks (x, y) have the y-th rows of pair x.
#define WARP_ROW (int)(blockIdx.y * (blockDim.x / WARP) + threadIdx.x / WARP)

// tanh(x) = 1 - 2 / (exp(2 x) + 1), as the host makes it.
__device__ __forceinline__ float tanh_of(float x) { return 1.f - 2.f / (expf(2.f * x) + 1.f); }

// x_q of the next step, g x + (1 - g) u with g = sigmoid and u = tanh of gates (2 cols), which keep says to keep in their place;
// with unit x / (|x| + eps), of which lengths get |x|. half (null: not wanted) is next rounded. In the first step x are the rows of
// all queries, and first (rows, 2 cols) are to be added to gates; else first is null, and next may be x. Rows that take no part are 0.
extern "C" __global__ void refine(float *next, D *half, float *gates, float *lengths, const float *x, const float *first, PAIRS,
    int rows, int cols, int ldh, int unit, int keep) {
  Pair p = PAIR;
  int r = WARP_ROW;
  if (r >= ql) return;
  size_t row = (size_t)p.ki * rows + p.local + r;
  x += (first ? p.row + r : row) * cols, next += row * cols, half = half ? half + row * ldh : half;
  gates += row * 2 * cols, first = first ? first + (size_t)(p.local + r) * 2 * cols : first;
  if (r < p.r0 || r >= p.r1) {
    EACH_COLUMN(c, 0, cols) {
      next[c] = 0;
      if (half) half[c] = from_float<D>(0.f);
    }
    return;
  }
  float squares = 0, scale = 1;
#pragma unroll 4
  EACH_COLUMN(c, 0, cols) {
    float g = gates[c], u = gates[cols + c];
    if (first) g += first[c], u += first[cols + c];
    g = sigmoid(g), u = tanh_of(u);
    if (keep) gates[c] = g, gates[cols + c] = u;
    float v = u + g * (x[c] - u);
    next[c] = v, squares += v * v;
  }
  if (unit) {
    float length = sqrtf(warp_sum(squares));
    if (LANE == 0) lengths[row] = length;
    scale = 1 / (length + UNIT_EPS);
  }
  if (!unit && !half) return;
#pragma unroll 4
  EACH_COLUMN(c, 0, cols) { // what the lane has written itself
    float v = next[c] * scale;
    next[c] = v;
    if (half) half[c] = from_float<D>(v);
  }
}

// Back through refine, of which x is the result and before what it was given: dx, the gradient of x, becomes that of before but for
// what comes through the gates, and dgates (rows of pairs, ldg) that of what g and u were made of. With first before are the rows of
// all queries.
extern "C" __global__ void gate_slopes(float *dx, D *dgates, const float *gates, const float *lengths, const float *x,
    const float *before, PAIRS, int rows, int cols, int ldg, int unit, int first) {
  Pair p = PAIR;
  int r = WARP_ROW;
  if (r >= ql) return;
  size_t row = (size_t)p.ki * rows + p.local + r;
  before += (first ? p.row + r : row) * cols, x += row * cols, dx += row * cols, gates += row * 2 * cols, dgates += row * ldg;
  if (r < p.r0 || r >= p.r1) {
    EACH_COLUMN(c, 0, cols) dx[c] = 0, dgates[c] = dgates[cols + c] = from_float<D>(0.f);
    return;
  }
  float scale = 1, along = 0, length = unit ? lengths[row] : 0;
  if (length > 0) { // x = v / (n + eps): dv = dx / (n + eps) - (x.dx / n) x
    EACH_COLUMN(c, 0, cols) along += x[c] * dx[c];
    scale = 1 / (length + UNIT_EPS), along = warp_sum(along) / length;
  }
#pragma unroll 4
  EACH_COLUMN(c, 0, cols) {
    float g = gates[c], u = gates[cols + c], d = dx[c] * scale;
    if (length > 0) d -= along * x[c];
    dx[c] = d * g;
    dgates[c] = from_float<D>(d * (before[c] - u) * g * (1 - g));
    dgates[cols + c] = from_float<D>(d * (1 - g) * (1 - u * u));
  }
}

// score_slopes of a step, of which dweights (null: none) are gradients of the weights from elsewhere. With more, gradients of a
// later step are there, to which sums, those of the products t that the score reads, and dnorms are added. In the first step d and
// dscored are those of score_slopes, of all steps; else dscored is null, and d are those of the step's own products s. attended
// (null: not wanted) are the weights as products read them. A context has kd columns of d and ka of attended.
extern "C" __global__ void step_slopes(D *d, D *dscored, D *attended, float *sums, float *mixed, float *dnorms, const float *dweights,
    const float *weights, const float *s, const float *t, const float *norms, const float *dy, PAIRS, int rows, int ldd, int kd,
    int lda, int ka, float scale, float pool, int more, int first) {
  DYNAMIC_SHARED(float, shared);
  float *slopes = shared, *column = slopes + ql * kl, *along = column + kl, *cos = along + kl, *lengths = cos + ql;
  Pair p = PAIR;
  dnorms += (size_t)p.ki * rows + p.local;
  clear_slopes(dscored, mixed, dnorms, p, ldd);
  column_norms(column, p, s);
  EACH_ROW(r, p) {
    if (attended) {
      D *to = attended + (size_t)(p.local + r) * lda + (size_t)p.ki * ka;
      EACH_COLUMN(c, 0, kl) to[c] = from_float<D>(weights[p.at + (size_t)r * ld + c]);
    }
    if (r < p.r0 || r >= p.r1) continue;
    float length, x;
    cosine(length, x, p, r, weights, mixed, t, norms[p.row + r]);
    if (LANE == 0) cos[r] = x, lengths[r] = length;
  }
  __syncthreads();
  float g = p.empty() ? 0 : dy[p.score];
  Shares shares(p, cos, pool);
  EACH_ROW(r, p) {
    if (r < p.r0 || r >= p.r1) continue;
    float dnum, dlength, dnorm, dot = 0;
    cosine_slopes(dnum, dlength, dnorm, g * shares.of(cos[r]), cos[r], lengths[r], norms[p.row + r]);
    if (LANE == 0) dnorms[r] = more ? dnorms[r] + dnorm : dnorm;
    size_t at = p.at + (size_t)r * ld;
    EACH_COLUMN(c, p.c0, p.c1) {
      float x = dnum * t[at + c] + 2 * dlength * mixed[at + c];
      if (dweights) x += dweights[at + c];
      slopes[r * kl + c] = x;
      dot += weights[at + c] * x;
    }
    dot = warp_sum(dot);
    EACH_COLUMN(c, p.c0, p.c1) {
      float w = weights[at + c], scored = more ? sums[at + c] + dnum * w : dnum * w;
      slopes[r * kl + c] = w * (slopes[r * kl + c] - dot);
      mixed[at + c] = dlength * w;
      sums[at + c] = scored;
      if (dscored) dscored[(size_t)(p.local + r) * ldd + (size_t)p.ki * kl + c] = from_float<D>(scored);
    }
  }
  __syncthreads();
  to_products(d + (size_t)p.ki * (kd - kl), p, s, slopes, column, along, scale, ldd,
              [&](int r, int c) { return first && !dscored ? sums[p.at + (size_t)r * ld + c] : 0.f; });
}

// The sum over n contexts of dgates (n, rows, ldg) to sums (rows, cols), added to those before where add says so, and rounded to
// first (rows, ldg) if it is not null.
extern "C" __global__ void sum_gates(float *sums, D *first, const D *dgates, int n, int rows, int cols, int ldg, int add) {
  int c = blockIdx.y * blockDim.x + threadIdx.x;
  if (c >= cols) return;
  size_t row = blockIdx.x;
  float sum = 0;
#pragma unroll 4
  for (int k = 0; k < n; k++) sum += to_float(dgates[((size_t)k * rows + row) * ldg + c]);
  if (first) first[row * ldg + c] = from_float<D>(sum);
  float *to = sums + row * cols + c;
  *to = add ? *to + sum : sum;
}

// dx (rows, cols) += the sum over n contexts of those in parts (n, rows, cols).
extern "C" __global__ void sum_queries(float *dx, const float *parts, int n, int rows, int cols) {
  int c = blockIdx.y * blockDim.x + threadIdx.x;
  if (c >= cols) return;
  size_t row = blockIdx.x;
  float sum = 0;
#pragma unroll 4
  for (int k = 0; k < n; k++) sum += parts[((size_t)k * rows + row) * cols + c];
  dx[row * cols + c] += sum;
}
