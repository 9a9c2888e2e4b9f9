// a (cols) and b (cols) are the sums over n parts of parts (n, 2, cols). A block adds up 32 columns: each of its 32 warps every
// 32nd part, and then one warp the 32 sums, always in this order.
extern "C" __global__ void __launch_bounds__(1024) sum_parts(float *a, float *b, const float *parts, int n, int cols) {
  __shared__ float room[32][33];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int at = blockIdx.x * 32 + lane;
  float s = 0;
  if (at < 2 * cols)
    for (int first = warp; first < n; first += 32 * 16) { // 16 are loaded at once: 512 parts take no longer than one
      float v[16];
#pragma unroll
      for (int k = 0; k < 16; k++) v[k] = first + 32 * k < n ? parts[(size_t)(first + 32 * k) * 2 * cols + at] : 0.f;
#pragma unroll
      for (int k = 0; k < 16; k++) s += v[k];
    }
  room[lane][warp] = s;
  __syncthreads();
  s = warp_sum(room[warp][lane]);
  at = blockIdx.x * 32 + warp;
  if (lane != 0 || at >= 2 * cols) return;
  if (at < cols)
    a[at] = s;
  else
    b[at - cols] = s;
}
