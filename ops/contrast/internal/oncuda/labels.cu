// Means over rows that count, and ops of labels and indices.

// out = the mean of the losses of rows whose weight is not 0, 0 if there is none. One block.
extern "C" __global__ void __launch_bounds__(1024) kept_mean(float *out, const float *loss, const float *weight, int rows) {
  double sum = 0, kept = 0;
  for (int r = threadIdx.x; r < rows; r += blockDim.x) sum += loss[r], kept += weight[r] != 0.f;
  sum = block_sum_double(sum);
  kept = block_sum_double(kept);
  if (threadIdx.x == 0) out[0] = (float)(sum / fmax(kept, 1.));
}

// The gradient of kept_mean: dy / number of kept rows. One block.
extern "C" __global__ void __launch_bounds__(1024) kept_mean_dx(float *dx, const float *dy, const float *weight, int rows) {
  double kept = 0;
  for (int r = threadIdx.x; r < rows; r += blockDim.x) kept += weight[r] != 0.f;
  float g = dy[0] / (float)fmax(block_sum_double(kept), 1.);
  for (int r = threadIdx.x; r < rows; r += blockDim.x) dx[r] = weight[r] != 0.f ? g : 0.f;
}

// hit = 1 for a row whose label's logit is larger than every other, -1 for one with a negative label. A block for each row.
extern "C" __global__ void hits(float *hit, const float *logits, const int *labels, int cols) {
  __shared__ float room[33];
  int64 row = blockIdx.x;
  int l = labels[row];
  if (l < 0 || l >= cols) { // the same in all threads
    if (threadIdx.x == 0) hit[row] = l < 0 ? -1.f : 0.f;
    return;
  }
  logits += row * cols;
  float v = logits[l], others = 0.f; // that are not smaller, or NaN
  for (int j = threadIdx.x; j < cols; j += blockDim.x) others += j != l && !(logits[j] < v) ? 1.f : 0.f;
  others = block_sum(others, room);
  if (threadIdx.x == 0) hit[row] = others == 0.f && v > -INFINITY_F ? 1.f : 0.f;
}

// out = the share of hits among the rows that are not left out. One block.
extern "C" __global__ void __launch_bounds__(1024) hit_share(float *out, const float *hit, int rows) {
  double hits = 0, kept = 0;
  for (int r = threadIdx.x; r < rows; r += blockDim.x)
    if (hit[r] >= 0.f) hits += hit[r], kept += 1;
  hits = block_sum_double(hits);
  kept = block_sum_double(kept);
  if (threadIdx.x == 0) out[0] = (float)hits / (float)fmax(kept, 1.);
}

// out = ranks k/K for k labels of own and K of all that are not negative, 0 without any. One block.
extern "C" __global__ void __launch_bounds__(1024) label_share(float *out, const int *own, const int *all, int n, int of_all) {
  double k = block_counted(own, n), of = block_counted(all, of_all);
  if (threadIdx.x == 0) out[0] = of > 0 ? (float)(of_all / n * k / of) : 0.f;
}

// out = 0, and -100 where the index is that of the row itself, own[i] or i.
extern "C" __global__ void negative_labels(int *out, const int *idx, const int *own, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = idx[i] == (own ? own[i] : i) ? -100 : 0;
}

// out = columns[idx], -1 where idx is negative, or beyond the columns, which is an error on the host.
extern "C" __global__ void look_up_columns(int *out, const int *columns, const int *idx, int n, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = idx[i] < 0 || idx[i] >= count ? -1 : columns[idx[i]];
}

// The picture of each text, see AssignedPictures: none is the answer that both are negatives.
extern "C" __global__ void assigned_pictures(int *out, const int *sampled, const int *answers, int n, int picture, int none) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int answer = answers[i];
  out[i] = answer == picture ? i : sampled[answer == none && picture == 1 ? n + i : i];
}

// The answers, -100 where there are fewer negatives than the answer takes.
extern "C" __global__ void assignment_labels(int *out, const int *sampled, const int *answers, int n, int none) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = sampled[i] == i || (answers[i] == none && sampled[n + i] == i) ? -100 : answers[i];
}

// See Relabel, in double as on the host. One block.
extern "C" __global__ void __launch_bounds__(1024) relabel(int *out, int *labels, int *positive, float *positives,
                                                           float *replaced, const int *first, const int *second, const float *logits,
                                                           int n, double above, double below) {
  double made = 0, taken = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    int index = first[i], label = 0, match = -1;
    double p = 1 / (1 + exp((double)(logits[2 * i] - logits[2 * i + 1])));
    if (index == i || p < below) {
    } else if (p > above) {
      label = 1, match = index;
      made += 1;
    } else {
      index = second[i];
      taken += 1;
    }
    out[i] = index, labels[i] = index == i ? -100 : label, positive[i] = match;
  }
  made = block_sum_double(made);
  taken = block_sum_double(taken);
  if (threadIdx.x == 0) positives[0] = (float)made, replaced[0] = (float)taken;
}
