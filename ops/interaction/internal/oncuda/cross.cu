// Kernels of cross attention between the tokens of all pairs. A block of threads works on a pair: query q0 + qi with context k0
// + ki, whose products are rows qi ql to (qi + 1) ql and columns ki kl to (ki + 1) kl of matrices with rows of ld values. Only
// tokens from first to a sequence's length take part; the matrices that products read are 0 elsewhere. D is the type of
// what products over channels read.

#define SLOPE 0.1f // of LeakyReLU
#define EPS 1e-8f

// What all kernels of pairs are given: lengths (null: all tokens), tokens of a sequence, the first that takes part, where the
// block of pairs begins and how many contexts it has, the length of rows, and the steps of queries and contexts in the matrix
// of scores.
#define PAIRS const int *qlengths, const int *klengths, int ql, int kl, int qfirst, int kfirst, int q0, int k0, int nk, int ld, \
              int64 qstep, int64 kstep
#define PAIR Pair(qlengths, klengths, ql, kl, qfirst, kfirst, q0, k0, nk, ld, qstep, kstep)

struct Pair {
  int r0, r1, c0, c1; // tokens that take part
  int ql, kl, ld, ki;
  size_t at;    // of its products
  size_t row;   // of its queries among all
  size_t score; // of the pair
  int local;    // its first row in the block
  bool bad;     // a length is more than there are tokens: an error on the host
  __device__ Pair(PAIRS, int i = blockIdx.x) : ql(ql), kl(kl), ld(ld) {
    int qi = i / nk;
    ki = i - qi * nk;
    int q = q0 + qi, k = k0 + ki;
    r0 = qfirst, c0 = kfirst;
    int rows = qlengths ? qlengths[q] : ql, columns = klengths ? klengths[k] : kl;
    bad = rows > ql || columns > kl;
    r1 = max(r0, min(rows, ql)), c1 = max(c0, min(columns, kl));
    if (r0 == r1 || c0 == c1) r1 = r0, c1 = c0; // nothing of the pair takes part
    local = qi * ql;
    at = (size_t)local * ld + (size_t)ki * kl, row = (size_t)q * ql;
    score = q * qstep + k * kstep;
  }
  __device__ bool empty() const { return r0 == r1; }
  __device__ float checked(float score) const { return bad ? NOT_A_NUMBER : score; }
  __device__ bool has(int r, int c) const { return r >= r0 && r < r1 && c >= c0 && c < c1; }
};

#define EACH_ROW(r, p) for (int r = threadIdx.x / WARP; r < p.ql; r += blockDim.x / WARP)
#define EACH_COLUMN(c, lo, hi) for (int c = lo + LANE; c < hi; c += WARP)

__device__ __forceinline__ float leaky(float x) { return x < 0 ? x * SLOPE : x; }

// norms (kl) = |LeakyReLU(s_.c)| over the queries.
__device__ void column_norms(float *norms, const Pair &p, const float *s) {
  for (int c = p.c0 + threadIdx.x; c < p.c1; c += blockDim.x) {
    float sum = 0;
    for (int r = p.r0; r < p.r1; r++) {
      float v = leaky(s[p.at + (size_t)r * p.ld + c]);
      sum += v * v;
    }
    norms[c] = sqrtf(sum);
  }
}

// The weights of a row, softmax of scale LeakyReLU(s) / (norm + eps). A warp.
__device__ void weigh_row(float *w, const float *s, const float *norms, int c0, int c1, float scale) {
  float top = -INFINITY_F, sum = 0;
  EACH_COLUMN(c, c0, c1) top = fmaxf(top, leaky(s[c]) * (scale / (norms[c] + EPS)));
  top = warp_max(top);
  EACH_COLUMN(c, c0, c1) sum += w[c] = expf(leaky(s[c]) * (scale / (norms[c] + EPS)) - top);
  sum = 1 / warp_sum(sum);
  EACH_COLUMN(c, c0, c1) w[c] *= sum;
}

// weights = p_qk of the pair's products s.
extern "C" __global__ void weigh(float *weights, const float *s, PAIRS, float scale) {
  DYNAMIC_SHARED(float, norms); // (kl)
  Pair p = PAIR;
  column_norms(norms, p, s);
  __syncthreads();
  EACH_ROW(r, p) {
    float *w = weights + p.at + (size_t)r * ld;
    EACH_COLUMN(c, 0, kl) if (!p.has(r, c)) w[c] = 0;
    if (r >= p.r0 && r < p.r1) weigh_row(w, s + p.at + (size_t)r * ld, norms, p.c0, p.c1, scale);
  }
}

// weights = softmax of scale s over the columns with s > bound, 0 elsewhere.
extern "C" __global__ void weigh_above(float *weights, const float *s, PAIRS, float scale, const float *boundary) {
  Pair p = PAIR;
  EACH_ROW(r, p) {
    float *w = weights + p.at + (size_t)r * ld;
    const float *x = s + p.at + (size_t)r * ld;
    EACH_COLUMN(c, 0, kl) if (!p.has(r, c)) w[c] = 0;
    if (r < p.r0 || r >= p.r1) continue;
    float top = -INFINITY_F, sum = 0, bound = *boundary;
    EACH_COLUMN(c, p.c0, p.c1) top = fmaxf(top, x[c]);
    top = warp_max(top);
    EACH_COLUMN(c, p.c0, p.c1) sum += w[c] = x[c] <= bound ? 0.f : expf(scale * (x[c] - top));
    sum = warp_sum(sum);
    if (sum == 0) continue;
    EACH_COLUMN(c, p.c0, p.c1) w[c] /= sum;
  }
}

// norms = |x| of rows (n, cols), a warp each.
extern "C" __global__ void row_norms(float *norms, const float *x, int n, int cols) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / WARP;
  if (row >= n) return;
  float sum = 0;
  EACH_COLUMN(c, 0, cols) {
    float v = x[(size_t)row * cols + c];
    sum += v * v;
  }
  sum = warp_sum(sum);
  if (LANE == 0) norms[row] = sqrtf(sum);
}

// A query's |c_q|^2 = p G p, where mixed is p G, and its cosine p.s / max(|q| |c_q|, eps). A warp, of which all lanes know them.
__device__ __forceinline__ void cosine(float &length, float &cos, const Pair &p, int r, const float *weights,
    const float *mixed, const float *s, float norm) {
  size_t at = p.at + (size_t)r * p.ld;
  float l = 0, d = 0;
  EACH_COLUMN(c, p.c0, p.c1) l += weights[at + c] * mixed[at + c], d += weights[at + c] * s[at + c];
  length = fmaxf(0.f, warp_sum(l));
  cos = warp_sum(d) / fmaxf(EPS, norm * sqrtf(length));
}

// The gradients of p.s and of |c_q|^2, and of |q|^2, where d is that of the cosine.
__device__ __forceinline__ void cosine_slopes(float &dnum, float &dlength, float &dnorm, float d, float cos, float length,
    float norm) {
  float den = norm * sqrtf(length);
  dlength = dnorm = 0;
  if (den > EPS) dlength = -d * cos / (2 * length), dnorm = -d * cos / (2 * norm * norm);
  dnum = d / fmaxf(EPS, den);
}

// scores = log(sum_q exp(pool cos_q)) / pool of the pairs, or mean_q cos_q where pool is 0, added to those before where add says so.
extern "C" __global__ void score(float *scores, const float *weights, const float *mixed, const float *s, const float *norms,
    PAIRS, float pool, int add) {
  DYNAMIC_SHARED(float, cos); // (ql)
  Pair p = PAIR;
  if (p.empty()) {
    if (threadIdx.x == 0 && !add) scores[p.score] = p.checked(0);
    return;
  }
  EACH_ROW(r, p) {
    if (r < p.r0 || r >= p.r1) continue;
    float length, x;
    cosine(length, x, p, r, weights, mixed, s, norms[p.row + r]);
    if (LANE == 0) cos[r] = x;
  }
  __syncthreads();
  if (threadIdx.x >= WARP) return;
  float sum = 0, top = 0;
  if (pool == 0) {
    EACH_COLUMN(r, p.r0, p.r1) sum += cos[r];
    sum = warp_sum(sum) / (p.r1 - p.r0);
  } else {
    top = -INFINITY_F;
    EACH_COLUMN(r, p.r0, p.r1) top = fmaxf(top, pool * cos[r]);
    top = warp_max(top);
    EACH_COLUMN(r, p.r0, p.r1) sum += expf(pool * cos[r] - top);
    sum = (top + logf(warp_sum(sum))) / pool;
  }
  if (LANE == 0) scores[p.score] = p.checked(add ? scores[p.score] + sum : sum);
}

// d = the gradient of the products s through the attention, from slopes (ql, kl), those of the logits, and what add gives:
// along_c = sum_q b_qc slopes_qc, and so on. All threads.
template <class Add>
__device__ void to_products(D *d, const Pair &p, const float *s, const float *slopes, const float *norms, float *along,
    float scale, int ldd, Add add) {
  for (int c = p.c0 + threadIdx.x; c < p.c1; c += blockDim.x) {
    float sum = 0, n = norms[c];
    for (int r = p.r0; r < p.r1; r++) sum += leaky(s[p.at + (size_t)r * p.ld + c]) * slopes[r * p.kl + c];
    along[c] = n > 0 ? sum * (scale / (n + EPS)) / (n * (n + EPS)) : sum; // through the norm
  }
  __syncthreads();
  d += (size_t)p.local * ldd + (size_t)p.ki * p.kl;
  for (int k = threadIdx.x; k < p.ql * p.kl; k += blockDim.x) {
    int r = k / p.kl, c = k - r * p.kl;
    float x = 0;
    if (p.has(r, c)) {
      float v = leaky(s[p.at + (size_t)r * p.ld + c]);
      x = slopes[k] * (scale / (norms[c] + EPS)) - v * along[c];
      if (v <= 0) x *= SLOPE;
      x += add(r, c);
    }
    d[(size_t)r * ldd + c] = from_float<D>(x);
  }
}

// dscored (null where it is d) and mixed of all places of the pair that take no part are 0, and dnorms of such queries.
__device__ void clear_slopes(D *dscored, float *mixed, float *dnorms, const Pair &p, int ldd) {
  for (int k = threadIdx.x; k < p.ql * p.kl; k += blockDim.x) {
    int r = k / p.kl, c = k - r * p.kl;
    if (p.has(r, c)) continue;
    mixed[p.at + (size_t)r * p.ld + c] = 0;
    if (dscored) dscored[(size_t)(p.local + r) * ldd + (size_t)p.ki * p.kl + c] = from_float<D>(0.f);
  }
  for (int r = threadIdx.x; r < p.ql; r += blockDim.x)
    if (r < p.r0 || r >= p.r1) dnorms[r] = 0;
}

// The shares that cosines of the queries of a pair have in the gradient of its score: softmax(pool cos), or those of a mean with
// pool 0. Each warp makes the sum.
struct Shares {
  float pool, top = -INFINITY_F, sum = 0;
  int count;

  __device__ Shares(const Pair &p, const float *cos, float pool) : pool(pool), count(p.r1 - p.r0) {
    if (pool <= 0) return;
    EACH_COLUMN(r, p.r0, p.r1) top = fmaxf(top, pool * cos[r]);
    top = warp_max(top);
    EACH_COLUMN(r, p.r0, p.r1) sum += expf(pool * cos[r] - top);
    sum = warp_sum(sum);
  }

  __device__ float of(float cos) const { return pool > 0 ? expf(pool * cos - top) / sum : 1.f / count; }
};

// Back from the gradient dy of scores: d gets those of the products s that the attention reads, dscored those of the products t
// that the score does (null: both are s), mixed becomes that of G in a form of which weights^T mixed is the sum, and dnorms
// (contexts, rows) get those of |q|^2.
extern "C" __global__ void score_slopes(D *d, D *dscored, float *mixed, float *dnorms, const float *weights, const float *s,
    const float *t, const float *norms, const float *dy, PAIRS, int rows, int ldd, float scale, float pool) {
  DYNAMIC_SHARED(float, shared);
  float *slopes = shared, *column = slopes + ql * kl, *along = column + kl, *cos = along + kl, *lengths = cos + ql,
      *dnums = lengths + ql;
  Pair p = PAIR;
  dnorms += (size_t)p.ki * rows + p.local;
  clear_slopes(dscored, mixed, dnorms, p, ldd);
  column_norms(column, p, s);
  EACH_ROW(r, p) {
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
    if (LANE == 0) dnorms[r] = dnorm, dnums[r] = dnum;
    size_t at = p.at + (size_t)r * ld;
    EACH_COLUMN(c, p.c0, p.c1) {
      float x = dnum * t[at + c] + 2 * dlength * mixed[at + c];
      slopes[r * kl + c] = x;
      dot += weights[at + c] * x;
    }
    dot = warp_sum(dot);
    EACH_COLUMN(c, p.c0, p.c1) {
      float w = weights[at + c];
      slopes[r * kl + c] = w * (slopes[r * kl + c] - dot);
      mixed[at + c] = dlength * w;
      if (dscored) dscored[(size_t)(p.local + r) * ldd + (size_t)p.ki * kl + c] = from_float<D>(dnum * w);
    }
  }
  __syncthreads();
  to_products(d, p, s, slopes, column, along, scale, ldd,
              [&](int r, int c) { return dscored ? 0.f : dnums[r] * weights[p.at + (size_t)r * ld + c]; });
}

// to (n, ld) = x (n, cols) rounded, with zeros from column cols on.
extern "C" __global__ void round_rows(D *to, const float *x, int64 n, int cols, int ld) {
  int64 at = (int64)blockIdx.x * blockDim.x + threadIdx.x, row = at / ld;
  int c = at - row * ld;
  if (row < n) to[at] = from_float<D>(c < cols ? x[row * cols + c] : 0.f);
}

// dx (rows, cols) += 2 x times the sum over n contexts of the gradients dnorms (n, rows) of |x|^2. A block for each row.
extern "C" __global__ void add_norms(float *dx, const float *x, const float *dnorms, int n, int rows, int cols) {
  __shared__ float room[33];
  float sum = 0;
  for (int k = threadIdx.x; k < n; k += blockDim.x) sum += dnorms[(size_t)k * rows + blockIdx.x];
  sum = 2 * block_sum(sum, room);
  if (sum == 0) return;
  size_t at = (size_t)blockIdx.x * cols;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) dx[at + c] += sum * x[at + c];
}

// parts (gridDim.y, cols) = or, with add, += the sums over a part each of the rows of x (rows, cols), whose beginnings are ld
// apart, times weights (rows) where there are some. A block of 256 threads has 32 columns.
template <class X>
__device__ void column_parts(float *parts, const X *x, const float *weights, int rows, int cols, int64 ld, int add) {
  __shared__ float room[8][WARP];
  int c = blockIdx.x * WARP + LANE, warp = threadIdx.x / WARP, each = (rows + gridDim.y - 1) / gridDim.y;
  int end = min(rows, (int)(blockIdx.y + 1) * each);
  float sum = 0;
  if (c < cols)
#pragma unroll 8
    for (int r = blockIdx.y * each + warp; r < end; r += 8) sum += (weights ? weights[r] : 1.f) * to_float(x[r * ld + c]);
  room[warp][LANE] = sum;
  __syncthreads();
  if (warp > 0 || c >= cols) return;
  for (int w = 1; w < 8; w++) sum += room[w][LANE];
  parts += (size_t)blockIdx.y * cols + c;
  *parts = add ? *parts + sum : sum;
}

extern "C" __global__ void add_weighted(float *parts, const float *x, const float *weights, int rows, int cols, int64 ld,
    int add) {
  column_parts(parts, x, weights, rows, cols, ld, add);
}

// u = softmax of scale times products (ql, ql) of the tokens of a sequence with each other, in their place, 0 for those that
// take no part. A block for each sequence.
extern "C" __global__ void share(float *u, const int *lengths, int ql, int first, float scale) {
  int lo = first, hi = max(lo, lengths ? min(lengths[blockIdx.x], ql) : ql);
  for (int r = threadIdx.x / WARP; r < ql; r += blockDim.x / WARP) {
    float *row = u + ((size_t)blockIdx.x * ql + r) * ql, top = -INFINITY_F, sum = 0;
    bool takes = r >= lo && r < hi;
    if (takes) {
      EACH_COLUMN(c, lo, hi) top = fmaxf(top, scale * row[c]);
      top = warp_max(top);
      EACH_COLUMN(c, lo, hi) sum += row[c] = expf(scale * row[c] - top);
      sum = 1 / warp_sum(sum);
    }
    EACH_COLUMN(c, 0, ql) row[c] = takes && c >= lo && c < hi ? row[c] * sum : 0.f;
  }
}

// The largest of a row of products, and where the first of those is. A warp.
__device__ __forceinline__ float row_max(int &at, const float *x, int c0, int c1) {
  float best = -INFINITY_F;
  at = c1;
  EACH_COLUMN(c, c0, c1)
    if (x[c] > best) best = x[c], at = c;
#pragma unroll
  for (int d = 16; d > 0; d /= 2) {
    float other = __shfl_xor_sync(FULL, best, d);
    int place = __shfl_xor_sync(FULL, at, d);
    if (other > best || other == best && place < at) best = other, at = place;
  }
  if (at == c1) at = c0, best = x[c0]; // nothing but NaN or -Inf
  return best;
}

// maxima (ql) = m_q of the pair, in shared memory, and where they are.
__device__ void maxima_of(float *maxima, int *nearest, const Pair &p, const float *t, float bound) {
  EACH_ROW(r, p) {
    if (r < p.r0 || r >= p.r1) continue;
    int at;
    float best = row_max(at, t + p.at + (size_t)r * p.ld, p.c0, p.c1);
    if (LANE == 0) maxima[r] = best - bound, nearest[r] = at;
  }
  __syncthreads();
}

// Whether query r counts as mismatched: m_r < 0, or where shares of the block's queries are given the mean of m over them. A
// warp.
__device__ __forceinline__ bool mismatched(const float *maxima, const float *u, const Pair &p, int r) {
  float m = maxima[r];
  if (u) {
    float sum = 0;
    u += (size_t)(p.local + r) * p.ql;
    EACH_COLUMN(l, p.r0, p.r1) sum += u[l] * maxima[l];
    m = warp_sum(sum);
  }
  return !(m >= 0);
}

// scores = mean_q (n_q + f_q + r_q) of negative-aware attention, and the moments of the words. above are p_qk, mixed above G,
// weights w.
extern "C" __global__ void negative_score(float *scores, float *moments, const float *above, const float *mixed,
    const float *weights, const float *t, const float *norms, const float *u, const float *boundary, PAIRS) {
  DYNAMIC_SHARED(float, maxima); // (ql), sums (ql), places (ql)
  float *sums = maxima + ql;
  Pair p = PAIR;
  if (p.empty()) {
    if (threadIdx.x < 4) (threadIdx.x == 3 ? scores[p.score] : moments[3 * p.score + threadIdx.x]) = p.checked(0);
    return;
  }
  float bound = *boundary;
  maxima_of(maxima, reinterpret_cast<int *>(sums + ql), p, t, bound);
  EACH_ROW(r, p) {
    if (r < p.r0 || r >= p.r1) continue;
    float length, cos, mean = 0;
    cosine(length, cos, p, r, above, mixed, t, norms[p.row + r]);
    size_t at = p.at + (size_t)r * ld;
    EACH_COLUMN(c, p.c0, p.c1) mean += weights[at + c] * t[at + c];
    mean = warp_sum(mean);
    bool off = mismatched(maxima, u, p, r);
    if (LANE == 0) sums[r] = cos + mean + (off ? maxima[r] : 0.f);
  }
  __syncthreads();
  if (threadIdx.x >= WARP) return;
  float sum = 0;
  double first = 0, squares = 0;
  EACH_COLUMN(r, p.r0, p.r1) {
    double v = maxima[r] + bound;
    sum += sums[r], first += v, squares += v * v;
  }
  sum = warp_sum(sum), first = warp_sum_double(first), squares = warp_sum_double(squares);
  if (LANE > 0) return;
  scores[p.score] = p.checked(sum / (p.r1 - p.r0));
  float *m = moments + 3 * p.score;
  m[0] = p.checked(p.r1 - p.r0), m[1] = p.checked(first), m[2] = p.checked(squares);
}

// score_slopes for negative_score. weights are used up.
extern "C" __global__ void negative_slopes(D *d, D *dscored, float *mixed, float *dnorms, const float *above, float *weights,
    const float *s, const float *t, const float *norms, const float *u, const float *boundary, const float *dy, PAIRS, int rows,
    int ldd, float scale) {
  DYNAMIC_SHARED(float, shared);
  float *slopes = shared, *column = slopes + ql * kl, *along = column + kl, *maxima = along + kl, *dnums = maxima + ql;
  int *nearest = reinterpret_cast<int *>(dnums + ql);
  Pair p = PAIR;
  dnorms += (size_t)p.ki * rows + p.local;
  clear_slopes(dscored, mixed, dnorms, p, ldd);
  column_norms(column, p, s);
  maxima_of(maxima, nearest, p, t, *boundary);
  float g = p.empty() ? 0 : dy[p.score] / (p.r1 - p.r0);
  EACH_ROW(r, p) {
    if (r < p.r0 || r >= p.r1) continue;
    float length, cos, dnum, dlength, dnorm, dot = 0, along_w = 0;
    cosine(length, cos, p, r, above, mixed, t, norms[p.row + r]);
    cosine_slopes(dnum, dlength, dnorm, g, cos, length, norms[p.row + r]);
    bool off = mismatched(maxima, u, p, r);
    if (LANE == 0) dnorms[r] = dnorm;
    size_t at = p.at + (size_t)r * ld;
    EACH_COLUMN(c, p.c0, p.c1) {
      dot += above[at + c] * (dnum * t[at + c] + 2 * dlength * mixed[at + c]);
      along_w += weights[at + c] * g * t[at + c];
    }
    dot = warp_sum(dot), along_w = warp_sum(along_w);
    EACH_COLUMN(c, p.c0, p.c1) {
      float a = above[at + c], w = weights[at + c], x = t[at + c];
      float attended = scale * a * (dnum * x + 2 * dlength * mixed[at + c] - dot);
      float scored = dnum * a + g * w + (off && c == nearest[r] ? g : 0.f);
      slopes[r * kl + c] = w * (g * x - along_w);
      mixed[at + c] = dlength * a;
      if (dscored) dscored[(size_t)(p.local + r) * ldd + (size_t)p.ki * kl + c] = from_float<D>(scored);
      else attended += scored;
      weights[at + c] = attended;
    }
  }
  __syncthreads();
  to_products(d, p, s, slopes, column, along, scale, ldd, [&](int r, int c) { return weights[p.at + (size_t)r * ld + c]; });
}
