// Nearest centres of rows and paths from rows to centres. `count` of K centres are in use; a count outside [0, K], an error of the
// run on the host, makes distances NaN. Products are in float32 whatever the engine's precision: rounding must not choose the centre.

// The centres in use, -1: their number is wrong.
__device__ __forceinline__ int centres_in_use(const int *count, int total) { return *count >= 0 && *count <= total ? *count : -1; }

struct centre_rows {
  const float *x;
  int count, width;
  __device__ __forceinline__ const float *operator()(int k) const { return k < count ? x + (size_t)k * width : nullptr; }
};

// values (rows, total): the larger, the nearer a centre is. The dot product, in a Euclidean space -|x-c|^2.
extern "C" __global__ void centre_values(float *values, const float *x, const float *centres, const int *count, int rows, int total, int width, int across) {
  int row0 = blockIdx.x / across * TILE, col0 = blockIdx.x % across * TILE;
  int n = centres_in_use(count, total);
  if (col0 >= n) return;
  float acc[4][4];
  tile_pairs<false>(acc, x, rows, row0, centre_rows{centres, n, width}, col0, width);
  row0 += threadIdx.x / 16 * 4, col0 += threadIdx.x % 16 * 4;
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++)
      if (row0 + i < rows && col0 + j < n) values[(size_t)(row0 + i) * total + col0 + j] = SPACE == 2 ? -acc[i][j] : acc[i][j];
}

// A value and the centre that has it, -1: none.
struct best {
  float value;
  int at;
};

// The larger one, of equal ones the first.
__device__ __forceinline__ best better(best a, best b) {
  if (b.at < 0) return a;
  return a.at < 0 || b.value > a.value || (b.value == a.value && b.at < a.at) ? b : a;
}

__device__ __forceinline__ best warp_best(best x) {
#pragma unroll
  for (int d = 16; d > 0; d /= 2) x = better(x, best{__shfl_xor_sync(FULL, x.value, d), __shfl_xor_sync(FULL, x.at, d)});
  return x;
}

// The best one of values first, first + step, ... below n; NaN is none.
__device__ __forceinline__ best best_of(const float *values, int first, int step, int n) {
  best x = {-INFINITY_F, -1};
  for (int k = first; k < n; k += step) {
    float v = values[k];
    if (v == v && (x.at < 0 || v > x.value)) x = best{v, k};
  }
  return x;
}

// index and angle (rows) are the nearest centre of each row and its distance, by one warp. A row that is not finite gets 0 and NaN.
extern "C" __global__ void nearest_centre(int *index, float *angle, const float *values, const float *x, const float *centres, const int *count, int rows, int total, int width, int groups) {
  int r = blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP, lane = threadIdx.x % WARP;
  if (r >= rows) return;
  int n = centres_in_use(count, total);
  if (n <= 0) {
    if (lane == 0) index[r] = 0, angle[r] = n == 0 ? 0.f : NOT_A_NUMBER;
    return;
  }
  const float *row = values + (size_t)r * total;
  best b = warp_best(best_of(row, lane, WARP, n));
  if (b.at < 0) b = best{row[0], 0};
#if SPACE == 0
  float a = angle_of(finite(b.value));
#elif SPACE == 1
  float a = separation(x + (size_t)r * width, centres + (size_t)b.at * width, width, groups);
#else
  float a = sqrtf(finite(-b.value));
#endif
  if (lane == 0) index[r] = b.at, angle[r] = a;
}

// Row r of the distances out (R, K), by one block of 256 threads: with m entries d_jk = angle_j + paths[index_j, k], one of them
// is E_k, and of several it is -T log sum_j exp(-d_jk/T). index and dots (R, entries) keep the entries and their separations for
// the gradient. values are overwritten.
extern "C" __global__ void centre_distances(float *out, int *index, float *dots, float *values, const float *x, const float *centres, const float *paths, const int *count, int total, int width, int entries, float softness, int groups) {
  DYNAMIC_SHARED(float, angles); // (entries), then their centres
  int *at = reinterpret_cast<int *>(angles + entries);
  __shared__ best room[8];
  int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  size_t r = blockIdx.x;
  int n = centres_in_use(count, total), m = min(entries, n);
  out += r * total, values += r * total, index += r * entries, dots += r * entries, x += r * width;
  if (n <= 0) {
    for (int k = threadIdx.x; k < total; k += blockDim.x) out[k] = n == 0 ? 0.f : NOT_A_NUMBER;
    return;
  }
  for (int j = 0; j < m; j++) { // the m largest values, one after the other
    best b = warp_best(best_of(values, threadIdx.x, blockDim.x, n));
    if (lane == 0) room[warp] = b;
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int w = 1; w < 8; w++) b = better(b, room[w]);
      if (b.at < 0) b = best{values[0], 0};
      at[j] = index[j] = b.at;
      angles[j] = finite(b.value);
      values[b.at] = -INFINITY_F;
    }
    __syncthreads();
  }
  for (int j = warp; j < m; j += 8) {
    float s = angles[j];
#if SPACE != 0
    s = separation(x, centres + (size_t)at[j] * width, width, groups);
#endif
    __syncwarp();
    if (lane == 0) dots[j] = s, angles[j] = distance_of(s);
  }
  __syncthreads();
  for (int k = threadIdx.x; k < total; k += blockDim.x) {
    float shortest = INFINITY_F;
    if (k < n && m == 1) shortest = angles[0] + paths[(size_t)at[0] * total + k];
    if (k < n && m > 1) {
      for (int j = 0; j < m; j++) {
        float d = angles[j] + paths[(size_t)at[j] * total + k];
        if (!(d >= shortest)) shortest = d;
      }
      float sum = 0.f;
      for (int j = 0; j < m; j++) sum += expf((shortest - (angles[j] + paths[(size_t)at[j] * total + k])) / softness);
      if (shortest <= LARGEST) shortest -= softness * logf(sum);
    }
    out[k] = shortest;
  }
}

// Row r of dx (R, C) for distances and their gradient dy (R, K), by one block of 256 threads: entry j has the gradient
// g_j = sum_k exp((E_k - d_jk)/T) dy_k, with one entry the sum of dy over the centres that a path leads to, and dx the sum over
// the entries of g_j times the gradient of the separation.
extern "C" __global__ void centre_distances_dx(float *dx, const int *index, const float *dots, const float *distances, const float *dy, const float *x, const float *centres, const float *paths, const int *count, int total, int width, int entries, float softness, int groups) {
  DYNAMIC_SHARED(float, factors); // of the centres of the entries (entries, groups)
  __shared__ float room[33];
  size_t r = blockIdx.x;
  int n = centres_in_use(count, total), m = min(entries, n);
  dx += r * width, index += r * entries, dots += r * entries, distances += r * total, dy += r * total, x += r * width;
  for (int j = 0; j < m; j++) {
    float separated = dots[j], angle = distance_of(separated), g = 0.f;
    const float *path = paths + (size_t)index[j] * total;
    for (int k = threadIdx.x; k < n; k += blockDim.x) {
      float d = distances[k];
      if (m == 1) {
        if (!(d > LARGEST)) g += dy[k];
        continue;
      }
      float e = expf((d - (angle + path[k])) / softness);
      if (e > 0.f || (e != e && d != d)) g += e * dy[k]; // e is NaN also for a centre without a path
    }
    g = block_sum(g, room);
#if SPACE == 1
    int lane = threadIdx.x % WARP, part = width / groups;
    const float *centre = centres + (size_t)index[j] * width;
    for (int q = threadIdx.x / WARP; q < groups; q += blockDim.x / WARP) {
      float cosine = finite(warp_dot(x + q * part, centre + q * part, part));
      if (lane == 0) factors[j * groups + q] = g == 0.f || separated == 0.f ? 0.f : angle_slope(cosine, g / separated * angle_of(cosine));
    }
#else
    if (threadIdx.x == 0) factors[j] = SPACE == 0 ? angle_slope(separated, g) : g == 0.f || separated == 0.f ? 0.f : g / separated;
#endif
  }
  __syncthreads();
  int part = SPACE == 1 ? width / groups : width;
  for (int c = threadIdx.x; c < width; c += blockDim.x) {
    float sum = n < 0 ? NOT_A_NUMBER : 0.f;
    for (int j = 0; j < m; j++) {
      float v = factors[j * (SPACE == 1 ? groups : 1) + c / part], y = centres[(size_t)index[j] * width + c];
      if (v != 0.f) sum += v * (SPACE == 2 ? x[c] - y : y);
    }
    dx[c] = sum;
  }
}
