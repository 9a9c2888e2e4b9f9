// The comparison of neighbourhoods before and after a head, see kernel.go: of each of some anchors there are K points x (K, n) and
// what the head makes of them, z (K, C), with squared distances d2 (anchors, K, K) of both, scaled kernel matrices T and W, and
//
//   loss = || W - T ||_F^2,  e = scale dloss/dd2 of z,  dz_i = sum_j 2 (e_ij + e_ji) (z_i - z_j)
//
// An anchor with a missing point, whose `whole` is 0, has loss 0 and dz 0. KERNEL: 0 heat, 1 linear, 2 squared, 3 inverse;
// RELATIVE: distances are divided by their mean; PER * PER pairs of points are one thread's.
#define FLOOR 1e-12f    // least norm that is divided by
#define COINCIDE 1e-12f // of the squared norms: the squared distance up to which two points coincide
#define TILE (16 * PER)
#define STEP 16

// The sum of squares of x (n), by a warp.
__device__ __forceinline__ double warp_squares(const float *x, int n) {
  double sum = 0;
  for (int i = threadIdx.x % WARP; i < n; i += WARP) sum += (double)x[i] * (double)x[i];
  return warp_sum_double(sum);
}

// whole (anchors) = no number of near (anchors, count) is -1.
extern "C" __global__ void __launch_bounds__(256) whole_anchors(int *whole, const int *near, int anchors, int count) {
  int a = blockIdx.x * 8 + threadIdx.x / WARP;
  if (a >= anchors) return;
  bool missing = false;
  for (int i = threadIdx.x % WARP; i < count; i += WARP) missing |= near[(size_t)a * count + i] == -1;
  missing = __any_sync(FULL, missing);
  if (threadIdx.x % WARP == 0) whole[a] = !missing;
}

// x (rows, n) = rows of table (height, n) by their numbers: zeros of -1, and no numbers at all of others that are none.
extern "C" __global__ void __launch_bounds__(256) pool_rows(float *x, const float *table, const int *numbers, int64 values, int height, int n) {
  int64 i = (int64)blockIdx.x * 256 + threadIdx.x;
  if (i >= values) return;
  int64 r = i / n;
  int k = numbers[r];
  x[i] = k >= 0 && k < height ? table[(int64)k * n + (i - r * n)] : k == -1 ? 0.f : NOT_A_NUMBER;
}

// x (anchors, 1 + count, n) = anchors (anchors, n) and rows of queue (height, n) by the numbers near (anchors, count), as pool_rows.
extern "C" __global__ void __launch_bounds__(256)
    anchor_points(float *x, const float *anchors, const float *queue, const int *near, const int *whole, int64 values, int count,
        int height, int n) {
  int64 i = (int64)blockIdx.x * 256 + threadIdx.x;
  if (i >= values) return;
  int64 r = i / n, a = r / (count + 1);
  int c = (int)(i - r * n), p = (int)(r - a * (count + 1));
  float v = 0.f;
  if (whole[a]) {
    int k = p ? near[a * count + p - 1] : 0;
    v = !p ? anchors[a * n + c] : k >= 0 && k < height ? queue[(int64)k * n + c] : NOT_A_NUMBER;
  }
  x[i] = v;
}

// square (rows) = |x|^2 of points x (rows, n) as they are measured, and with unit scale (rows) = 1/|x|: a warp a point.
extern "C" __global__ void __launch_bounds__(256) point_squares(float *square, float *scale, const float *x, int rows, int n) {
  int r = blockIdx.x * 8 + threadIdx.x / WARP;
  if (r >= rows) return;
  double s = warp_squares(x + (size_t)r * n, n);
  if (threadIdx.x % WARP) return;
  if (scale) {
    double f = 1. / fmax(sqrt(s), (double)FLOOR);
    scale[r] = (float)f, s *= f * f;
  }
  square[r] = (float)s;
}

// y (groups, n) = z (groups, n) with lengths, and norms (groups), those of z: a warp a group. y may be z.
extern "C" __global__ void __launch_bounds__(256) normalise_groups(float *y, float *norms, const float *z, int groups, int n, float length) {
  int g = blockIdx.x * 8 + threadIdx.x / WARP;
  if (g >= groups) return;
  z += (size_t)g * n, y += (size_t)g * n;
  float norm = (float)sqrt(warp_squares(z, n)), f = length / fmaxf(norm, FLOOR);
  for (int i = threadIdx.x % WARP; i < n; i += WARP) y[i] = z[i] * f;
  if (threadIdx.x % WARP == 0) norms[g] = norm;
}

// dz becomes the gradient for z before normalise_groups: l/|z| (dz - y (y.dz)/l^2), a warp a group. Those of `each` are one anchor's.
extern "C" __global__ void __launch_bounds__(256)
    normalise_gradient(float *dz, const float *y, const float *norms, const int *whole, int groups, int each, int n, float length) {
  int g = blockIdx.x * 8 + threadIdx.x / WARP;
  if (g >= groups || !whole[g / each]) return; // dz is 0 there
  dz += (size_t)g * n, y += (size_t)g * n;
  float norm = norms[g], f = length / fmaxf(norm, FLOOR), along = 0.f;
  if (norm >= FLOOR) {
    for (int i = threadIdx.x % WARP; i < n; i += WARP) along += y[i] * dz[i];
    along = -f * warp_sum(along) / (length * length);
  }
  for (int i = threadIdx.x % WARP; i < n; i += WARP) dz[i] = along == 0.f ? f * dz[i] : f * dz[i] + along * y[i];
}

// d2 (anchors, K, K) of points x, each times its scale if there are scales: a block TILE x TILE pairs, which it mirrors. Points are
// scaled before they are subtracted, so that equal ones are at distance 0.
extern "C" __global__ void __launch_bounds__(256)
    point_distances(float *d2, const float *x, const float *scale, const float *square, const int *whole, int k, int n, int tiles) {
  __shared__ __align__(16) float us[STEP][TILE + 4], vs[STEP][TILE + 4];
  int a = blockIdx.x, i = blockIdx.y / tiles * TILE, j = blockIdx.y % tiles * TILE, own = threadIdx.y * 16 + threadIdx.x;
  if (i > j || !whole[a]) return;
  size_t first = (size_t)a * k;
  float all[PER][PER] = {};
  for (int from = 0; from < n; from += STEP) {
    __syncthreads();
#pragma unroll
    for (int t = 0; t < PER; t++) {
      int r = (own + t * 256) / STEP, c = own % STEP;
      bool in = from + c < n;
      us[c][r] = in && i + r < k ? x[(first + i + r) * n + from + c] * (scale ? scale[first + i + r] : 1.f) : 0.f;
      vs[c][r] = in && j + r < k ? x[(first + j + r) * n + from + c] * (scale ? scale[first + j + r] : 1.f) : 0.f;
    }
    __syncthreads();
    float sum[PER][PER] = {};
#pragma unroll
    for (int c = 0; c < STEP; c++) {
      float u[PER], v[PER];
#pragma unroll
      for (int t = 0; t < PER; t++) u[t] = us[c][PER * threadIdx.y + t], v[t] = vs[c][PER * threadIdx.x + t];
#pragma unroll
      for (int p = 0; p < PER; p++)
#pragma unroll
        for (int q = 0; q < PER; q++) {
          float d = u[p] - v[q];
          sum[p][q] += d * d;
        }
    }
#pragma unroll
    for (int p = 0; p < PER; p++)
#pragma unroll
      for (int q = 0; q < PER; q++) all[p][q] += sum[p][q];
  }
#pragma unroll
  for (int p = 0; p < PER; p++)
#pragma unroll
    for (int q = 0; q < PER; q++) {
      int u = i + PER * threadIdx.y + p, v = j + PER * threadIdx.x + q;
      if (u >= k || v >= k) continue;
      float s = all[p][q];
      if (u == v || s <= COINCIDE * (square[first + u] + square[first + v])) s = 0.f;
      d2[(first + u) * k + v] = s, d2[(first + v) * k + u] = s;
    }
}

// means (2, anchors) of the distances of x and of z over pairs of different points, 1 where all coincide: a block each.
extern "C" __global__ void __launch_bounds__(256) mean_distances(float *means, const float *x2, const float *z2, const int *whole, int k) {
  int a = blockIdx.x;
  if (!whole[a]) return;
  const float *d2 = (blockIdx.y ? z2 : x2) + (size_t)a * k * k;
  double sum = 0;
  for (int i = threadIdx.x; i < k * k; i += 256) sum += (double)d2[i];
  sum = block_sum_double(sum);
  if (threadIdx.x) return;
  float mean = k > 1 ? (float)(sum / ((double)k * (k - 1))) : 1.f;
  means[blockIdx.y * gridDim.x + a] = mean == 0.f ? 1.f : mean;
}

__device__ __forceinline__ float kernel_value(float d2, float mean, float epsilon) {
#if KERNEL == 0
  return expf(d2 * (-1.f / (4.f * epsilon * mean)));
#elif KERNEL == 1
  return sqrtf(d2 / mean);
#elif KERNEL == 2
  return d2 / mean;
#else
  return 1.f / (1.f + d2 / mean);
#endif
}

// dk/dd2 / r of a value k = r v of the kernel.
__device__ __forceinline__ float kernel_slope(float v, float r, float epsilon) {
#if KERNEL == 0
  return -v / (4.f * epsilon);
#elif KERNEL == 1
  return v == 0.f ? 0.f : 1.f / (2.f * r * r * v); // 0 of points that coincide
#elif KERNEL == 2
  return 1.f / r;
#else
  return -v * v * r;
#endif
}

// sums (rows, 2): |W_i - T_i|^2 of row i, and sum_j e_ij d2_ij of z. With g = W_i - T_i, W_ij = k_ij/r and a = g.W_i it is
// e_ij = 2 scale (g_j - a) dk_ij/r for the distances that the kernel reads, 0 of a row of zeros. A warp a row of an anchor's K.
extern "C" __global__ void __launch_bounds__(256)
    compare_kernels(float *e, float *sums, const float *x2, const float *z2, const float *means, const int *whole, int anchors, int k,
        float scale, float epsilon) {
  int row = blockIdx.x * 8 + threadIdx.x / WARP, lane = threadIdx.x % WARP;
  if (row >= anchors * k) return;
  int a = row / k, i = row - a * k;
  if (!whole[a]) return;
  float before = 1.f, after = 1.f;
#if RELATIVE
  before = means[a], after = means[anchors + a];
#endif
  x2 += (size_t)row * k, z2 += (size_t)row * k, e += (size_t)row * k;
  float t = 0.f, r = 0.f;
  for (int j = lane; j < k; j += WARP) t += kernel_value(x2[j], before, epsilon), r += kernel_value(z2[j], after, epsilon);
  t = warp_sum(t), r = warp_sum(r);
  float tf = t == 0.f ? 1.f : 1.f / t, rf = r == 0.f ? 1.f : 1.f / r, loss = 0.f, dot = 0.f;
  for (int j = lane; j < k; j += WARP) {
    float w = kernel_value(z2[j], after, epsilon) * rf, g = w - kernel_value(x2[j], before, epsilon) * tf;
    loss += g * g, dot += g * w;
  }
  loss = warp_sum(loss), dot = warp_sum(dot);
  float along = 0.f;
  for (int j = lane; j < k; j += WARP) {
    float v = 0.f;
    if (j != i && r != 0.f) {
      float w = kernel_value(z2[j], after, epsilon) * rf, g = w - kernel_value(x2[j], before, epsilon) * tf;
      v = 2.f * scale * (g - dot) * kernel_slope(w, r, epsilon);
      along += v * z2[j];
    }
    e[j] = v;
  }
  along = warp_sum(along);
  if (lane == 0) sums[2 * (size_t)row] = loss, sums[2 * (size_t)row + 1] = along;
}

// losses (anchors), and shifts (anchors), what each e loses where distances are divided by their mean m: sum e d2 / (m^2 K (K-1)).
extern "C" __global__ void __launch_bounds__(256)
    anchor_losses(float *losses, float *shifts, const float *sums, const float *means, const int *whole, int anchors, int k) {
  int a = blockIdx.x * 8 + threadIdx.x / WARP;
  if (a >= anchors) return;
  double loss = 0, along = 0;
  if (whole[a])
    for (int i = threadIdx.x % WARP; i < k; i += WARP) {
      size_t row = (size_t)a * k + i;
      loss += (double)sums[2 * row], along += (double)sums[2 * row + 1];
    }
  loss = warp_sum_double(loss), along = warp_sum_double(along);
  if (threadIdx.x % WARP) return;
  losses[a] = (float)loss;
#if RELATIVE
  double m = whole[a] ? (double)means[anchors + a] : 1.;
  shifts[a] = k > 1 ? (float)(along / (m * m * ((double)k * (k - 1)))) : 0.f;
#endif
}

// f (anchors, K, K) = 2 (e_ij + e_ji) for the distances before their division, 0 of points that coincide.
extern "C" __global__ void __launch_bounds__(256)
    pair_factors(float *f, const float *e, const float *z2, const float *means, const float *shifts, const int *whole, int anchors, int k) {
  int64 at = (int64)blockIdx.x * 256 + threadIdx.x;
  if (at >= (int64)anchors * k * k) return;
  int64 row = at / k, a = row / k;
  int j = (int)(at - row * k), i = (int)(row - a * k);
  if (!whole[a]) return;
  float there = e[at], back = e[(a * k + j) * k + i];
#if RELATIVE
  float m = means[anchors + a], shift = shifts[a];
  if (k > 1) there = there / m - shift, back = back / m - shift;
#endif
  f[at] = i == j || z2[at] == 0.f ? 0.f : 2.f * (there + back);
}

// dz (anchors, K, C): dz_i = sum_j f_ij (z_i - z_j), a block TILE points and TILE channels. Differences are taken first: sums of
// near points times large factors would cancel.
extern "C" __global__ void __launch_bounds__(256)
    spread_gradient(float *dz, const float *z, const float *f, const int *whole, int k, int n, int tiles) {
  __shared__ __align__(16) float fs[STEP][TILE + 4], zs[STEP][TILE + 4];
  int a = blockIdx.x, i = blockIdx.y / tiles * TILE, first = blockIdx.y % tiles * TILE, own = threadIdx.y * 16 + threadIdx.x;
  size_t base = (size_t)a * k;
  float sum[PER][PER] = {}, u[PER][PER] = {};
  if (whole[a]) {
#pragma unroll
    for (int p = 0; p < PER; p++)
#pragma unroll
      for (int q = 0; q < PER; q++) {
        int r = i + PER * threadIdx.y + p, c = first + PER * threadIdx.x + q;
        if (r < k && c < n) u[p][q] = z[(base + r) * n + c];
      }
    for (int j = 0; j < k; j += STEP) {
      __syncthreads();
#pragma unroll
      for (int t = 0; t < PER; t++) {
        int r = (own + t * 256) / STEP, c = own % STEP; // point r, point c of the others
        fs[c][r] = i + r < k && j + c < k ? f[(base + i + r) * k + j + c] : 0.f;
        c = (own + t * 256) / TILE, r = own % TILE; // channel r
        zs[c][r] = j + c < k && first + r < n ? z[(base + j + c) * n + first + r] : 0.f;
      }
      __syncthreads();
#pragma unroll
      for (int c = 0; c < STEP; c++)
#pragma unroll
        for (int p = 0; p < PER; p++)
#pragma unroll
          for (int q = 0; q < PER; q++) sum[p][q] += fs[c][PER * threadIdx.y + p] * (u[p][q] - zs[c][PER * threadIdx.x + q]);
    }
  }
#pragma unroll
  for (int p = 0; p < PER; p++)
#pragma unroll
    for (int q = 0; q < PER; q++) {
      int r = i + PER * threadIdx.y + p, c = first + PER * threadIdx.x + q;
      if (r < k && c < n) dz[(base + r) * n + c] = sum[p][q];
    }
}

// out = scale times the sum of n losses: one block.
extern "C" __global__ void __launch_bounds__(256) total_loss(float *out, const float *losses, int n, float scale) {
  double sum = 0;
  for (int i = threadIdx.x; i < n; i += 256) sum += (double)losses[i];
  sum = block_sum_double(sum);
  if (threadIdx.x == 0) *out = (float)(sum * (double)scale);
}

// out (n) = the sums of x (rows, n) over its rows, with add they are added to it. A block of 32 x 32 threads has 32 columns.
extern "C" __global__ void __launch_bounds__(1024) sum_rows(float *out, const float *x, int rows, int n, int add) {
  __shared__ float room[32][33];
  int c = blockIdx.x * 32 + threadIdx.x;
  float sum = 0.f;
  if (c < n)
#pragma unroll 8
    for (int r = threadIdx.y; r < rows; r += 32) sum += x[(size_t)r * n + c];
  room[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  sum = warp_sum(room[threadIdx.x][threadIdx.y]);
  c = blockIdx.x * 32 + threadIdx.y;
  if (threadIdx.x == 0 && c < n) out[c] = add ? out[c] + sum : sum;
}

// What a chunk of points reads: rows (n) = near from number `at` on, of which there are `total`, -1 behind the last one, and the key
// of its dropout masks with the number of its first point.
extern "C" __global__ void __launch_bounds__(256) chunk_inputs(int *rows, int *key, const int *near, const int *seed, int n, int at, int total, int first) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) rows[i] = at + i < total ? near[at + i] : -1;
  if (i == 0 && key && seed) key[0] = seed[0], key[1] = seed[1], key[2] = first;
}
