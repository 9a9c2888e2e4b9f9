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

// d = the gradient of the products s through the attention, from slopes (ql, kl), those of the logits: along_c = sum_q b_qc
// slopes_qc, and so on. All threads.
__device__ void to_products(D *d, const Pair &p, const float *s, const float *slopes, const float *norms, float *along,
    float scale, int ldd) {
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
    }
    d[(size_t)r * ldd + c] = from_float<D>(x);
  }
}

// to (n, ld) = x (n, cols) rounded, with zeros from column cols on.
extern "C" __global__ void round_rows(D *to, const float *x, int64 n, int cols, int ld) {
  int64 at = (int64)blockIdx.x * blockDim.x + threadIdx.x, row = at / ld;
  int c = at - row * ld;
  if (row < n) to[at] = from_float<D>(c < cols ? x[row * cols + c] : 0.f);
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

