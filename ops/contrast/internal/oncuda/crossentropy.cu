// Cross entropy of the rows of logits s (rows, total), of whose columns the first cols exist:
//
//	loss = lse(s) - (1-alpha) mean_{j positive} s_j - alpha sum_j softmax(t)_j s_j
//
// and, with a uniform share u, (1-u) times that and u times lse(s) - mean_j s_j, in one pass over a row. Positives are found by a
// look at each column, not by the host's chains.
//
// LABELS: a row's positive is a column (else the columns with its id). NARROW: a warp takes a row, blocks of (32, 8) threads
// (else a block takes one). What the host's step reports as an error, a label, a further positive or a number of columns out of
// range, makes the loss and the gradient of its rows NaN.

#if NARROW
#define ROW ((int64)blockIdx.x * 8 + threadIdx.y)
#define LANES 32
#define ROW_SUM(x) warp_sum(x)
#define ROW_MAX(x) warp_max(x)
#else
#define ROW ((int64)blockIdx.x)
#define LANES (int)blockDim.x
#define ROW_SUM(x) block_sum(x, room)
#define ROW_MAX(x) block_max(x, room)
#endif

// What a row's target is made of, null pointers for operands that are not there.
struct Target {
  int cols;             // that exist
  float alpha, uniform; // weights of the teacher and of the uniform distribution
  int label;            // the column or the id, negative: none
  int extra;            // the further positive, -1 for none
  bool broken;          // out of range
};

__device__ __forceinline__ Target target_of(int64 row, int total, const float *alpha, const int *own, const int *col_ids,
                                            const int *cols, const int *extra, const float *uniform) {
  Target t;
  t.cols = cols ? cols[0] : total;
  t.broken = t.cols < 1 || t.cols > total;
  t.cols = t.broken ? total : t.cols;
  t.alpha = alpha ? alpha[0] : 0.f;
  t.uniform = uniform ? uniform[0] : 0.f;
  t.label = own[row];
  t.extra = extra ? max(extra[row], -1) : -1;
  if (t.extra >= t.cols) t.broken = true, t.extra = -1;
#if LABELS
  if (t.label >= t.cols) t.broken = true, t.label = 0;
  if (t.label < 0 || t.extra == t.label) t.extra = -1;
#else
  if (t.extra >= 0 && t.label >= 0 && col_ids[t.extra] == t.label) t.extra = -1;
#endif
  return t;
}

// A sum of exponentials of values that come four at a time, with the largest of them as the shift, and with dots the sum of their
// products with other values.
template <bool dots> struct Exponentials {
  float top, sum, dot;

  // An absent value is -Inf, and the other one beside it 0.
  __device__ __forceinline__ void add(const float (&v)[4], const float (&other)[4]) {
    float m = fmaxf(fmaxf(v[0], v[1]), fmaxf(v[2], v[3]));
    if (m > top) {
      float f = expf(top - m);
      sum *= f, top = m;
      if (dots) dot *= f;
    }
    float shift = top == -INFINITY_F ? 0.f : top;
#pragma unroll
    for (int k = 0; k < 4; k++) {
      float e = expf(v[k] - shift);
      sum += e;
      if (dots) dot += e * other[k];
    }
  }

  // The sums over all threads of a row.
  __device__ __forceinline__ void merge(float *room) {
    float most = ROW_MAX(top), f = top == -INFINITY_F ? 1.f : expf(top - most); // without any the sums are 0, or NaN
    sum = ROW_SUM(f * sum);
    if (dots) dot = ROW_SUM(f * dot);
    top = most;
  }

  __device__ __forceinline__ float log_sum() const { return top == INFINITY_F ? top : top + logf(sum); }
};

// weight is 1 / number of positives, 0 for a row that is left out; lse and lse_teacher are what the gradient needs.
extern "C" __global__ void __launch_bounds__(1024) cross_entropy(float *loss, float *weight, float *lse, float *lse_teacher,
                                                                 const float *s, int rows, int total, const float *teacher,
                                                                 const float *alpha, const int *own, const int *col_ids,
                                                                 const int *cols, const int *extra, const float *uniform) {
#if !NARROW
  __shared__ float room[33];
#else
  float *room = nullptr;
#endif
  int64 row = ROW;
  if (row >= rows) return;
  Target t = target_of(row, total, alpha, own, col_ids, cols, extra, uniform);
  bool first = threadIdx.x == 0;
  if (t.label < 0 && t.extra < 0 && !t.broken) {
    if (first) loss[row] = weight[row] = lse[row] = lse_teacher[row] = 0.f;
    return;
  }
  s += row * total;
  if (teacher) teacher += row * total;
  bool soft = teacher && t.alpha != 0.f;
  Exponentials<false> logits = {-INFINITY_F, 0.f, 0.f};
  Exponentials<true> taught = {-INFINITY_F, 0.f, 0.f};
  float all = 0.f, positives = 0.f, count = 0.f;
  for (int j = threadIdx.x; j < t.cols; j += 4 * LANES) {
    float v[4], w[4], x[4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
      int at = j + k * LANES;
      bool in = at < t.cols;
      v[k] = in ? s[at] : -INFINITY_F;
      x[k] = in ? v[k] : 0.f;
      w[k] = in && soft ? teacher[at] : -INFINITY_F;
#if !LABELS
      if (in && t.label >= 0 && col_ids[at] == t.label) positives += v[k], count += 1.f;
#endif
    }
    logits.add(v, x);
    if (soft) taught.add(w, x);
    if (t.uniform != 0.f) all += (x[0] + x[1]) + (x[2] + x[3]);
  }
  logits.merge(room);
#if LABELS
  count = 1.f, positives = s[max(t.label, 0)];
#else
  count = ROW_SUM(count), positives = ROW_SUM(positives);
#endif
  if (t.extra >= 0) count += 1.f, positives += s[t.extra];
  if (count == 0.f && !t.broken) {
    if (first) loss[row] = weight[row] = lse[row] = lse_teacher[row] = 0.f;
    return;
  }
  float log_sum = logits.log_sum(), out = log_sum - positives / count, log_sum_teacher = 0.f;
  if (soft) {
    taught.merge(room);
    log_sum_teacher = taught.log_sum();
    out = (1.f - t.alpha) * out + t.alpha * (log_sum - taught.dot / taught.sum);
  }
  if (t.uniform != 0.f) {
    all = ROW_SUM(all);
    out = (1.f - t.uniform) * out + t.uniform * (log_sum - all / t.cols);
  }
  if (!first) return;
  loss[row] = t.broken ? NOT_A_NUMBER : out;
  weight[row] = 1.f / fmaxf(count, 1.f);
  lse[row] = log_sum;
  lse_teacher[row] = log_sum_teacher;
}

// ds = g (softmax(s) - y) for the gradient g of each row, 0 for columns that do not exist and rows that are left out. ds may take
// the memory of s or of the teacher. A block of (x, y) threads takes 16 x columns of y rows.
extern "C" __global__ void __launch_bounds__(256) cross_entropy_ds(float *ds, const float *dy, const float *weight,
                                                                   const float *lse, const float *lse_teacher, const float *s, int rows,
                                                                   int total, const float *teacher, const float *alpha,
                                                                   const int *own, const int *col_ids, const int *cols, const int *extra,
                                                                   const float *uniform) {
  int64 row = (int64)blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  Target t = target_of(row, total, alpha, own, col_ids, cols, extra, uniform);
  float share = weight[row], g = share == 0.f ? 0.f : dy[row];
  if (t.broken) g = NOT_A_NUMBER;
  bool soft = teacher && t.alpha != 0.f;
  float of_teacher = soft ? g * t.alpha * (1.f - t.uniform) : 0.f;
  float even = g * t.uniform / t.cols, hard = g * (1.f - t.alpha) * (1.f - t.uniform) * share;
  float l = lse[row], l_teacher = lse_teacher[row];
#pragma unroll 4
  for (int k = 0; k < 16; k++) {
    int j = (blockIdx.y * 16 + k) * blockDim.x + threadIdx.x;
    if (j >= total) return;
    int64 at = row * total + j;
    float d = 0.f;
    if (j < t.cols && g != 0.f) {
      d = g * expf(s[at] - l);
      if (soft) d -= of_teacher * expf(teacher[at] - l_teacher);
      d -= even;
#if LABELS
      bool positive = j == t.label;
#else
      bool positive = t.label >= 0 && col_ids[j] == t.label;
#endif
      if (positive || j == t.extra) d -= hard;
    }
    ds[at] = d;
  }
}
