// Random walks among N rows, see the op's description. Matrices are (n, n); a block has a row.

#define LEAST_MASS 1e-30 // see leastMass of the host's step

// Row i of p = softmax(scores/temperature), row i of q = softmax(target/target_temperature), by blocks i and n + i.
extern "C" __global__ void distributions(float *p, float *q, const float *scores, const float *target, int n, float scale, float target_scale) {
  __shared__ float room[33];
  int i = blockIdx.x;
  if (i >= n) i -= n, p = q, scores = target, scale = target_scale;
  p += (size_t)i * n, scores += (size_t)i * n;
  float most = -INFINITY_F, sum = 0.f;
  for (int j = threadIdx.x; j < n; j += blockDim.x) most = fmaxf(most, scale * scores[j]);
  most = block_max(most, room);
  for (int j = threadIdx.x; j < n; j += blockDim.x) {
    float e = expf(scale * scores[j] - most);
    p[j] = e;
    sum += e;
  }
  sum = 1.f / block_sum(sum, room);
  for (int j = threadIdx.x; j < n; j += blockDim.x) p[j] *= sum;
}

// log(q/m) for the mean m of q and p, as the host computes it: in double, since the terms of a divergence cancel where q is near p.
__device__ __forceinline__ double ratio(double q, double p) {
  double d = (q - p) / (q + p);
  return fabs(d) < .5 ? log1p(d) : log(2 * q / (q + p));
}

// losses[i] = JS(p, q) of rows i of target (p) and power (q), and grad = share log(q/m)/2.
extern "C" __global__ void compare_rows(double *losses, float *grad, const float *target, const float *power, int n, float share) {
  size_t from = (size_t)blockIdx.x * n;
  double sum = 0;
  for (int j = threadIdx.x; j < n; j += blockDim.x) {
    double p = target[from + j], q = power[from + j];
    if (p < LEAST_MASS) p = LEAST_MASS; // NaN stays
    if (q < LEAST_MASS) q = LEAST_MASS;
    double up = ratio(q, p);
    sum += q * up + p * ratio(p, q);
    grad[from + j] = (float)(up / 2) * share;
  }
  sum = block_sum_double(sum);
  if (threadIdx.x == 0) losses[blockIdx.x] = sum / 2;
}

// loss = the mean of n values, by one block.
extern "C" __global__ void mean_loss(float *loss, const double *losses, int n) {
  double sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += losses[i];
  sum = block_sum_double(sum);
  if (threadIdx.x == 0) *loss = (float)(sum / n);
}

// ds = p (dp - sum p dp)/temperature for dp = back, and what ds holds if `more`.
extern "C" __global__ void softmax_gradient(float *ds, const float *p, const float *back, int n, bool more, float temperature) {
  __shared__ float room[33];
  ds += (size_t)blockIdx.x * n, p += (size_t)blockIdx.x * n, back += (size_t)blockIdx.x * n;
  float sum = 0.f;
  for (int j = threadIdx.x; j < n; j += blockDim.x) {
    float v = back[j] + (more ? ds[j] : 0.f);
    ds[j] = v;
    sum += p[j] * v;
  }
  sum = block_sum(sum, room);
  for (int j = threadIdx.x; j < n; j += blockDim.x) ds[j] = p[j] * (ds[j] - sum) / temperature;
}
