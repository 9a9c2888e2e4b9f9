// Random and hardest negatives of rows of logits. A warp takes a row, blocks of (32, 4) threads.

// A column and its value, the order of which is by value, and by column where values are equal.
struct Best {
  double value;
  int at; // negative: none

  __device__ __forceinline__ void offer(double v, int j) {
    if (j >= 0 && (at < 0 || v > value || (v == value && j < at))) value = v, at = j;
  }
};

// The best of the warp's, in all lanes.
__device__ __forceinline__ Best warp_best(Best b) {
#pragma unroll
  for (int d = 16; d > 0; d /= 2) {
    double v = __shfl_xor_sync(FULL, b.value, d);
    int j = __shfl_xor_sync(FULL, b.at, d);
    b.offer(v, j);
  }
  return b;
}

// A row of logits, whose elements lie step apart.
struct Row {
  const float *x;
  int64 step;
  const int *ids; // null: none
  int n, own, drawn;

  __device__ __forceinline__ bool negative(int j) const { return j != own && j != drawn && !(ids && ids[j] == ids[own]); }
};

// The negative with the largest sum of log weight and noise, see SampleNegatives; own where there is none.
__device__ __forceinline__ int draw(Row r, const float *noise, double floor) {
  int lane = threadIdx.x;
  float top = -INFINITY_F, sum = 0.f, shift = 0.f, scale = 1.f;
  bool even = false; // a NaN, +Inf, or -Inf alone with a floor: all are as likely
  for (int j = lane; j < r.n; j += WARP) {
    float v = r.x[j * r.step];
    even |= v != v || v == INFINITY_F;
    top = fmaxf(top, v);
  }
  if (floor > 0) {
    shift = warp_max(top);
    even |= shift == -INFINITY_F;
    for (int j = lane; j < r.n; j += WARP) sum += expf(r.x[j * r.step] - shift);
    scale = 1.f / warp_sum(sum);
  }
  even = __any_sync(FULL, even);
  Best best = {0, -1};
  if (!even)
    for (int j = lane; j < r.n; j += WARP) {
      if (!r.negative(j)) continue;
      float v = r.x[j * r.step];
      double l = floor > 0 ? log((double)(expf(v - shift) * scale) + floor) : (double)v;
      if (l + noise[j] > -(double)INFINITY_F) best.offer(l + noise[j], j);
    }
  best = warp_best(best);
  if (best.at >= 0) return best.at;
  double l = floor > 0 ? log(1 + floor) : 1;
  for (int j = lane; j < r.n; j += WARP)
    if (r.negative(j)) best.offer(l + noise[j], j);
  best = warp_best(best);
  return best.at < 0 ? r.own : best.at;
}

// out = a negative for each of rows rows among b, by logits whose rows lie row apart and whose columns col. own names the rows in
// the batch, null: they are its first. An own row out of range, an error on the host, gets -1.
extern "C" __global__ void sample_negatives(int *out, const float *logits, const float *noise, const int *ids, const int *own,
                                            int rows, int b, int64 row, int64 col, double floor) {
  int i = blockIdx.x * 4 + threadIdx.y;
  if (i >= rows) return;
  int at = own ? own[i] : i, drawn = -1;
  if (at >= 0 && at < b) drawn = draw(Row{logits + i * row, col, ids, b, at, at}, noise + (int64)i * b, floor);
  if (threadIdx.x == 0) out[i] = drawn;
}

// Two different negatives for each of b rows, the first of all rows before the second.
extern "C" __global__ void sample_pairs(int *out, const float *logits, const float *noise, const int *ids, int b) {
  int i = blockIdx.x * 4 + threadIdx.y;
  if (i >= b) return;
  Row r = {logits + (int64)i * b, 1, ids, b, i, i};
  for (int k = 0; k < 2; k++) {
    r.drawn = draw(r, noise + (int64)i * b, 0);
    if (threadIdx.x == 0) out[k * b + i] = r.drawn;
  }
}

// first and second = the columns with the two largest logits among the negatives below b, the row itself where there is none.
extern "C" __global__ void hardest_negatives(int *first, int *second, const float *logits, const int *ids, int b, int m) {
  int i = blockIdx.x * 4 + threadIdx.y;
  if (i >= b) return;
  Row r = {logits + (int64)i * m, 1, ids, b, i, i};
  int found[2];
  for (int k = 0; k < 2; k++) {
    Best best = {0, -1};
    for (int j = threadIdx.x; j < b; j += WARP)
      if (r.negative(j) && r.x[j] == r.x[j]) best.offer(r.x[j], j);
    best = warp_best(best);
    found[k] = r.drawn = best.at < 0 ? i : best.at;
  }
  if (threadIdx.x == 0) first[i] = found[0], second[i] = found[1];
}
