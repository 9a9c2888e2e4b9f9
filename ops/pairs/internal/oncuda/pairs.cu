// Values of a block of pairs. Rows and columns of a matrix stand for one (0), each sequence (1) or each token (2) of queries and of
// contexts; sequence i has tokens i len to i len + n, where its n is spans[3 + 2 i], and what belongs to none is 0. A grid is 3 times
// the axis of rows and that of columns.

#define EQUAL 1e-5f // weights that differ by this part of them are equal

#define BLOCK const int *rspans, const int *cspans, int rlen, int clen, int rtokens, int ctokens, int rsequences, int csequences
#define SIDES Side rows{rspans, rlen, rtokens, rsequences}, columns{cspans, clen, ctokens, csequences}

struct Side {
  const int *spans;
  int len, tokens, sequences;
  __device__ int size(int axis) const { return axis == 3 ? tokens + sequences : axis == 2 ? tokens : axis == 1 ? sequences : 1; }
  __device__ int count(int sequence) const { return spans[3 + 2 * sequence]; }
  // Of what value x of an axis is, and whether that is there.
  __device__ int sequence(int axis, int x) const { return axis == 3 ? x / (len + 1) : axis == 2 ? x / len : x; }
  __device__ bool has(int axis, int x) const {
    if (axis == 0) return true;
    int s = sequence(axis, x);
    return axis == 3 ? count(s) > 0 && x - s * (len + 1) <= count(s) : axis == 2 ? x - s * len < count(s) : count(s) > 0;
  }
  // The value of a coarser axis for value x of another.
  __device__ int coarse(int to, int axis, int x) const { return to == axis ? x : to == 0 ? 0 : sequence(axis, x); }
  // How many values of axis are value x of a coarser one.
  __device__ int range(int axis, int to, int x, int &from) const {
    if (axis == to) return from = x, 1;
    if (to == 1) return from = x * len, count(x);
    return from = 0, size(axis);
  }
};

__device__ __forceinline__ float times(float a, float b, float, float, float) { return a * b; }
__device__ __forceinline__ float plus(float a, float b, float, float p, float q) { return p * a + q * b; }
__device__ __forceinline__ float same(float a, float, float, float, float) { return a; }
__device__ __forceinline__ float scaled_product(float a, float b, float, float p, float) { return p * b * a; }

// Functions of x and their gradients for x, the value y and its gradient dy.
__device__ __forceinline__ float leaky(float x, float, float, float p, float) { return x > 0 ? x : p * x; }
__device__ __forceinline__ float leaky_slope(float x, float, float dy, float p, float) { return x > 0 ? dy : p * dy; }
__device__ __forceinline__ float below(float x, float y, float, float, float) { return y >= 0 ? 0.f : x; }
__device__ __forceinline__ float softplus(float x, float, float, float p, float) { return fmaxf(p * x, 0.f) + log1pf(expf(-fabsf(p * x))); }
__device__ __forceinline__ float softplus_slope(float x, float, float dy, float p, float) { return p * dy / (1 + expf(-p * x)); }
__device__ __forceinline__ float logistic(float x, float, float, float p, float) { return 1 / (1 + expf(-p * x)); }
__device__ __forceinline__ float logistic_slope(float, float y, float dy, float p, float) { return p * dy * y * (1 - y); }
__device__ __forceinline__ float inverse_root(float x, float, float, float p, float) { return 1 / (sqrtf(x) + p); }
__device__ __forceinline__ float inverse_root_slope(float x, float y, float dy, float, float) {
  return x == 0 ? 0.f : -dy * y * y / (2 * sqrtf(x));
}
__device__ __forceinline__ float scale(float x, float, float, float p, float) { return p * x; }
__device__ __forceinline__ float scale_slope(float, float, float dy, float p, float) { return p * dy; }
__device__ __forceinline__ float exponential(float x, float, float, float p, float) { return expf(p * x); }
__device__ __forceinline__ float exponential_slope(float, float y, float dy, float p, float) { return p * (dy * y); }
// x / max(sqrt(l k), p), and the gradient of l from x = cosine times its gradient. NaN stays.
__device__ __forceinline__ float cosine(float x, float l, float k, float p, float) {
  float n = sqrtf(l) * sqrtf(k);
  return x / (n < p ? p : n);
}
__device__ __forceinline__ float cosine_or_zero(float x, float l, float k, float p, float) {
  float n = sqrtf(l) * sqrtf(k);
  return n <= p ? 0.f : x / n;
}
__device__ __forceinline__ float cosine_slope(float x, float l, float k, float p, float) {
  return sqrtf(l) * sqrtf(k) > p ? -x / (2 * l) : 0.f;
}

#ifdef F
// out = or += F(a, b, c), each of a grid of its own that is broadcast to g, with mean times the share of a token in a mean.
extern "C" __global__ void __launch_bounds__(256) elements(float *out, const float *a, const float *b, const float *c, int g, int ga,
    int gb, int gc, int mean, float p, float q, int add, BLOCK) {
  SIDES;
  int n = columns.size(g % 3);
  int64 i = (int64)blockIdx.x * 256 + threadIdx.x;
  if (i >= (int64)rows.size(g / 3) * n) return;
  int r = i / n, k = i - (int64)r * n;
  auto at = [&](const float *x, int h) {
    return x ? x[(int64)rows.coarse(h / 3, g / 3, r) * columns.size(h % 3) + columns.coarse(h % 3, g % 3, k)] : 0.f;
  };
  float v = 0;
  if (rows.has(g / 3, r) && columns.has(g % 3, k)) {
    v = F(at(a, ga), at(b, gb), at(c, gc), p, q);
    if (mean && g / 3 == 2 && ga / 3 == 1) v /= rows.count(rows.sequence(2, r));
    if (mean && g % 3 == 2 && ga % 3 == 1) v /= columns.count(columns.sequence(2, k));
  }
  out[i] = add ? out[i] + v : v;
}
#endif

// out (h) = the sums, or means, of x y (g), 1 in the place of what is null, not below 0 with clamp. A warp for each sum over columns,
// else a thread.
extern "C" __global__ void __launch_bounds__(256) sums(float *out, const float *x, const float *y, int g, int h, int mean, int clamp,
    BLOCK) {
  SIDES;
  bool wide = g % 3 != h % 3;
  int n = columns.size(h % 3), ld = columns.size(g % 3), step = wide ? WARP : 1;
  int64 i = ((int64)blockIdx.x * 256 + threadIdx.x) / step;
  if (i >= (int64)rows.size(h / 3) * n) return;
  int r = i / n, k = i - (int64)r * n, r0, k0;
  int nr = rows.range(g / 3, h / 3, r, r0), nk = columns.range(g % 3, h % 3, k, k0);
  float sum = 0;
  for (int p = r0; p < r0 + nr; p++)
    for (int q = k0 + (wide ? LANE : 0); q < k0 + nk; q += step) sum += (x ? x[(int64)p * ld + q] : 1.f) * (y ? y[(int64)p * ld + q] : 1.f);
  if (wide) sum = warp_sum(sum);
  if (mean) sum /= max(1, (g / 3 == 2 && h / 3 == 1 ? nr : 1) * (g % 3 == 2 && h % 3 == 1 ? nk : 1));
  if (clamp && sum < 0) sum = 0;
  if (!wide || LANE == 0) out[i] = sum;
}

// A warp for each token of queries and each context, whose columns are from lo to hi of row r; false where there is none. Columns
// that belong to nothing are cleared.
__device__ bool row_of(float *&out, int64 &at, int &lo, int &hi, const Side &rows, const Side &columns) {
  int64 i = ((int64)blockIdx.x * 256 + threadIdx.x) / WARP;
  int contexts = columns.tokens / columns.len, r = i / contexts, k = i - (int64)r * contexts;
  if (r >= rows.tokens) return false;
  at = (int64)r * columns.tokens + k * columns.len;
  lo = 0, hi = rows.has(2, r) ? columns.count(k) : 0;
  for (int c = hi + LANE; c < columns.len; c += WARP) out[at + c] = 0;
  return hi > 0;
}

#define EACH_COLUMN(c, lo, hi) for (int c = lo + LANE; c < hi; c += WARP)

// out = softmax of scale x over the tokens of each context, with a bound over those above it; with focal 1 weights not above their
// mean are left out, with 2 those not above their mean weighted by their square roots. out may be x.
extern "C" __global__ void __launch_bounds__(256) softmax(float *out, const float *x, const float *bound, float scale, int focal, BLOCK) {
  SIDES;
  int64 at;
  int lo, hi;
  if (!row_of(out, at, lo, hi, rows, columns)) return;
  float *w = out + at, top = -INFINITY_F, sum = 0;
  x += at;
  EACH_COLUMN(c, lo, hi) top = fmaxf(top, scale * x[c]);
  top = warp_max(top);
  EACH_COLUMN(c, lo, hi) sum += w[c] = bound && x[c] <= *bound ? 0.f : expf(scale * x[c] - top);
  sum = warp_sum(sum);
  sum = sum == 0 ? 0 : 1 / sum;
  EACH_COLUMN(c, lo, hi) w[c] *= sum;
  if (!focal) return;
  float all = 0, roots = 0, kept = 0;
  top = -INFINITY_F;
  EACH_COLUMN(c, lo, hi) all += w[c], top = fmaxf(top, w[c]);
  float mean = warp_sum(all) / (hi - lo);
  if (!(warp_max(top) > mean * (1 + EQUAL))) return;
  if (focal == 2) {
    all = 0;
    EACH_COLUMN(c, lo, hi) all += w[c] * sqrtf(w[c]), roots += sqrtf(w[c]);
    mean = warp_sum(all) / warp_sum(roots);
  }
  EACH_COLUMN(c, lo, hi) kept += w[c] > mean ? w[c] : 0.f;
  kept = 1 / warp_sum(kept);
  EACH_COLUMN(c, lo, hi) w[c] = w[c] > mean ? w[c] * kept : 0.f;
}

// out = scale w (d - sum w d). out may be d.
extern "C" __global__ void __launch_bounds__(256) softmax_slopes(float *out, const float *w, const float *d, float scale, BLOCK) {
  SIDES;
  int64 at;
  int lo, hi;
  if (!row_of(out, at, lo, hi, rows, columns)) return;
  float dot = 0;
  out += at, w += at, d += at;
  EACH_COLUMN(c, lo, hi) dot += w[c] * d[c];
  dot = warp_sum(dot);
  EACH_COLUMN(c, lo, hi) out[c] = scale * (w[c] * (d[c] - dot));
}

// out (h) = log(sum exp(a x)) / a of x (g), with mean of the mean.
extern "C" __global__ void __launch_bounds__(256) log_sum_exp(float *out, const float *x, int g, int h, float a, int mean, BLOCK) {
  SIDES;
  int n = columns.size(h % 3), ld = columns.size(g % 3), i = blockIdx.x * 256 + threadIdx.x, r = i / n, c = i - r * n, r0, c0;
  if (r >= rows.size(h / 3)) return;
  int nr = rows.range(g / 3, h / 3, r, r0), nc = columns.range(g % 3, h % 3, c, c0);
  if (nr * nc == 0 || !rows.has(h / 3, r) || !columns.has(h % 3, c)) {
    out[i] = 0;
    return;
  }
  float top = -INFINITY_F, sum = 0;
  x += (int64)r0 * ld + c0;
  for (int p = 0; p < nr; p++)
    for (int q = 0; q < nc; q++) top = fmaxf(top, a * x[(int64)p * ld + q]);
  for (int p = 0; p < nr; p++)
    for (int q = 0; q < nc; q++) sum += expf(a * x[(int64)p * ld + q] - top);
  if (mean) sum /= nr * nc;
  out[i] = (top + logf(sum)) / a;
}

// out (h) = the maximum of x (g), and its place in x, the first of equal ones; a NaN only where it is first.
extern "C" __global__ void __launch_bounds__(256) maxima(float *out, int *places, const float *x, int g, int h, BLOCK) {
  SIDES;
  int n = columns.size(h % 3), ld = columns.size(g % 3), i = blockIdx.x * 256 + threadIdx.x, r = i / n, c = i - r * n, r0, c0;
  if (r >= rows.size(h / 3)) return;
  int nr = rows.range(g / 3, h / 3, r, r0), nc = columns.range(g % 3, h % 3, c, c0), at = -1;
  float top = 0;
  for (int p = r0; p < r0 + nr && rows.has(g / 3, p); p++)
    for (int q = c0; q < c0 + nc && columns.has(g % 3, q); q++) {
      float v = x[(int64)p * ld + q];
      if (at < 0 || v > top || top != top && v == v) top = v, at = p * ld + q;
    }
  out[i] = top, places[i] = at;
}

// out (g) = or += the gradient of maxima (h).
extern "C" __global__ void __launch_bounds__(256) max_slopes(float *out, const int *places, const float *dy, int g, int h, int add, BLOCK) {
  SIDES;
  int n = columns.size(g % 3), i = blockIdx.x * 256 + threadIdx.x, r = i / n, c = i - r * n;
  if (r >= rows.size(g / 3)) return;
  int from = rows.coarse(h / 3, g / 3, r) * columns.size(h % 3) + columns.coarse(h % 3, g % 3, c);
  float v = places[from] == i ? dy[from] : 0.f;
  out[i] = add ? out[i] + v : v;
}

// to (tokens, len) = softmaxes of scale x over the tokens of each sequence of queries, rows of as many values as it has; a warp each.
extern "C" __global__ void __launch_bounds__(256) shares(float *to, const float *x, float scale, BLOCK) {
  SIDES;
  int row = (blockIdx.x * 256 + threadIdx.x) / WARP, n = rows.len;
  if (row >= rows.tokens) return;
  int count = rows.has(2, row) ? rows.count(rows.sequence(2, row)) : 0;
  to += (int64)row * n, x += (int64)row * n;
  float top = -INFINITY_F, sum = 0;
  for (int c = LANE; c < count; c += WARP) top = fmaxf(top, scale * x[c]);
  top = warp_max(top);
  for (int c = LANE; c < n; c += WARP) sum += to[c] = c < count ? expf(scale * x[c] - top) : 0.f;
  sum = warp_sum(sum);
  for (int c = LANE; c < count; c += WARP) to[c] /= sum;
}

// A thread for each column of each sequence of queries, whose rows are from `from` on; those of padding are cleared.
__device__ bool column_of(float *out, int &s, int &c, int &n, int &from, int &count, int g, const Side &rows, const Side &columns) {
  n = columns.size(g % 3);
  int i = blockIdx.x * 256 + threadIdx.x;
  s = i / n, c = i - s * n;
  if (s >= rows.tokens / rows.len) return false;
  from = s * rows.len, count = columns.has(g % 3, c) ? rows.count(s) : 0;
  for (int r = from + count; r < from + rows.len; r++) out[(int64)r * n + c] = 0;
  return true;
}

// out = softmax of scale x over the tokens of each sequence of queries. out may be x.
extern "C" __global__ void __launch_bounds__(256) column_softmax(float *out, const float *x, int g, float scale, BLOCK) {
  SIDES;
  int s, c, n, from, count;
  if (!column_of(out, s, c, n, from, count, g, rows, columns)) return;
  float top = -INFINITY_F, sum = 0;
  out += (int64)from * n + c, x += (int64)from * n + c;
  for (int r = 0; r < count; r++) top = fmaxf(top, scale * x[(int64)r * n]);
  for (int r = 0; r < count; r++) sum += out[(int64)r * n] = expf(scale * x[(int64)r * n] - top);
  for (int r = 0; r < count; r++) out[(int64)r * n] /= sum;
}

// out = scale w (d - sum w d). out may be d.
extern "C" __global__ void __launch_bounds__(256) column_softmax_slopes(float *out, const float *w, const float *d, int g, float scale,
    BLOCK) {
  SIDES;
  int s, c, n, from, count;
  if (!column_of(out, s, c, n, from, count, g, rows, columns)) return;
  float dot = 0;
  int64 at = (int64)from * n + c;
  out += at, w += at, d += at;
  for (int r = 0; r < count; r++) dot += w[(int64)r * n] * d[(int64)r * n];
  for (int r = 0; r < count; r++) out[(int64)r * n] = scale * (w[(int64)r * n] * (d[(int64)r * n] - dot));
}

// out = a x / (|x| + eps), with norms of the columns over the tokens of each sequence of queries.
extern "C" __global__ void __launch_bounds__(256) normalise(float *out, float *norms, const float *x, int g, float a, float eps, BLOCK) {
  SIDES;
  int s, c, n, from, count;
  if (!column_of(out, s, c, n, from, count, g, rows, columns)) return;
  float sum = 0;
  for (int r = from; r < from + count; r++) sum += x[(int64)r * n + c] * x[(int64)r * n + c];
  norms[s * n + c] = sqrtf(sum);
  float factor = a / (sqrtf(sum) + eps);
  for (int r = from; r < from + count; r++) out[(int64)r * n + c] = x[(int64)r * n + c] * factor;
}

// dx from dy. dx may be dy. The difference of nearly equal terms is made in double.
extern "C" __global__ void __launch_bounds__(256) normalise_slopes(float *dx, const float *x, const float *norms, const float *dy, int g,
    float a, float eps, BLOCK) {
  SIDES;
  int s, c, n, from, count;
  if (!column_of(dx, s, c, n, from, count, g, rows, columns)) return;
  double along = 0, squares = 0;
  for (int r = from; r < from + count; r++) {
    double v = x[(int64)r * n + c];
    along += v * dy[(int64)r * n + c], squares += v * v;
  }
  if (squares > 0) along /= squares + sqrt(squares) * eps;
  float factor = a / (norms[s * n + c] + eps);
  for (int r = from; r < from + count; r++) dx[(int64)r * n + c] = factor * (float)(dy[(int64)r * n + c] - x[(int64)r * n + c] * along);
}

// out = |x|^2 of rows (n, cols), a warp each.
extern "C" __global__ void __launch_bounds__(256) squared_norms(float *out, const float *x, int n, int cols) {
  int row = (blockIdx.x * 256 + threadIdx.x) / WARP;
  if (row >= n) return;
  float sum = 0;
  EACH_COLUMN(c, 0, cols) {
    float v = x[(int64)row * cols + c];
    sum += v * v;
  }
  sum = warp_sum(sum);
  if (LANE == 0) out[row] = sum;
}

// out = or += 2 d x of rows x (., cols).
extern "C" __global__ void __launch_bounds__(256) squared_norm_slopes(float *out, const float *x, const float *d, int64 n, int cols,
    int add) {
  int64 i = (int64)blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
  float v = 2 * d[i / cols] * x[i];
  out[i] = add ? out[i] + v : v;
}

// spans of count sequences, the first of which is `from` of all.
extern "C" __global__ void __launch_bounds__(256) take_sequences(int *spans, const int *lengths, int first, int len, int from, int count,
    int tokens, int sequences) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= sequences) return;
  if (i == 0) spans[0] = tokens, spans[1] = sequences;
  int n = i < count ? lengths ? min(lengths[from + i], len) : len : 0;
  spans[2 + 2 * i] = i * len, spans[3 + 2 * i] = max(n - first, 0);
}

// Where value c of row r of the rows of a block is among all rows; false for one that belongs to nothing.
__device__ __forceinline__ bool place(int64 &at, int64 i, const int *spans, int first, int len, int from, int cols) {
  int64 row = i / cols;
  int s = row / len, t = row - (int64)s * len;
  at = (((int64)from + s) * len + first + t) * cols + (i - row * cols);
  return t < spans[3 + 2 * s];
}

// to = the rows of the block of x.
extern "C" __global__ void __launch_bounds__(256) gather_rows(float *to, const float *x, const int *spans, int first, int len, int from,
    int rows, int cols) {
  int64 i = (int64)blockIdx.x * 256 + threadIdx.x, at;
  if (i >= (int64)rows * cols) return;
  to[i] = place(at, i, spans, first, len, from, cols) ? x[at] : 0.f;
}

// to += the rows of the block.
extern "C" __global__ void __launch_bounds__(256) add_rows(float *to, const float *x, const int *spans, int first, int len, int from,
    int rows, int cols) {
  int64 i = (int64)blockIdx.x * 256 + threadIdx.x, at;
  if (i < (int64)rows * cols && place(at, i, spans, first, len, from, cols)) to[at] += x[i];
}

// to += x.
extern "C" __global__ void __launch_bounds__(256) add_values(float *to, const float *x, int64 n) {
  int64 i = (int64)blockIdx.x * 256 + threadIdx.x;
  if (i < n) to[i] += x[i];
}

#define PAIRS int value, int width, const int *rspans, const int *cspans, const int *rlengths, const int *clengths, int rlen, int clen, \
    int rfrom, int cfrom, int rcount, int ccount, int rsequences, int csequences, int rstep, int cstep

// Scores of the block to those of all, as one value of width of a pair: 0 of a pair with a sequence without a token, no number where
// a length is too large.
extern "C" __global__ void __launch_bounds__(256) give_scores(float *all, const float *block, PAIRS) {
  int i = blockIdx.x * 256 + threadIdx.x, r = i / csequences, c = i - r * csequences;
  if (r >= rcount || c >= ccount) return;
  bool bad = rlengths && rlengths[rfrom + r] > rlen || clengths && clengths[cfrom + c] > clen;
  float v = rspans[3 + 2 * r] > 0 && cspans[3 + 2 * c] > 0 ? block[i] : 0.f;
  all[((int64)(rfrom + r) * rstep + (int64)(cfrom + c) * cstep) * width + value] = bad ? NOT_A_NUMBER : v;
}

// Their gradients the other way.
extern "C" __global__ void __launch_bounds__(256) take_slopes(const float *all, float *block, PAIRS) {
  int i = blockIdx.x * 256 + threadIdx.x, r = i / csequences, c = i - r * csequences;
  if (r >= rsequences) return;
  bool has = r < rcount && c < ccount && rspans[3 + 2 * r] > 0 && cspans[3 + 2 * c] > 0;
  block[i] = has ? all[(int64)(rfrom + r) * rstep + (int64)(cfrom + c) * cstep] : 0.f;
}
