// Vectors of queries for each context, of pairs.cu: of their sequences (1), their tokens (2), or both (3), a sequence ahead of its
// tokens.

// The vector that a warp works on, that of r for context k; ok says whether it belongs to something.
__device__ __forceinline__ bool vector_of(int64 &row, int &r, int &k, bool &ok, int axis, const Side &rows, const Side &columns) {
  row = ((int64)blockIdx.x * 256 + threadIdx.x) / WARP;
  int n = rows.size(axis);
  k = row / n, r = row - (int64)k * n;
  if (k >= columns.sequences) return false;
  ok = rows.has(axis, r) && columns.has(1, k);
  return true;
}

// tanh(x) = 1 - 2 / (exp(2 x) + 1), as the host makes it.
__device__ __forceinline__ float tanh_of(float x) { return 1.f - 2.f / (expf(2.f * x) + 1.f); }

// to = g x + (1 - g) u with g = sigmoid and u = tanh of gates (2 cols), which are kept.
extern "C" __global__ void __launch_bounds__(256) gated(float *to, float *kept, const float *x, const float *gates, int cols, BLOCK) {
  SIDES;
  int64 row;
  int r, k;
  bool ok;
  if (!vector_of(row, r, k, ok, 2, rows, columns)) return;
  to += row * cols, x += row * cols, kept += row * 2 * cols, gates += row * 2 * cols;
  EACH_COLUMN(c, 0, cols) {
    float g = ok ? sigmoid(gates[c]) : 0.f, u = ok ? tanh_of(gates[cols + c]) : 0.f;
    kept[c] = g, kept[cols + c] = u;
    to[c] = ok ? u + g * (x[c] - u) : 0.f;
  }
}

// Back through gated, whose gates are kept: dx, and dgates of what g and u were made of. dx may be dy.
extern "C" __global__ void __launch_bounds__(256) gated_slopes(float *dx, float *dgates, const float *x, const float *kept, const float *dy,
    int cols, BLOCK) {
  SIDES;
  int64 row;
  int r, k;
  bool ok;
  if (!vector_of(row, r, k, ok, 2, rows, columns)) return;
  dx += row * cols, dy += row * cols, x += row * cols, kept += row * 2 * cols, dgates += row * 2 * cols;
  EACH_COLUMN(c, 0, cols) {
    float g = kept[c], u = kept[cols + c], d = ok ? dy[c] : 0.f;
    dx[c] = d * g;
    dgates[c] = ok ? d * (x[c] - u) * g * (1 - g) : 0.f;
    dgates[cols + c] = d * (1 - g) * (1 - u * u);
  }
}

// to = x / (|x| + eps), of which lengths get |x|. to may be x.
extern "C" __global__ void __launch_bounds__(256) unit(float *to, float *lengths, const float *x, int axis, int cols, float eps, BLOCK) {
  SIDES;
  int64 row;
  int r, k;
  bool ok;
  if (!vector_of(row, r, k, ok, axis, rows, columns)) return;
  to += row * cols, x += row * cols;
  float squares = 0;
  EACH_COLUMN(c, 0, cols) squares += ok ? x[c] * x[c] : 0.f;
  float length = sqrtf(warp_sum(squares));
  if (LANE == 0) lengths[row] = length;
  EACH_COLUMN(c, 0, cols) to[c] = ok ? x[c] / (length + eps) : 0.f;
}

// dx = dy / (n + eps) - y (y.dy) / n. dx may be dy.
extern "C" __global__ void __launch_bounds__(256) unit_slopes(float *dx, const float *y, const float *lengths, const float *dy, int axis,
    int cols, float eps, BLOCK) {
  SIDES;
  int64 row;
  int r, k;
  bool ok;
  if (!vector_of(row, r, k, ok, axis, rows, columns)) return;
  dx += row * cols, dy += row * cols, y += row * cols;
  float scale = 1, along = 0, length = ok ? lengths[row] : 0.f;
  if (length > 0) {
    EACH_COLUMN(c, 0, cols) along += y[c] * dy[c];
    scale = 1 / (length + eps), along = warp_sum(along) / length;
  }
  EACH_COLUMN(c, 0, cols) dx[c] = ok ? scale * dy[c] - along * y[c] : 0.f;
}

// Vectors that belong to nothing of a side, or to no query and context, are set to 0.
extern "C" __global__ void __launch_bounds__(256) clear_padding(float *x, int side, int axis, int each, int cols, BLOCK) {
  SIDES;
  int64 i = (int64)blockIdx.x * 256 + threadIdx.x;
  int row = i / cols;
  bool ok;
  if (each) {
    int n = rows.size(axis), k = row / n;
    if (k >= columns.sequences) return;
    ok = rows.has(axis, row - k * n) && columns.has(1, k);
  } else {
    Side own = side ? columns : rows;
    if (row >= own.size(axis)) return;
    ok = own.has(axis, row);
  }
  if (!ok) x[i] = 0;
}

// out (cols) = or += the sums of rows of x, a block for 32 columns.
extern "C" __global__ void __launch_bounds__(256) sum_columns(float *out, const float *x, int n, int cols, int add) {
  __shared__ float parts[8][32];
  int lane = threadIdx.x % 32, part = threadIdx.x / 32, c = blockIdx.x * 32 + lane;
  float sum = 0;
  if (c < cols)
    for (int r = part; r < n; r += 8) sum += x[(int64)r * cols + c];
  parts[part][lane] = sum;
  __syncthreads();
  if (part > 0 || c >= cols) return;
  for (int k = 1; k < 8; k++) sum += parts[k][lane];
  out[c] = add ? out[c] + sum : sum;
}

// to (n, cols) = row i / count % size of x (., cols).
extern "C" __global__ void __launch_bounds__(256) repeat(float *to, const float *x, int64 n, int count, int size, int cols) {
  int64 i = (int64)blockIdx.x * 256 + threadIdx.x, row = i / cols;
  if (i < n * cols) to[i] = x[row / count % size * cols + (i - row * cols)];
}

// to (n) = or += a times the sum of count values x, value i of which begin at i / inner * outer + i % inner and are step apart.
extern "C" __global__ void __launch_bounds__(256) sum_repeated(float *to, const float *x, int64 n, int64 inner, int64 outer, int64 step,
    int count, float a, int add) {
  int64 i = (int64)blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
  float sum = 0;
  x += i / inner * outer + i % inner;
  for (int k = 0; k < count; k++) sum += x[k * step];
  to[i] = add ? to[i] + a * sum : a * sum;
}

// to (n, m) = x (m, n) transposed.
extern "C" __global__ void __launch_bounds__(256) transpose(float *to, const float *x, int n, int m) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n * m) to[i] = x[i % m * n + i / m];
}

// to = (a x - y)^2 with factors a (rows, contexts), 1 without, and y of queries; with dy 2 (a x - y) dy. to may be dy.
extern "C" __global__ void __launch_bounds__(256) squared_difference(float *to, const float *x, const float *y, const float *a,
    const float *dy, int axis, int cols, BLOCK) {
  SIDES;
  int64 row;
  int r, k;
  bool ok;
  if (!vector_of(row, r, k, ok, axis, rows, columns)) return;
  float factor = a && ok ? a[(int64)r * columns.sequences + k] : 1.f;
  to += row * cols, x += row * cols, y += (int64)r * cols;
  if (dy) dy += row * cols;
  EACH_COLUMN(c, 0, cols) {
    float d = ok ? factor * x[c] - y[c] : 0.f;
    to[c] = !ok ? 0.f : dy ? 2 * d * dy[c] : d * d;
  }
}

// to = or += a x with factors a (rows, contexts). to may be x.
extern "C" __global__ void __launch_bounds__(256) row_times(float *to, const float *x, const float *a, int axis, int cols, int add, BLOCK) {
  SIDES;
  int64 row;
  int r, k;
  bool ok;
  if (!vector_of(row, r, k, ok, axis, rows, columns)) return;
  float factor = ok ? a[(int64)r * columns.sequences + k] : 0.f;
  to += row * cols, x += row * cols;
  EACH_COLUMN(c, 0, cols) {
    float v = ok ? factor * x[c] : 0.f;
    to[c] = add ? to[c] + v : v;
  }
}

// to (rows, contexts) = x.y.
extern "C" __global__ void __launch_bounds__(256) row_dots(float *to, const float *x, const float *y, int axis, int cols, BLOCK) {
  SIDES;
  int64 row;
  int r, k;
  bool ok;
  if (!vector_of(row, r, k, ok, axis, rows, columns)) return;
  float sum = 0;
  x += row * cols, y += row * cols;
  EACH_COLUMN(c, 0, cols) sum += ok ? x[c] * y[c] : 0.f;
  sum = warp_sum(sum);
  if (LANE == 0) to[(int64)r * columns.sequences + k] = sum;
}

// joined vectors = those of sequences and of tokens, 0 without the latter.
extern "C" __global__ void __launch_bounds__(256) join(float *to, const float *wholes, const float *tokens, int cols, BLOCK) {
  SIDES;
  int64 row;
  int r, k;
  bool ok;
  if (!vector_of(row, r, k, ok, 3, rows, columns)) return;
  int s = rows.sequence(3, r), t = r - s * (rows.len + 1);
  const float *from = t == 0 ? wholes + ((int64)k * rows.sequences + s) * cols
                             : tokens ? tokens + ((int64)k * rows.tokens + s * rows.len + t - 1) * cols : nullptr;
  to += row * cols;
  EACH_COLUMN(c, 0, cols) to[c] = ok && from ? from[c] : 0.f;
}

// Vectors of sequences (axis 1), or of tokens (2), of joined ones.
extern "C" __global__ void __launch_bounds__(256) part(float *to, const float *x, int axis, int cols, BLOCK) {
  SIDES;
  int64 row;
  int r, k;
  bool ok;
  if (!vector_of(row, r, k, ok, axis, rows, columns)) return;
  int s = rows.sequence(axis, r), t = axis == 1 ? 0 : r - s * rows.len + 1;
  to += row * cols, x += ((int64)k * rows.size(3) + s * (rows.len + 1) + t) * cols;
  EACH_COLUMN(c, 0, cols) to[c] = ok ? x[c] : 0.f;
}

// w (., len + 1) = softmax of each of them over the joined vectors of a pair, for joined ones (axis 3) or those of sequences (1); with
// p, the weights, the gradient p (w - sum p w).
extern "C" __global__ void __launch_bounds__(256) attention(float *w, const float *p, int axis, BLOCK) {
  SIDES;
  int64 row;
  int r, k;
  bool ok;
  if (!vector_of(row, r, k, ok, axis, rows, columns)) return;
  int wide = rows.len + 1, n = ok ? rows.count(rows.sequence(axis, r)) + 1 : 0;
  w += row * wide;
  for (int c = n + LANE; c < wide; c += WARP) w[c] = 0;
  if (n == 0) return;
  float top = -INFINITY_F, sum = 0;
  if (p) {
    p += row * wide;
    EACH_COLUMN(c, 0, n) sum += p[c] * w[c];
    sum = warp_sum(sum);
    EACH_COLUMN(c, 0, n) w[c] = p[c] * (w[c] - sum);
    return;
  }
  EACH_COLUMN(c, 0, n) top = fmaxf(top, w[c]);
  top = warp_max(top);
  EACH_COLUMN(c, 0, n) sum += w[c] = expf(w[c] - top);
  sum = warp_sum(sum);
  EACH_COLUMN(c, 0, n) w[c] /= sum;
}

// to = joined vectors less that of their sequence.
extern "C" __global__ void __launch_bounds__(256) from_first(float *to, const float *x, int cols, BLOCK) {
  SIDES;
  int64 row;
  int r, k;
  bool ok;
  if (!vector_of(row, r, k, ok, 3, rows, columns)) return;
  const float *first = x + (row - r + (int64)rows.sequence(3, r) * (rows.len + 1)) * cols;
  to += row * cols, x += row * cols;
  EACH_COLUMN(c, 0, cols) to[c] = ok ? x[c] - first[c] : 0.f;
}

// to (pairs, cols) = sum a x / (sum a + eps) over joined vectors, a = sigmoid of their logits, which are kept with their sum.
extern "C" __global__ void __launch_bounds__(256) gather(float *to, float *gates, float *sums, const float *x, const float *logits, int cols,
    float eps, BLOCK) {
  SIDES;
  int64 row;
  int r, k;
  bool ok;
  if (!vector_of(row, r, k, ok, 1, rows, columns)) return;
  int n = ok ? rows.count(r) + 1 : 0;
  int64 node = (int64)k * rows.size(3) + (int64)r * (rows.len + 1);
  to += row * cols, x += node * cols, gates += node, logits += node;
  float sum = 0;
  EACH_COLUMN(i, 0, rows.len + 1) sum += gates[i] = i < n ? sigmoid(logits[i]) : 0.f;
  sum = warp_sum(sum) + eps;
  if (LANE == 0) sums[row] = sum;
  EACH_COLUMN(c, 0, cols) {
    float v = 0;
    for (int i = 0; i < n; i++) v += sigmoid(logits[i]) / sum * x[(int64)i * cols + c];
    to[c] = v;
  }
}

// dx and dlogits of gather from dy (pairs, cols).
extern "C" __global__ void __launch_bounds__(256) gather_slopes(float *dx, float *dlogits, const float *x, const float *gates,
    const float *sums, const float *dy, int cols, BLOCK) {
  SIDES;
  int64 row;
  int r, k;
  bool ok;
  if (!vector_of(row, r, k, ok, 1, rows, columns)) return;
  int n = ok ? rows.count(r) + 1 : 0;
  int64 node = (int64)k * rows.size(3) + (int64)r * (rows.len + 1);
  dx += node * cols, dlogits += node, x += node * cols, gates += node, dy += row * cols;
  float mean = 0, sum = sums[row];
  for (int pass = 0; pass < 2; pass++) // of gates times their gradients, then these
    for (int i = 0; i <= rows.len; i++) {
      float d = 0, a = i < n ? gates[i] : 0.f;
      EACH_COLUMN(c, 0, cols) {
        d += i < n ? dy[c] * x[(int64)i * cols + c] : 0.f;
        if (pass == 0) dx[(int64)i * cols + c] = i < n ? a / sum * dy[c] : 0.f;
      }
      d = warp_sum(d);
      if (pass == 0) mean += a * d / sum;
      else if (LANE == 0) dlogits[i] = i < n ? (d - mean) / sum * a * (1 - a) : 0.f;
    }
}
