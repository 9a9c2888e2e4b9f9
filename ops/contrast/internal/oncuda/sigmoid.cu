// The sigmoid loss of scores s (rows, total), of whose columns the first cols exist: with l = exp(t') s + b
//
//	loss = 1/B sum_i sum_j log(1 + exp(l_ij)) - [ij positive] l_ij
//
// over the B rows whose label or id is not negative. A block takes a row. With labels a row's positive is a column, else (col_ids
// is not null) the columns with its id. A label or a number of columns out of range, an error on the host, makes the loss NaN.

struct Columns {
  int count, own; // that exist; the row's label or id
  bool broken;
};

__device__ __forceinline__ Columns columns_of(int64 row, int total, const int *own, const int *col_ids, const int *cols) {
  Columns c = {cols ? cols[0] : total, own[row], false};
  c.broken = c.count < 1 || c.count > total;
  if (c.broken) c.count = total;
  c.broken |= !col_ids && c.own >= c.count;
  return c;
}

// partial_r = the loss of row r.
extern "C" __global__ void sigmoid_rows(double *partial, const float *s, const float *log_scale, const float *bias,
                                        const int *own, const int *col_ids, const int *cols, int total) {
  int64 row = blockIdx.x;
  Columns c = columns_of(row, total, own, col_ids, cols);
  float scale = expf(log_scale[0]), b = bias[0];
  double sum = 0;
  s += row * total;
  if (c.own >= 0)
    for (int j = threadIdx.x; j < c.count; j += blockDim.x) {
      float l = fmaf(scale, s[j], b);
      sum += fmaxf(l, 0.f) + log1pf(expf(-fabsf(l)));
      if (col_ids ? col_ids[j] == c.own : j == c.own) sum -= l;
    }
  sum = block_sum_double(sum);
  if (threadIdx.x == 0) partial[row] = c.broken ? (double)NOT_A_NUMBER : sum;
}

// One block.
extern "C" __global__ void __launch_bounds__(1024) sigmoid_loss(float *out, const double *partial, const int *own, int rows) {
  double sum = block_total(partial, rows);
  int kept = block_counted(own, rows);
  if (threadIdx.x == 0) out[0] = (float)(sum / max(1, kept));
}

// With d = sigmoid(l), less 1 where positive, and g = dy/B: ds = g exp(t') d. partial_r = sum_j s d, partial_(rows+r) = sum_j d
// of row r. ds may take the memory of s.
extern "C" __global__ void sigmoid_ds(float *ds, double *partial, const float *s, const float *log_scale, const float *bias,
                                      const int *own, const int *col_ids, const int *cols, const float *dy, int rows,
                                      int total) {
  int64 row = blockIdx.x;
  Columns c = columns_of(row, total, own, col_ids, cols);
  float scale = expf(log_scale[0]), b = bias[0], g = dy[0] / (float)max(1, block_counted(own, rows));
  if (c.broken) g = NOT_A_NUMBER;
  double dot = 0, sum = 0;
  for (int j = threadIdx.x; j < total; j += blockDim.x) {
    float d = 0.f;
    if (c.own >= 0 && j < c.count) {
      float v = s[row * total + j], l = fmaf(scale, v, b);
      if (col_ids ? col_ids[j] == c.own : j == c.own) {
        d = -1.f / (1.f + expf(l));
      } else {
        float e = expf(-fabsf(l));
        d = (l >= 0.f ? 1.f : e) / (1.f + e);
      }
      dot += (double)d * v, sum += d;
      d *= g * scale;
    }
    ds[row * total + j] = d;
  }
  dot = block_sum_double(dot);
  sum = block_sum_double(sum);
  if (threadIdx.x == 0) partial[row] = dot, partial[rows + row] = sum;
}

// dt' = g exp(t') sum s d, db = g sum d. One block.
extern "C" __global__ void __launch_bounds__(1024) sigmoid_scalars(float *d_scale, float *d_bias, const double *partial,
                                                                   const float *log_scale, const int *own, const float *dy,
                                                                   int rows) {
  double dot = block_total(partial, rows), sum = block_total(partial + rows, rows);
  double g = dy[0] / (float)max(1, block_counted(own, rows));
  if (threadIdx.x == 0) d_scale[0] = (float)(g * expf(log_scale[0]) * dot), d_bias[0] = (float)(g * sum);
}
