// Distances of rows, and tiles of all pairs of rows. SPACE: 0 one sphere, 1 a product of `groups` spheres, 2 a Euclidean space.

#define LIMIT 0.999999f // vector.AcosLimit: how near to -1 and 1 cosines may come
#define LARGEST 3.4028234664e38f

// x, NaN where it is infinite: a clamp would make a small angle of it.
__device__ __forceinline__ float finite(float x) { return x + 0.f * x; }

// arccos of a limited cosine; NaN gives NaN.
__device__ __forceinline__ float angle_of(float cosine) {
  if (cosine != cosine) return cosine;
  return acosf(fminf(fmaxf(cosine, -LIMIT), LIMIT));
}

// dy times the slope of angle_of, -dy/sqrt(1-c^2), and 0 where the cosine was limited.
__device__ __forceinline__ float angle_slope(float cosine, float dy) {
  if (cosine > LIMIT || cosine < -LIMIT) return 0.f;
  return -dy / sqrtf((1.f - cosine) * (1.f + cosine));
}

// x . y of n values, in all lanes of a warp.
__device__ __forceinline__ float warp_dot(const float *x, const float *y, int n) {
  float s = 0.f;
#pragma unroll 4
  for (int c = threadIdx.x % WARP; c < n; c += WARP) s += x[c] * y[c];
  return warp_sum(s);
}

// What stands for a pair of rows of `width` values, in all lanes: its cosine on one sphere, else its distance,
// sqrt(sum arccos^2) over the spheres of a product or |x-y|.
__device__ __forceinline__ float separation(const float *x, const float *y, int width, int groups) {
#if SPACE == 0
  return finite(warp_dot(x, y, width));
#elif SPACE == 1
  int n = width / groups;
  float s = 0.f;
  for (int g = 0; g < groups; g++) {
    float a = angle_of(finite(warp_dot(x + g * n, y + g * n, n)));
    s += a * a;
  }
  return sqrtf(s);
#else
  float s = 0.f;
  for (int c = threadIdx.x % WARP; c < width; c += WARP) {
    float d = x[c] - y[c];
    s += d * d;
  }
  return sqrtf(finite(warp_sum(s)));
#endif
}

// The distance of a pair.
__device__ __forceinline__ float distance_of(float separation) {
#if SPACE == 0
  return angle_of(separation);
#else
  return separation;
#endif
}

// sum (width) += slope times the gradient of the distance of x and y for x, by all lanes of a warp:
//   one sphere  -y / sqrt(1-c^2),  a product  -arccos(c_g) y_g / (d sqrt(1-c_g^2)),  Euclid  (x-y)/d
__device__ __forceinline__ void add_gradient(float *sum, float slope, const float *x, const float *y, float separation, int width, int groups) {
  int lane = threadIdx.x % WARP;
#if SPACE == 0
  slope = angle_slope(separation, slope);
  if (slope == 0.f) return;
  for (int c = lane; c < width; c += WARP) sum[c] += slope * y[c];
#elif SPACE == 1
  if (slope == 0.f || separation == 0.f) return;
  int n = width / groups;
  for (int g = 0; g < groups; g++) {
    float cosine = finite(warp_dot(x + g * n, y + g * n, n));
    float v = angle_slope(cosine, slope / separation * angle_of(cosine));
    if (v == 0.f) continue;
    for (int c = g * n + lane; c < (g + 1) * n; c += WARP) sum[c] += v * y[c];
  }
#else
  if (slope == 0.f || separation == 0.f) return;
  slope /= separation;
  for (int c = lane; c < width; c += WARP) sum[c] += slope * (x[c] - y[c]);
#endif
}

// A tile has 64 x 64 pairs of rows, of which each of 256 threads has 4 x 4. Sums run over `DEPTH` channels at a time.
#define TILE 64
#define DEPTH 16

// Factors of products are rounded where the engine multiplies in bfloat16.
template <bool rounded> __device__ __forceinline__ float factor(float x) { return rounded ? to_float(from_float<bf16>(x)) : x; }

// acc[i][j] = the dot product, or |a-b|^2 in a Euclidean space, of rows row0 + 4 (thread / 16) + i of a (rows, width) and
// col0 + 4 (thread % 16) + j of those that b(column) points to, nullptr for none.
template <bool rounded, class Rows>
__device__ __forceinline__ void tile_pairs(float (&acc)[4][4], const float *a, int rows, int row0, Rows b, int col0, int width) {
  __shared__ __align__(16) float left[DEPTH][TILE + 4], right[DEPTH][TILE + 4];
  int own = threadIdx.x / 4, first = threadIdx.x % 4 * 4; // the row that the thread loads, and its channels
  const float *x = row0 + own < rows ? a + (size_t)(row0 + own) * width : nullptr, *y = b(col0 + own);
  int ty = threadIdx.x / 16 * 4, tx = threadIdx.x % 16 * 4;
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) acc[i][j] = 0.f;
  for (int from = 0; from < width; from += DEPTH) {
    __syncthreads();
#pragma unroll
    for (int q = 0; q < 4; q++) {
      int c = from + first + q;
      left[first + q][own] = x && c < width ? factor<rounded>(x[c]) : 0.f;
      right[first + q][own] = y && c < width ? factor<rounded>(y[c]) : 0.f;
    }
    __syncthreads();
#pragma unroll
    for (int d = 0; d < DEPTH; d++) {
      float p[4], q[4];
      load4(p, left[d], ty);
      load4(q, right[d], tx);
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
#if SPACE == 2
          float difference = p[i] - q[j];
          acc[i][j] += difference * difference;
#else
          acc[i][j] += p[i] * q[j];
#endif
        }
    }
  }
}
