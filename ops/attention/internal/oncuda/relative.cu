// RelativeBias, see relative.go: buckets of distances as bucket computes them there.
__device__ __forceinline__ int bucket(int after, int n, int farthest) {
  int half = n / 2, first = after > 0 ? half : 0, away = abs(after), single = half / 2;
  if (away < single) return first + away;
  double share = log((double)away / single) / log((double)farthest / single);
  return first + min(half - 1, single + (int)(share * (half - single) + 1e-9)); // keeps whole shares whole, as on the host
}

// out (H, Lq, Lk): out[h, i, j] = table[bucket(j-i), h], a head for each blockIdx.y.
extern "C" __global__ void relative_bias(float *out, const float *table, int lq, int lk, int heads, int n, int farthest) {
  int at = blockIdx.x * 256 + threadIdx.x, h = blockIdx.y;
  if (at < lq * lk) out[(size_t)h * lq * lk + at] = table[bucket(at % lk - at / lk, n, farthest) * heads + h];
}

// dtable (N, H): dtable[b, h] is the sum of dy[h, i, j] over all i and j of that bucket. A block has one b and h; of its 8 x 32
// threads, those of one row take every eighth i, and neighbours in a row neighbouring distances.
extern "C" __global__ void relative_bias_grad(float *dtable, const float *dy, int lq, int lk, int heads, int n, int farthest) {
  __shared__ float room[33];
  int b = blockIdx.x % n, h = blockIdx.x / n, first = threadIdx.x / 32;
  const float *x = dy + (size_t)h * lq * lk;
  float sum = 0;
  for (int after = (int)threadIdx.x % 32 - (lq - 1); after < lk; after += 32) {
    if (bucket(after, n, farthest) != b) continue;
    for (int i = first; i < lq; i += 8)
      if (i + after >= 0 && i + after < lk) sum += x[(size_t)i * lk + i + after];
  }
  sum = block_sum(sum, room);
  if (threadIdx.x == 0) dtable[b * heads + h] = sum;
}
