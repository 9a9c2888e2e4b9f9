// Losses of scores s (B, B), in which row i and column i are a pair, in double as on the host: what is on which side of a margin
// must be the same. A block of 128 threads takes a row. ids (null: none) say which pairs are no negatives of each other.

struct Scores {
  const float *s; // the row
  const int *ids;
  int i, n;

  __device__ __forceinline__ bool matches(int j) const { return j == i || (ids && ids[j] == ids[i]); }
};

__device__ __forceinline__ Scores scores_of(const float *s, const int *ids, int n) {
  int i = blockIdx.x;
  return Scores{s + (int64)i * n, ids, i, n};
}

// The first largest of the values that a row's threads offer, and its place, -1 without any, in all threads of the block.
struct First {
  float value;
  int at;

  __device__ __forceinline__ void offer(float v, int j) {
    if (j >= 0 && (at < 0 || v > value || (v == value && j < at))) value = v, at = j;
  }

  __device__ __forceinline__ void merge() {
    __shared__ float values[32];
    __shared__ int places[32];
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
#pragma unroll
    for (int d = 16; d > 0; d /= 2) {
      float v = __shfl_xor_sync(FULL, value, d);
      int j = __shfl_xor_sync(FULL, at, d);
      offer(v, j);
    }
    __syncthreads();
    if (lane == 0) values[warp] = value, places[warp] = at;
    __syncthreads();
    for (int w = 0; w < warps; w++) offer(values[w], places[w]);
  }
};

// The hardest negative of a row.
__device__ __forceinline__ First hardest(const Scores &r) {
  First best = {0.f, -1};
  for (int j = threadIdx.x; j < r.n; j += blockDim.x)
    if (!r.matches(j)) best.offer(r.s[j], j);
  best.merge();
  return best;
}

// out = sum of n values. One block.
extern "C" __global__ void __launch_bounds__(1024) total(float *out, const double *partial, int n) {
  double sum = block_total(partial, n);
  if (threadIdx.x == 0) out[0] = (float)sum;
}

// Hinge: how far each negative is beyond margin + s_ij - s_ii > 0, all of them or the hardest alone.
extern "C" __global__ void hinge(double *partial, const float *s, const float *only_hardest, const int *ids, int n,
                                 double margin) {
  Scores r = scores_of(s, ids, n);
  double own = r.s[r.i], sum = 0;
  if (only_hardest[0] != 0.f) {
    First most = hardest(r);
    if (most.at >= 0 && margin + most.value - own > 0) sum = margin + most.value - own;
  } else {
    for (int j = threadIdx.x; j < n; j += blockDim.x) {
      double v = margin + r.s[j] - own;
      if (v > 0 && !r.matches(j)) sum += v;
    }
    sum = block_sum_double(sum);
  }
  if (threadIdx.x == 0) partial[r.i] = sum;
}

extern "C" __global__ void hinge_ds(float *ds, const float *s, const float *only_hardest, const int *ids, const float *dy,
                                    int n, double margin) {
  Scores r = scores_of(s, ids, n);
  double own = r.s[r.i], count = 0;
  float g = dy[0], *out = ds + (int64)r.i * n;
  int only = -1;
  bool all = only_hardest[0] == 0.f;
  if (!all) {
    First most = hardest(r);
    if (most.at >= 0 && margin + most.value - own > 0) only = most.at;
  }
  for (int j = threadIdx.x; j < n; j += blockDim.x) {
    bool violates = all ? margin + r.s[j] - own > 0 && !r.matches(j) : j == only;
    count += violates;
    if (j != r.i) out[j] = violates ? g : 0.f * g;
  }
  count = block_sum_double(count);
  if (threadIdx.x == 0) out[r.i] = -(float)count * g;
}

// Poly: the row's own score p and its hardest negative, -1 where the row has no loss.
struct Pair {
  double p, n;
  int at;
};

__device__ __forceinline__ Pair pair_of(const Scores &r, double margin, double most) {
  First best = hardest(r);
  Pair x = {r.s[r.i], best.value, best.at};
  if (x.at >= 0 && (x.n + margin <= x.p || x.p >= most)) x.at = -1;
  return x;
}

__device__ __forceinline__ double poly_of(double x, double a, double b, double c) { return a + x * (b + x * c); }

// p0 to p2 and n0 to n2 are the coefficients of the polynomials of a pair and of a negative.
extern "C" __global__ void poly(double *partial, const float *s, const int *ids, int n, double margin, double most, double p0,
                                double p1, double p2, double n0, double n1, double n2) {
  Scores r = scores_of(s, ids, n);
  Pair x = pair_of(r, margin, most);
  if (threadIdx.x == 0) partial[r.i] = x.at < 0 ? 0. : fmax(0., poly_of(x.p, p0, p1, p2)) + fmax(0., poly_of(x.n, n0, n1, n2));
}

extern "C" __global__ void poly_ds(float *ds, const float *s, const int *ids, const float *dy, int n, double margin,
                                   double most, double p0, double p1, double p2, double n0, double n1, double n2) {
  Scores r = scores_of(s, ids, n);
  Pair x = pair_of(r, margin, most);
  float g = dy[0], *out = ds + (int64)r.i * n;
  for (int j = threadIdx.x; j < n; j += blockDim.x) {
    float d = 0.f;
    if (x.at >= 0 && j == r.i && poly_of(x.p, p0, p1, p2) > 0) d = (float)(p1 + 2 * p2 * x.p);
    if (x.at >= 0 && j == x.at && poly_of(x.n, n0, n1, n2) > 0) d = (float)(n1 + 2 * n2 * x.n);
    out[j] = d * g;
  }
}

// CMPM: lse = log sum_j exp(scale s_j) of a row, and 1 / its number of matches.
struct Projection {
  double lse, share, scale, eps;

  // p = softmax(scale s)_j, and the result log(p / (q_j + eps)).
  __device__ __forceinline__ double log_ratio(const Scores &r, int j, double &p) const {
    double l = scale * r.s[j] - lse;
    p = exp(l);
    return l - log((r.matches(j) ? share : 0.) + eps);
  }
};

__device__ __forceinline__ Projection project(const Scores &r, double scale, double eps) {
  __shared__ float room[33];
  float most = -INFINITY_F, least = INFINITY_F; // the largest of scale s is of either
  for (int j = threadIdx.x; j < r.n; j += blockDim.x) most = fmaxf(most, r.s[j]), least = fminf(least, r.s[j]);
  most = block_max(most, room);
  least = -block_max(-least, room);
  double top = fmax(scale * most, scale * least), sum = 0, matches = 0;
  for (int j = threadIdx.x; j < r.n; j += blockDim.x) sum += exp(scale * r.s[j] - top), matches += r.matches(j);
  sum = block_sum_double(sum);
  matches = block_sum_double(matches);
  return Projection{top + log(sum), 1 / matches, scale, eps};
}

__device__ __forceinline__ double divergence(const Scores &r, const Projection &x) {
  double sum = 0;
  for (int j = threadIdx.x; j < r.n; j += blockDim.x) {
    double p, l = x.log_ratio(r, j, p);
    sum += p * l;
  }
  return block_sum_double(sum);
}

// The loss of a row is sum_j p_j log(p_j / (q_j + eps)).
extern "C" __global__ void cmpm(double *partial, const float *s, const int *ids, int n, double scale, double eps) {
  Scores r = scores_of(s, ids, n);
  double sum = divergence(r, project(r, scale, eps));
  if (threadIdx.x == 0) partial[r.i] = sum;
}

extern "C" __global__ void cmpm_ds(float *ds, const float *s, const int *ids, const float *dy, int n, double scale, double eps) {
  Scores r = scores_of(s, ids, n);
  Projection x = project(r, scale, eps);
  double mean = divergence(r, x);
  float g = dy[0];
  for (int j = threadIdx.x; j < n; j += blockDim.x) {
    double p, l = x.log_ratio(r, j, p);
    ds[(int64)r.i * n + j] = (float)(scale * p * (l - mean)) * g;
  }
}

// Triplets: how many rows have the id of row i, itself too, for each i. A block for each row.
extern "C" __global__ void same_ids(double *same, const int *ids, int n) {
  double count = 0;
  for (int j = threadIdx.x; j < n; j += blockDim.x) count += ids[j] == ids[blockIdx.x];
  count = block_sum_double(count);
  if (threadIdx.x == 0) same[blockIdx.x] = count;
}

// The number of anchors with a triplet, or of triplets, in all threads of the block.
__device__ __forceinline__ double triplets(const double *same, int n, bool anchors) {
  double count = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    double of = (same[i] - 1) * (n - same[i]);
    count += anchors ? of > 0 : of;
  }
  return block_sum_double(count);
}

extern "C" __global__ void triplet_anchors(float *out, const double *same, int n) {
  double count = triplets(same, n, true);
  if (threadIdx.x == 0) out[0] = (float)count;
}

// The loss of a triplet by d = s_an - s_ap, or its derivative.
__device__ __forceinline__ double triplet_loss(double d, bool soft, double margin) {
  return soft ? fmax(d, 0.) + log1p(exp(-fabs(d))) : fmax(margin + d, 0.);
}

__device__ __forceinline__ double triplet_slope(double d, bool soft, double margin) {
  return soft ? 1 / (1 + exp(-d)) : margin + d > 0 ? 1. : 0.;
}

// The farthest positive and the nearest negative of an anchor.
__device__ __forceinline__ void hardest_triplet(const Scores &r, First &p, First &n) {
  p = n = First{0.f, -1};
  for (int j = threadIdx.x; j < r.n; j += blockDim.x)
    if (!r.matches(j))
      n.offer(r.s[j], j);
    else if (j != r.i)
      p.offer(-r.s[j], j);
  p.merge();
  n.merge();
  p.value = -p.value;
}

extern "C" __global__ void triplet(double *partial, const float *s, const int *ids, int n, bool only_hardest, bool soft,
                                   double margin) {
  Scores r = scores_of(s, ids, n);
  double sum = 0;
  if (only_hardest) {
    First far, near;
    hardest_triplet(r, far, near);
    if (far.at >= 0 && near.at >= 0) sum = triplet_loss((double)near.value - far.value, soft, margin);
  } else {
    for (int p = 0; p < n; p++) {
      if (p == r.i || ids[p] != ids[r.i]) continue;
      for (int j = threadIdx.x; j < n; j += blockDim.x)
        if (!r.matches(j)) sum += triplet_loss((double)r.s[j] - r.s[p], soft, margin);
    }
    sum = block_sum_double(sum);
  }
  if (threadIdx.x == 0) partial[r.i] = sum;
}

// out = the sum of the anchors' losses over the number of anchors or of triplets. One block.
extern "C" __global__ void __launch_bounds__(1024) triplet_mean(float *out, const double *partial, const double *same, int n,
                                                                bool only_hardest) {
  double sum = block_total(partial, n), over = fmax(triplets(same, n, only_hardest), 1.);
  if (threadIdx.x == 0) out[0] = (float)(sum / over);
}

extern "C" __global__ void triplet_ds(float *ds, const float *s, const int *ids, const float *dy, const double *same, int n,
                                      bool only_hardest, bool soft, double margin) {
  Scores r = scores_of(s, ids, n);
  double g = dy[0] / fmax(triplets(same, n, only_hardest), 1.);
  First far = {0.f, -1}, near = far;
  if (only_hardest) hardest_triplet(r, far, near);
  double one = far.at >= 0 && near.at >= 0 ? g * triplet_slope((double)near.value - far.value, soft, margin) : 0;
  for (int j = threadIdx.x; j < n; j += blockDim.x) {
    double d = 0;
    if (only_hardest) {
      d = far.at < 0 || near.at < 0 ? 0. : j == near.at ? one : j == far.at ? -one : 0.;
    } else if (!r.matches(j)) {
      for (int p = 0; p < n; p++)
        if (p != r.i && ids[p] == ids[r.i]) d += g * triplet_slope((double)r.s[j] - r.s[p], soft, margin);
    } else if (j != r.i) {
      for (int k = 0; k < n; k++)
        if (!r.matches(k)) d -= g * triplet_slope((double)r.s[k] - r.s[j], soft, margin);
    }
    ds[(int64)r.i * n + j] = (float)d;
  }
}

// Says whether score b is the worse one: the smaller on the diagonal, else the larger.
__device__ __forceinline__ bool second_is_worse(float a, float b, bool right) { return right ? b < a : b > a; }

extern "C" __global__ void worst(float *out, const float *a, const float *b, int64 size, int n) {
  int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < size) out[i] = second_is_worse(a[i], b[i], i / n == i % n) ? b[i] : a[i];
}

extern "C" __global__ void worst_dx(float *da, float *db, const float *a, const float *b, const float *dy, int64 size, int n) {
  int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= size) return;
  bool second = second_is_worse(a[i], b[i], i / n == i % n);
  da[i] = second ? 0.f : dy[i], db[i] = second ? dy[i] : 0.f;
}

// The hinge of a right and a wrong score, NaN where either is.
__device__ __forceinline__ double violation(float p, float n, double margin) {
  double v = margin - p + n;
  return v > 0 || v != v ? v : 0.;
}

// out = sum_r w_r (margin - p_r + n_r)_+ / sum_r w_r. One block.
extern "C" __global__ void __launch_bounds__(1024) margin_loss(float *out, const float *p, const float *n, const float *w,
                                                               int rows, double margin) {
  double sum = 0, all = 0;
  for (int r = threadIdx.x; r < rows; r += blockDim.x)
    if (w[r] > 0.f) sum += w[r] * violation(p[r], n[r], margin), all += w[r];
  sum = block_sum_double(sum);
  all = block_sum_double(all);
  if (threadIdx.x == 0) out[0] = all > 0 ? (float)(sum / all) : 0.f;
}

// One block.
extern "C" __global__ void __launch_bounds__(1024) margin_dp(float *dp, float *dn, const float *p, const float *n,
                                                             const float *w, const float *dy, int rows, double margin) {
  double all = 0;
  for (int r = threadIdx.x; r < rows; r += blockDim.x) all += fmaxf(0.f, w[r]);
  all = block_sum_double(all);
  for (int r = threadIdx.x; r < rows; r += blockDim.x) {
    float d = 0.f;
    if (w[r] > 0.f && !(violation(p[r], n[r], margin) <= 0)) d = dy[0] * (float)(w[r] / all);
    dp[r] = -d, dn[r] = d;
  }
}
