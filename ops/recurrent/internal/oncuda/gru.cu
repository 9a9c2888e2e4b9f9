// Kernels of the gated recurrent unit. Packed rows are those of the host's step: row from[t] + i is token t of the sequence of
// rank i, rows from[l] on are of no token. P is the type of what products read.

// packing is what packingOf gives of the r sequences of l places.
struct Packing {
  const int *order, *length, *alive, *from;
  int l;
  __device__ Packing(const int *v, int r, int l) : order(v), length(v + r), alive(v + 2 * r), from(v + 2 * r + l + 1), l(l) {}

  // The place of token t of the sequence of rank i.
  __device__ size_t place(int i, int t, bool reverse) const { return (size_t)order[i] * l + (reverse ? length[i] - 1 - t : t); }

  // The step of a packed row, l for one of no token.
  __device__ int step(int row) const {
    int lo = 0, hi = l; // from[lo] <= row < from[hi + 1]
    while (lo < hi) {
      int mid = (lo + hi + 1) / 2;
      if (from[mid] <= row) lo = mid;
      else hi = mid - 1;
    }
    return lo;
  }
};

// tanh(x + y) = 1 - 2 / (exp(2 (x + y)) + 1), as the host makes it.
__device__ __forceinline__ float tanh_sum(float x, float y) { return 1.f - 2.f / (expf(2.f * (x + y)) + 1.f); }

// The length of sequence k, -1 for one that is not in [0, l].
__device__ __forceinline__ int length_of(const int *lengths, int k, int l) {
  int n = lengths ? lengths[k] : l;
  return n < 0 || n > l ? -1 : n;
}

// The packing of r sequences: a thread for each of them, and for each step. An error cannot be told here: a sequence whose
// length is not in [0, l] has no token and the length -1, which makes its states NaN.
extern "C" __global__ void pack(int *out, const int *lengths, int r, int l) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < r) {
    int n = length_of(lengths, at, l), rank = 0;
    for (int k = 0; k < r; k++) {
      int other = length_of(lengths, k, l);
      rank += other > n || other == n && k < at;
    }
    out[rank] = at, out[r + rank] = n;
    return;
  }
  int t = at - r, alive = 0, from = 0;
  if (t > l) return;
  for (int k = 0; k < r; k++) {
    int n = max(length_of(lengths, k, l), 0);
    alive += n > t;
    from += min(n, t);
  }
  out[2 * r + t] = alive, out[2 * r + l + 1 + t] = from;
}

#ifdef P
// to (r l, ld) = rows of x (r l, n) in packed order, a block each, with zeros in columns from n on and in rows of no token.
extern "C" __global__ void pack_rows(P *to, const float *x, const int *packing, int r, int l, int n, int ld, int reverse) {
  Packing p(packing, r, l);
  int row = blockIdx.x, t = p.step(row);
  const float *from = t < l ? x + p.place(row - p.from[t], t, reverse) * n : 0;
  to += (size_t)row * ld;
  for (int k = threadIdx.x; k < ld; k += blockDim.x) to[k] = from_float<P>(from && k < n ? from[k] : 0.f);
}

// to (r l, ld) = the states (r l, h) before each token in packed order, start (r, h) or null before the first.
extern "C" __global__ void pack_before(P *to, const float *states, const float *start, const int *packing, int r, int l, int h,
    int ld, int reverse) {
  Packing p(packing, r, l);
  int row = blockIdx.x, t = p.step(row), i = t < l ? row - p.from[t] : 0;
  const float *from = 0;
  if (t < l && t > 0) from = states + p.place(i, t - 1, reverse) * h;
  else if (t == 0 && t < l && start) from = start + (size_t)p.order[i] * h;
  to += (size_t)row * ld;
  for (int k = threadIdx.x; k < ld; k += blockDim.x) to[k] = from_float<P>(from && k < h ? from[k] : 0.f);
}

// What the steps begin with: state (r, h), and rounded to half (r, ld), is start by rank or 0, and states (r l, h) are 0 beyond
// the lengths. A block for each rank and place.
extern "C" __global__ void begin_states(float *state, P *half, float *states, const float *start, const int *packing, int r,
    int l, int h, int ld) {
  Packing p(packing, r, l);
  int i = blockIdx.x % r, t = blockIdx.x / r, n = p.length[i];
  if (t >= n) {
    float *to = states + ((size_t)p.order[i] * l + t) * h;
    for (int k = threadIdx.x; k < h; k += blockDim.x) to[k] = n < 0 ? NOT_A_NUMBER : 0.f;
  }
  if (t > 0) return;
  for (int k = threadIdx.x; k < ld; k += blockDim.x) {
    float v = start && k < h ? start[(size_t)p.order[i] * h + k] : 0.f;
    if (k < h) state[(size_t)i * h + k] = v;
    half[(size_t)i * ld + k] = from_float<P>(v);
  }
}

// Step t of a unit,
//   r = sigmoid(x_r + h_r), z = sigmoid(x_z + h_z), n = tanh(x_n + b_in + r (h_n + b_hn)), h' = n + z (h - n).
// rows (r l, 4h) have x's products of packed tokens as [new | reset | update | ...] and get [n | r | z | h_n + b_hn]. hidden
// (r, 3h) are the products of the states, reset, update and new, null for those of 0; bias_ih is null where it is in rows.
extern "C" __global__ void gates(float *rows, const float *hidden, const float *bias_ih, const float *bias_hh, float *state,
    P *half, float *states, const int *packing, int r, int l, int h, int ld, int t, int reverse) {
  Packing p(packing, r, l);
  int at = blockIdx.x * blockDim.x + threadIdx.x, i = at / h, k = at - i * h;
  if (i >= p.alive[t]) return;
  float *row = rows + (size_t)(p.from[t] + i) * 4 * h + k;
  const float *own = hidden + (size_t)i * 3 * h + k;
  float reset = row[h] + bias_hh[k], update = row[2 * h] + bias_hh[h + k], gate = bias_hh[2 * h + k], fresh = row[0];
  if (bias_ih) reset += bias_ih[k], update += bias_ih[h + k], fresh += bias_ih[2 * h + k];
  if (hidden) reset += own[0], update += own[h], gate += own[2 * h];
  reset = sigmoid(reset), update = sigmoid(update);
  fresh = tanhf(fresh + reset * gate);
  float *s = state + (size_t)i * h + k, next = fresh + update * (*s - fresh);
  row[0] = fresh, row[h] = reset, row[2 * h] = update, row[3 * h] = gate;
  *s = next;
  half[(size_t)i * ld + k] = from_float<P>(next);
  states[p.place(i, t, reverse) * h + k] = next;
}

// What the way back begins with: carry (r, h) is 0, and rows (r l, 4h) of no token. A block for each row.
extern "C" __global__ void begin_back(float *rows, float *carry, const int *packing, int r, int l, int h) {
  Packing p(packing, r, l);
  size_t row = blockIdx.x;
  if (row < r)
    for (int k = threadIdx.x; k < h; k += blockDim.x) carry[row * h + k] = 0.f;
  if (row >= p.from[l])
    for (int k = threadIdx.x; k < 4 * h; k += blockDim.x) rows[row * 4 * h + k] = 0.f;
}

// Back through step t: to (r l, 4h) gets the gradients of what the gates (r l, 4h) were made of, and d (r, ld) those of the
// products of the states, reset, update and new, rounded, 0 for a sequence without a token t. carry is the gradient of the
// state, then of the one before so far as it does not come through the products. to may be the gates.
extern "C" __global__ void gates_back(float *to, const float *gates, P *d, float *carry, const float *states,
    const float *start, const float *dy, const int *packing, int r, int l, int h, int ld, int t, int reverse) {
  Packing p(packing, r, l);
  int at = blockIdx.x * blockDim.x + threadIdx.x, i = at / h, k = at - i * h;
  if (i >= r) return;
  d += (size_t)i * ld + k;
  if (i >= p.alive[t]) {
    d[0] = d[h] = d[2 * h] = from_float<P>(0.f);
    return;
  }
  size_t row = (size_t)(p.from[t] + i) * 4 * h + k;
  float before = 0;
  if (t > 0) before = states[p.place(i, t - 1, reverse) * h + k];
  else if (start) before = start[(size_t)p.order[i] * h + k];
  float *s = carry + (size_t)i * h + k;
  float g = *s + dy[p.place(i, t, reverse) * h + k], c = gates[row], reset = gates[row + h], z = gates[row + 2 * h],
      gate = gates[row + 3 * h];
  float dn = g * (1 - z) * (1 - c * c), dr = dn * gate * reset;
  float dreset = dr - dr * reset, dupdate = g * z * (before - c) * (1 - z), dgate = dn * reset;
  *s = g * z;
  to[row] = dn, to[row + h] = dreset, to[row + 2 * h] = dupdate, to[row + 3 * h] = dgate;
  d[0] = from_float<P>(dreset), d[h] = from_float<P>(dupdate), d[2 * h] = from_float<P>(dgate);
}
#endif

// to (r, h) = x (r, h), whose rows are by rank.
extern "C" __global__ void unrank(float *to, const float *x, const int *packing, int r, int l, int h) {
  Packing p(packing, r, l);
  size_t at = (size_t)p.order[blockIdx.x] * h;
  for (int k = threadIdx.x; k < h; k += blockDim.x) to[at + k] = x[(size_t)blockIdx.x * h + k];
}

// to (r l, n) = rows of x in packed order at their places, 0 beyond the lengths; or those are added. A block for each rank and
// place.
extern "C" __global__ void unpack_rows(float *to, const float *x, const int *packing, int r, int l, int n, int reverse, int add) {
  Packing p(packing, r, l);
  int i = blockIdx.x % r, t = blockIdx.x / r;
  bool token = t < p.length[i];
  if (!token && add) return;
  to += (token ? p.place(i, t, reverse) : (size_t)p.order[i] * l + t) * n;
  if (token) x += (size_t)(p.from[t] + i) * n;
  for (int k = threadIdx.x; k < n; k += blockDim.x) to[k] = (token ? x[k] : 0.f) + (add ? to[k] : 0.f);
}

// parts (blocks, cols) = sums of each rows of x, all of which are summed.
extern "C" __global__ void sum_blocks(float *parts, const float *x, int rows, int cols, int each) {
  int col = blockIdx.x * blockDim.x + threadIdx.x, first = blockIdx.y * each;
  if (col >= cols) return;
  float sum = 0;
  for (int k = first; k < min(first + each, rows); k++) sum += x[(size_t)k * cols + col];
  parts[(size_t)blockIdx.y * cols + col] = sum;
}

// The sums of parts (blocks, 4h) of [new | reset | update | gate]: those of the input's gates as reset, update and new, and
// those of the states' gates, reset, update and gate.
extern "C" __global__ void bias_sums(float *input, float *hidden, const float *parts, int blocks, int h) {
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (col >= 4 * h) return;
  float sum = 0;
  for (int k = 0; k < blocks; k++) sum += parts[(size_t)k * 4 * h + col];
  if (col < h) input[2 * h + col] = sum;
  else {
    hidden[col - h] = sum;
    if (col < 3 * h) input[col - h] = sum;
  }
}
