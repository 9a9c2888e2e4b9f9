#define ROWS 4 // of a block, so that keys and values are read once for all of them

// y_i = 1/n sum_j (q_i . k_j) v_j for i < n, and 0 behind, of sequences of l rows, see Affinity. A length out of range cannot be
// reported from here: its rows are NaN.
extern "C" __global__ void affinity(float *y, const float *q, const float *k, const float *v, const int *lengths, int l, int d,
    int e) {
  DYNAMIC_SHARED(float, weights); // (ROWS, l)
  int blocks = (l + ROWS - 1) / ROWS, r = blockIdx.x / blocks, from = blockIdx.x % blocks * ROWS, lane = threadIdx.x % WARP;
  int n = lengths[r];
  bool bad = n < 0 || n > l;
  if (bad) n = 0;
  size_t first = (size_t)r * l;
  for (int j = threadIdx.x / WARP; j < n; j += blockDim.x / WARP) {
    const float *key = k + (first + j) * d;
    float sum[ROWS] = {};
    for (int c = lane; c < d; c += WARP) {
      float x = key[c];
#pragma unroll
      for (int i = 0; i < ROWS; i++)
        if (from + i < n) sum[i] = fmaf(q[(first + from + i) * d + c], x, sum[i]);
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
      float w = warp_sum(sum[i]);
      if (lane == 0) weights[i * l + j] = w / n;
    }
  }
  __syncthreads();
  for (int c = threadIdx.x; c < e; c += blockDim.x) {
    float sum[ROWS] = {};
    for (int j = 0; j < n; j++) {
      float x = v[(first + j) * e + c];
#pragma unroll
      for (int i = 0; i < ROWS; i++) sum[i] = fmaf(weights[i * l + j], x, sum[i]);
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++)
      if (from + i < l) y[(first + from + i) * e + c] = bad ? NOT_A_NUMBER : from + i < n ? sum[i] : 0.f;
  }
}
