// Local contrast, see LocalContrast: logits s (b, b*p), of which part q of sample j is column j*p+q. A block takes a row.

struct Parts {
  const int *lengths, *ids; // null: all parts exist, all others are negatives
  int p, first;

  __device__ __forceinline__ int end(int j) const { return lengths ? max(min(p, lengths[j]), first) : p; } // behind the last one
  __device__ __forceinline__ bool exists(int j, int q) const { return q >= first && q < end(j); }
  __device__ __forceinline__ bool negative(int i, int j) const { return j != i && !(ids && ids[i] == ids[j]); }
};

// The mean loss of the parts of sample i, and lse, the number of parts and sum_p sigmoid(lse - s_ip).
extern "C" __global__ void local_rows(double *partial, float *lse, float *count, float *sigmoids, const float *s,
                                      const int *lengths, const int *ids, int b, int p, int first) {
  __shared__ float room[33];
  Parts parts = {lengths, ids, p, first};
  int i = blockIdx.x, cols = b * p;
  s += (int64)i * cols;
  float top = -INFINITY_F;
  for (int k = threadIdx.x; k < cols; k += blockDim.x)
    if (parts.negative(i, k / p) && parts.exists(k / p, k % p)) top = fmaxf(top, s[k]);
  top = block_max(top, room);
  double sum = 0;
  for (int k = threadIdx.x; k < cols; k += blockDim.x)
    if (parts.negative(i, k / p) && parts.exists(k / p, k % p)) sum += expf(s[k] - (top == -INFINITY_F ? 0.f : top));
  sum = block_sum_double(sum);
  double l = top == -INFINITY_F && sum == sum ? -(double)INFINITY_F : top + log(sum), loss = 0, of = 0;
  if (sum != sum) l = sum; // a NaN among them
  int from = first, to = parts.end(i);
  for (int q = from + threadIdx.x; q < to; q += blockDim.x) {
    double d = l - s[i * p + q], e = exp(-fabs(d));
    loss += fmax(d, 0.) + log1p(e);
    of += d > 0 ? 1 / (1 + e) : e / (1 + e);
  }
  loss = block_sum_double(loss);
  of = block_sum_double(of);
  if (threadIdx.x != 0) return;
  partial[i] = loss / max(1, to - from);
  lse[i] = (float)l, count[i] = (float)(to - from), sigmoids[i] = (float)of;
}

// The mean over the samples with parts. One block.
extern "C" __global__ void __launch_bounds__(1024) local_mean(float *out, const double *partial, const float *count, int b) {
  double sum = 0, kept = 0;
  for (int i = threadIdx.x; i < b; i += blockDim.x)
    if (count[i] > 0) sum += partial[i], kept += 1;
  sum = block_sum_double(sum);
  kept = block_sum_double(kept);
  if (threadIdx.x == 0) out[0] = (float)(sum / fmax(kept, 1.));
}

// ds may take the memory of s.
extern "C" __global__ void local_ds(float *ds, const float *lse, const float *count, const float *sigmoids, const float *dy,
                                    const float *s, const int *lengths, const int *ids, int b, int p, int first) {
  Parts parts = {lengths, ids, p, first};
  int i = blockIdx.x, cols = b * p;
  double kept = 0;
  for (int j = threadIdx.x; j < b; j += blockDim.x) kept += count[j] != 0.f;
  kept = block_sum_double(kept);
  float l = lse[i], n = count[i], g = dy[0] / (float)fmax(kept, 1.) / n;
  bool none = n == 0.f || l == -INFINITY_F;
  for (int k = threadIdx.x; k < cols; k += blockDim.x) {
    int64 at = (int64)i * cols + k;
    int j = k / p;
    float d = 0.f;
    if (!none && parts.exists(j, k % p)) {
      if (j == i)
        d = -g / (1.f + expf(s[at] - l));
      else if (parts.negative(i, j))
        d = g * sigmoids[i] * expf(s[at] - l);
    }
    ds[at] = d;
  }
}

// Pooling of patches: the last side*side of the t tokens of each image are its patches, in grid*grid parts.
//
// y (n*grid*grid, cols) = the mean of each part. A thread for each element.
extern "C" __global__ void pool_patches(float *y, const float *x, int64 size, int t, int side, int grid, int cols) {
  int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= size) return;
  int cell = side / grid, col = (int)(i % cols), part = (int)(i / cols % (grid * grid));
  int64 image = i / cols / (grid * grid), first = image * t + t - side * side;
  int64 row = first + (int64)(part / grid * cell) * side + part % grid * cell;
  float sum = 0.f;
  for (int r = 0; r < cell; r++)
    for (int c = 0; c < cell; c++) sum += x[(row + r * side + c) * cols + col];
  y[i] = sum * (1.f / (float)(cell * cell));
}

// dx (n*t, cols) = each patch's share of the gradient of its part. A thread for each element.
extern "C" __global__ void pool_patches_dx(float *dx, const float *dy, int64 size, int t, int side, int grid, int cols) {
  int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= size) return;
  int cell = side / grid, col = (int)(i % cols), patch = (int)(i / cols % t) - (t - side * side);
  int64 image = i / cols / t;
  int64 part = (image * grid + patch / side / cell) * grid + patch % side / cell;
  dx[i] = patch < 0 ? 0.f : dy[part * cols + col] * (1.f / (float)(cell * cell));
}
