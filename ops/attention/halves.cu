// Attention by the tensor cores: products of bfloat16 with sums of float32, in the manner of FlashAttention-2 (Dao 2023).
// A warp has 16 queries (or keys) as left operand in registers; blocks of keys (or queries) pass through shared memory.
//
// More macros: ATTEND, ATTEND_DQ, ATTEND_DKV or ATTEND_DBIAS, the kernel that is wanted; WARPS of a block; TILE, the keys (or queries) in shared memory at a time, 32 or 64; STAGES, 2 where there are
// several of these, which are copied ahead, else 1.

#define WIDTH ((E + 15) / 16 * 16)
#define STEPS (WIDTH / 16)
#define STRIDE (WIDTH + 8) // an odd number of 16 bytes: ldmatrix meets each bank once
#define THREADS (WARPS * WARP)
// Blocks of a multiprocessor that so many warps are: registers are shared out for them where the heads are narrow.
#define AT_ONCE(warps) (WIDTH <= 64 && WARPS < warps ? warps / WARPS : 1)
#define BLOCK (WARPS * 16)  // queries (or keys) of a block
#define PANEL (TILE * STRIDE) // elements of a matrix in shared memory
#define MASK_WORDS (WARPS / 2 + 1) // of dropout, of a query and the keys of a block

typedef unsigned Left[STEPS][4];    // 16 rows of WIDTH elements as left operands
typedef float Sums[WIDTH / 8][4];   // 16 rows of WIDTH sums: elements 0 and 1 of row lane/4, 2 and 3 of row lane/4+8

__device__ __forceinline__ uint32 pack(float lo, float hi) {
#ifdef EMULATED
  return pack_bf16(lo, hi);
#else
  uint32 x;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(x) : "f"(hi), "f"(lo));
  return x;
#endif
}

// Copies four bytes to shared memory beside the thread's other work; zeros where not valid.
__device__ __forceinline__ void copy_word(void *shared, const void *global, bool valid) {
#ifdef EMULATED
  *(uint32 *)shared = valid ? *(const uint32 *)global : 0;
#else
  int bytes = valid ? 4 : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(shared)), "l"(global), "r"(bytes) : "memory");
#endif
}

// Two neighbours in a row as floats.
__device__ __forceinline__ float2 load_pair(const float *x) {
  if (E % 2 == 0) return *reinterpret_cast<const float2 *>(x);
  return make_float2(x[0], x[1]);
}

__device__ __forceinline__ float2 load_pair(const bf16 *x) {
  if (E % 2 == 0) {
    uint32 w = *reinterpret_cast<const uint32 *>(x);
    return make_float2(__uint_as_float(w << 16), __uint_as_float(w & 0xffff0000u));
  }
  return make_float2(to_float(x[0]), to_float(x[1]));
}

template <class T> __device__ __forceinline__ float2 pair_at(const T *x, int ld, int rows, int row, int col) {
  if (row >= rows || col >= E) return make_float2(0, 0);
  x += row_offset(row, ld) + col;
  if (E % 2 != 0 && col + 1 == E) return make_float2(to_float(x[0]), 0);
  return load_pair(x);
}

template <class T> __device__ __forceinline__ void store_pair(T *x, int col, float a, float b) {
  if (col < E) x[col] = from_float<T>(a);
  if (col + 1 < E) x[col + 1] = from_float<T>(b);
}

#if E % 2 == 0
template <> __device__ __forceinline__ void store_pair<float>(float *x, int col, float a, float b) {
  if (col < E) *reinterpret_cast<float2 *>(x + col) = make_float2(a, b);
}
template <> __device__ __forceinline__ void store_pair<bf16>(bf16 *x, int col, float a, float b) {
  if (col < E) *reinterpret_cast<uint32 *>(x + col) = pack(a, b);
}
#endif

// Sets a to 16 rows of x, ld elements apart, those from rows on to zeros.
template <class T> __device__ __forceinline__ void load_left(Left &a, const T *x, int ld, int rows) {
  int row = threadIdx.x % WARP / 4, col = threadIdx.x % 4 * 2;
#pragma unroll
  for (int k = 0; k < STEPS; k++)
#pragma unroll
    for (int i = 0; i < 4; i++) {
      float2 v = pair_at(x, ld, rows, row + i % 2 * 8, k * 16 + i / 2 * 8 + col);
      a[k][i] = pack(v.x, v.y);
    }
}

// Writes 16 rows of sums times scale; nan: NaN instead.
template <class T> __device__ __forceinline__ void store_rows(T *x, int ld, int rows, const Sums &y, float top, float bottom) {
  int row = threadIdx.x % WARP / 4, col = threadIdx.x % 4 * 2;
#pragma unroll
  for (int n = 0; n < WIDTH / 8; n++) {
    if (row < rows) store_pair(x + row_offset(row, ld), n * 8 + col, y[n][0] * top, y[n][1] * top);
    if (row + 8 < rows) store_pair(x + row_offset(row + 8, ld), n * 8 + col, y[n][2] * bottom, y[n][3] * bottom);
  }
}

// Eight neighbours in a row, the first n of them, as bfloat16.
__device__ __forceinline__ uint4 load8(const float *x, int n) {
  float v[8];
#pragma unroll
  for (int i = 0; i < 8; i += 4) {
    if (E % 4 == 0 && i < n) {
      float4 y = *reinterpret_cast<const float4 *>(x + i);
      v[i] = y.x, v[i + 1] = y.y, v[i + 2] = y.z, v[i + 3] = y.w;
    } else {
#pragma unroll
      for (int j = i; j < i + 4; j++) v[j] = E % 4 != 0 && j < n ? x[j] : 0.f;
    }
  }
  return make_uint4(pack(v[0], v[1]), pack(v[2], v[3]), pack(v[4], v[5]), pack(v[6], v[7]));
}

__device__ __forceinline__ uint4 load8(const bf16 *x, int n) {
  uint32 v[8];
#pragma unroll
  for (int j = 0; j < 8; j++) v[j] = j < n ? x[j].bits : 0;
  return make_uint4(v[0] | v[1] << 16, v[2] | v[3] << 16, v[4] | v[5] << 16, v[6] | v[7] << 16);
}

// Copies the first n of eight neighbours to shared memory as bfloat16, and zeros after them. bfloat16 whose rows begin at
// multiples of 16 bytes arrives with the next cp_async_commit. there is any address that may be read.
__device__ __forceinline__ void copy8(bf16 *to, const bf16 *x, int n, const bf16 *there) {
  if (E % 8 == 0) cp_async_16(to, n > 0 ? x : there, n > 0);
  else *reinterpret_cast<uint4 *>(to) = load8(x, n);
}

__device__ __forceinline__ void copy8(bf16 *to, const float *x, int n, const float *there) { *reinterpret_cast<uint4 *>(to) = load8(x, n); }

// Copies TILE rows of x, ld elements apart, to shared memory, those from rows on as zeros. base is any address that may be read.
template <class T> __device__ __forceinline__ void copy_rows(bf16 *to, const T *x, int ld, int rows, const T *base) {
  const int pieces = WIDTH / 8, all = TILE * pieces;
  int row = threadIdx.x / pieces, col = threadIdx.x % pieces * 8;
  to += row * STRIDE + col, x += row_offset(row, ld) + col;
  if (THREADS % pieces == 0) { // each thread copies a column of pieces
    const int step = THREADS / pieces;
#pragma unroll
    for (int k = 0; k < TILE; k += step)
      if (TILE % step == 0 || row + k < TILE) copy8(to + k * STRIDE, x + row_offset(k, ld), row + k < rows ? E - col : 0, base);
    return;
  }
#pragma unroll
  for (int first = 0; first < all; first += THREADS) {
    int i = first + threadIdx.x, at = i / pieces, c = i % pieces * 8;
    if (i < all) copy8(to + (at - row) * STRIDE + c - col, x + row_offset(at - row, ld) + c - col, at < rows ? E - c : 0, base);
  }
}

// y (16, 16) += a b^T for the 16 rows of b at element k*16, a = left[k].
__device__ __forceinline__ void multiply_rows(float (&y0)[4], float (&y1)[4], const unsigned (&a)[4], const bf16 *b, int k) {
  int lane = threadIdx.x % WARP;
  unsigned x[4];
  ldmatrix_x4(x, b + (lane / 16 * 8 + lane % 8) * STRIDE + k * 16 + lane / 8 % 2 * 8);
  unsigned lo[2] = {x[0], x[1]}, hi[2] = {x[2], x[3]};
  mma_m16n8k16_bf16(y0, a, lo, y0);
  mma_m16n8k16_bf16(y1, a, hi, y1);
}

// y (16, WIDTH) += a b for the 16 rows of b.
__device__ __forceinline__ void multiply(Sums &y, const unsigned (&a)[4], const bf16 *b) {
  int lane = threadIdx.x % WARP;
#pragma unroll
  for (int n = 0; n < STEPS; n++) {
    unsigned x[4];
    ldmatrix_x4_trans(x, b + (lane / 8 % 2 * 8 + lane % 8) * STRIDE + n * 16 + lane / 16 * 8);
    unsigned lo[2] = {x[0], x[1]}, hi[2] = {x[2], x[3]};
    mma_m16n8k16_bf16(y[2 * n], a, lo, y[2 * n]);
    mma_m16n8k16_bf16(y[2 * n + 1], a, hi, y[2 * n + 1]);
  }
}

// Sets a to sums (16, 16), rounded, as left operand.
__device__ __forceinline__ void to_left(unsigned (&a)[4], const float (&y0)[4], const float (&y1)[4]) {
  a[0] = pack(y0[0], y0[1]), a[1] = pack(y0[2], y0[3]);
  a[2] = pack(y1[0], y1[1]), a[3] = pack(y1[2], y1[3]);
}

// The sum and the largest over the four lanes that share a row.
__device__ __forceinline__ float row_sum(float x) {
  x += __shfl_xor_sync(FULL, x, 1);
  return x + __shfl_xor_sync(FULL, x, 2);
}

__device__ __forceinline__ float row_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(FULL, x, 1));
  return fmaxf(x, __shfl_xor_sync(FULL, x, 2));
}

// What a warp knows of its 16 queries of a row and head: the lane's are query and query + 8.
struct Queries {
  int query, lq, lk, keys; // keys: that the row sees
  const int *bits;         // of the row's and head's first query
  const float *bias;       // of the head
  float scale;
};

// The words of the dropout mask of keys from a multiple of 32 on, shifted to the lane's first column.
__device__ __forceinline__ uint32 mask_word(const Queries &x, int half, int key) {
  int words = (x.lk + 31) / 32, word = key / 32, query = x.query + half * 8;
  return word < words && query < x.lq ? (uint32)x.bits[(size_t)query * words + word] >> threadIdx.x % 4 * 2 : 0;
}

__device__ __forceinline__ float bias_at(const float *bias, int query, int key, int lq, int lk) {
  return query < lq && key < lk ? bias[(size_t)query * lk + key] * LOG2E : 0.f;
}

#ifdef ATTEND
// Takes TILE keys from key first on into the running softmax of 16 queries (Milakov and Gimelshein 2018): with m the largest
// score so far, l = sum exp(s - m) and o = sum exp(s - m) v. whole: all queries see all of the keys.
template <bool whole>
__device__ __forceinline__ void forward_tile(Sums &o, float (&m)[2], float (&l)[2], const Left &q, const bf16 *k, const bf16 *v, int first, const Queries &x) {
  const int n = TILE / 16;
  int col = threadIdx.x % 4 * 2;
#if DROPOUT
  uint32 drop[2][TILE / 32];
#pragma unroll
  for (int i = 0; i < TILE / 16; i++) drop[i % 2][i / 2] = mask_word(x, i % 2, first + i / 2 * 32);
#endif
  float s[2 * n][4];
#pragma unroll
  for (int j = 0; j < 2 * n; j++) s[j][0] = s[j][1] = s[j][2] = s[j][3] = 0;
#pragma unroll
  for (int step = 0; step < STEPS; step++)
#pragma unroll
    for (int c = 0; c < n; c++)
      if (whole || first + c * 16 < x.keys) multiply_rows(s[2 * c], s[2 * c + 1], q[step], k + c * 16 * STRIDE, step);
  const float unit = BIAS ? 1.f : x.scale * LOG2E; // s * unit is the score times log2 e
#pragma unroll
  for (int j = 0; j < 2 * n; j++)
#pragma unroll
    for (int i = 0; i < 4; i++) {
      int key = first + j * 8 + col + i % 2, query = x.query + i / 2 * 8;
#if BIAS
      s[j][i] = fmaf(s[j][i], x.scale * LOG2E, bias_at(x.bias, query, key, x.lq, x.lk));
#endif
      if (!whole && (key >= x.keys || (CAUSAL && key > query))) s[j][i] = -INFINITY_F;
    }
#pragma unroll
  for (int half = 0; half < 2; half++) {
    float largest = m[half];
#pragma unroll
    for (int j = 0; j < 2 * n; j++) largest = fmaxf(largest, fmaxf(s[j][2 * half], s[j][2 * half + 1]));
    largest = row_max(largest);
    float shift = largest == -INFINITY_F ? 0.f : largest * unit;
    float shrink = power_of_two(fmaf(m[half], unit, -shift)), sum = 0;
    m[half] = largest;
#pragma unroll
    for (int j = 0; j < WIDTH / 8; j++) o[j][2 * half] *= shrink, o[j][2 * half + 1] *= shrink;
#pragma unroll
    for (int j = 0; j < 2 * n; j++)
#pragma unroll
      for (int i = 0; i < 2; i++) {
        float p = power_of_two(fmaf(s[j][2 * half + i], unit, -shift));
        sum += p;
#if DROPOUT
        if (!(drop[half][j / 4] >> (j % 4 * 8 + i) & 1)) p = 0;
#endif
        s[j][2 * half + i] = p;
      }
    l[half] = fmaf(l[half], shrink, sum);
  }
#pragma unroll
  for (int c = 0; c < n; c++)
    if (whole || first + c * 16 < x.keys) {
      unsigned p[4];
      to_left(p, s[2 * c], s[2 * c + 1]);
      multiply(o, p, v + c * 16 * STRIDE);
    }
}

// out = softmax(q k^T scale) v, lse = log sum exp (q k^T scale), for BLOCK queries of a row and head.
extern "C" __global__ void __launch_bounds__(THREADS, AT_ONCE(16)) attend(const Q *q, const KV *kv, const int *index, const int *lengths, const int *bits, const float *bias, O *out,
                                                             float *lse, int lq, int lk, int heads, int seqs, float scale, float rescale) {
  DYNAMIC_SHARED(bf16, room);
  int tiles = (lq + BLOCK - 1) / BLOCK, d = heads * E, lane = threadIdx.x % WARP;
  int h = blockIdx.x / tiles % heads, r = blockIdx.x / tiles / heads, from = blockIdx.x % tiles * BLOCK, mine = from + threadIdx.x / WARP * 16;
  size_t first = ((size_t)r * heads + h) * lq;
  Row row = row_of(index, lengths, r, lk, seqs);
  const KV *k = kv + (size_t)row.sequence * lk * KEY_STRIDE + KEYS_AT + h * E;
  Queries x = {mine + lane / 4, lq, lk, row.keys, bits + first * ((lk + 31) / 32), bias + (size_t)h * lq * lk, scale};

  int seen = CAUSAL ? min(row.keys, from + BLOCK) : row.keys, count = (seen + TILE - 1) / TILE;
  auto copy = [&](int i) {
    bf16 *to = room + i % STAGES * 2 * PANEL;
    const KV *from = k + row_offset(i * TILE, KEY_STRIDE);
    copy_rows(to, from, KEY_STRIDE, row.keys - i * TILE, kv);
    copy_rows(to + PANEL, from + d, KEY_STRIDE, row.keys - i * TILE, kv);
  };
  if (count > 0) copy(0);
  cp_async_commit();
  Left left;
  load_left(left, q + ((size_t)r * lq + mine) * QUERY_STRIDE + h * E, QUERY_STRIDE, lq - mine);
  Sums o = {};
  float m[2] = {-INFINITY_F, -INFINITY_F}, l[2] = {0, 0};
  for (int i = 0; i < count; i++) {
    if (i + 1 < count) copy(i + 1);
    cp_async_commit();
    cp_async_wait<1>();
    __syncthreads();
    const bf16 *at = room + i % STAGES * 2 * PANEL;
    int key = i * TILE;
    if (mine < lq && (!CAUSAL || key < mine + 16)) {
      if (key + TILE <= row.keys && (!CAUSAL || key + TILE <= mine + 1)) forward_tile<true>(o, m, l, left, at, at + PANEL, key, x);
      else forward_tile<false>(o, m, l, left, at, at + PANEL, key, x);
    }
    __syncthreads();
  }
  float factor[2];
#pragma unroll
  for (int half = 0; half < 2; half++) {
    float sum = row_sum(l[half]);
    factor[half] = row.bad ? NOT_A_NUMBER : sum > 0 ? rescale / sum : sum;
    if (lane % 4 == 0 && x.query + half * 8 < lq)
      lse[first + x.query + half * 8] = row.bad ? NOT_A_NUMBER : row.keys == 0 ? 0.f : m[half] * (BIAS ? LN2 : scale) + logf(sum);
  }
  store_rows(out + ((size_t)r * lq + mine) * d + h * E, d, lq - mine, o, factor[0], factor[1]);
}
#endif

#if defined(ATTEND_DQ) || defined(ATTEND_DBIAS)
// The gradients at the scores of 16 queries and 16*n keys from a multiple of 32 on, whose keys and values are at k and v:
//
//	p = exp(q k^T scale - lse)   ds = p (drop(do v^T) - delta)
//
// where delta = rowsum(do * out), which is rowsum(p drop(do v^T)).
template <int n, bool whole>
__device__ __forceinline__ void score_gradients(float (&ds)[2 * n][4], const Left &q, const Left &dout, const bf16 *k, const bf16 *v, int first, const Queries &x,
                                                const float (&lse)[2], const float (&delta)[2], float rescale) {
  int col = threadIdx.x % 4 * 2;
#if DROPOUT
  uint32 drop[2] = {mask_word(x, 0, first) >> first % 32, mask_word(x, 1, first) >> first % 32};
#endif
  float s[2 * n][4];
#pragma unroll
  for (int j = 0; j < 2 * n; j++)
#pragma unroll
    for (int i = 0; i < 4; i++) s[j][i] = ds[j][i] = 0;
#pragma unroll
  for (int step = 0; step < STEPS; step++)
#pragma unroll
    for (int c = 0; c < n; c++) {
      multiply_rows(s[2 * c], s[2 * c + 1], q[step], k + c * 16 * STRIDE, step);
      multiply_rows(ds[2 * c], ds[2 * c + 1], dout[step], v + c * 16 * STRIDE, step);
    }
#pragma unroll
  for (int j = 0; j < 2 * n; j++)
#pragma unroll
    for (int i = 0; i < 4; i++) {
      int key = first + j * 8 + col + i % 2, query = x.query + i / 2 * 8;
      float e = fmaf(s[j][i], x.scale * LOG2E, -lse[i / 2] * LOG2E), g = ds[j][i];
#if BIAS
      e += bias_at(x.bias, query, key, x.lq, x.lk);
#endif
#if DROPOUT
      g = drop[i / 2] >> (j * 8 + i % 2) & 1 ? g * rescale : 0.f;
#endif
      g = power_of_two(e) * (g - delta[i / 2]);
      if (!whole && (key >= x.keys || (CAUSAL && key > query))) g = 0;
      ds[j][i] = g;
    }
}
#endif

#ifdef ATTEND_DQ
// Adds ds k for 16*n keys to dq / scale.
template <int n, bool whole>
__device__ __forceinline__ void query_gradients(Sums &dq, const Left &q, const Left &dout, const bf16 *k, const bf16 *v, int first, const Queries &x,
                                                const float (&lse)[2], const float (&delta)[2], float rescale) {
  float ds[2 * n][4];
  score_gradients<n, whole>(ds, q, dout, k, v, first, x, lse, delta, rescale);
#pragma unroll
  for (int c = 0; c < n; c++) {
    unsigned a[4];
    to_left(a, ds[2 * c], ds[2 * c + 1]);
    multiply(dq, a, k + c * 16 * STRIDE);
  }
}

// dq = ds k scale for BLOCK queries of a row and head, and delta for attend_dkv.
extern "C" __global__ void __launch_bounds__(THREADS, AT_ONCE(12))
    attend_dq(const Q *q, const KV *kv, const int *index, const int *lengths, const int *bits, const float *bias, const O *out, const DO *dout, const float *lse,
              float *delta, DQ *dq, int lq, int lk, int heads, int seqs, float scale, float rescale) {
  DYNAMIC_SHARED(bf16, room);
  int tiles = (lq + BLOCK - 1) / BLOCK, d = heads * E, lane = threadIdx.x % WARP;
  int h = blockIdx.x / tiles % heads, r = blockIdx.x / tiles / heads, from = blockIdx.x % tiles * BLOCK, mine = from + threadIdx.x / WARP * 16;
  size_t first = ((size_t)r * heads + h) * lq, at_out = ((size_t)r * lq + mine) * d + h * E;
  Row row = row_of(index, lengths, r, lk, seqs);
  const KV *k = kv + (size_t)row.sequence * lk * KEY_STRIDE + KEYS_AT + h * E;
  Queries x = {mine + lane / 4, lq, lk, row.keys, bits + first * ((lk + 31) / 32), bias + (size_t)h * lq * lk, scale};

  int seen = CAUSAL ? min(row.keys, from + BLOCK) : row.keys, count = (seen + TILE - 1) / TILE;
  auto copy = [&](int i) {
    bf16 *to = room + i % STAGES * 2 * PANEL;
    const KV *from = k + row_offset(i * TILE, KEY_STRIDE);
    copy_rows(to, from, KEY_STRIDE, row.keys - i * TILE, kv);
    copy_rows(to + PANEL, from + d, KEY_STRIDE, row.keys - i * TILE, kv);
  };
  if (count > 0) copy(0);
  cp_async_commit();
  Left left, grads;
  load_left(left, q + ((size_t)r * lq + mine) * QUERY_STRIDE + h * E, QUERY_STRIDE, lq - mine);
  load_left(grads, dout + at_out, d, lq - mine);
  float mean[2] = {0, 0}, log_sum[2];
#pragma unroll
  for (int n = 0; n < WIDTH / 8; n++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      float2 a = pair_at(out + at_out, d, lq - mine, lane / 4 + half * 8, n * 8 + lane % 4 * 2);
      float2 b = pair_at(dout + at_out, d, lq - mine, lane / 4 + half * 8, n * 8 + lane % 4 * 2);
      mean[half] = fmaf(a.x, b.x, fmaf(a.y, b.y, mean[half]));
    }
#pragma unroll
  for (int half = 0; half < 2; half++) {
    int query = x.query + half * 8;
    mean[half] = row_sum(mean[half]);
    log_sum[half] = query < lq ? lse[first + query] : 0.f;
    if (lane % 4 == 0 && query < lq) delta[first + query] = mean[half];
  }
  Sums sums = {};
  for (int i = 0; i < count; i++) {
    if (i + 1 < count) copy(i + 1);
    cp_async_commit();
    cp_async_wait<1>();
    __syncthreads();
    const bf16 *at = room + i % STAGES * 2 * PANEL;
    if (mine < lq) {
#pragma unroll 1
      for (int c = 0; c < TILE; c += 32) {
        int key = i * TILE + c, left_over = (CAUSAL ? min(row.keys, mine + 16) : row.keys) - key;
        const bf16 *kc = at + c * STRIDE, *vc = kc + PANEL;
        if (left_over >= 32 && (!CAUSAL || key + 32 <= mine + 1)) query_gradients<2, true>(sums, left, grads, kc, vc, key, x, log_sum, mean, rescale);
        else if (left_over > 16) query_gradients<2, false>(sums, left, grads, kc, vc, key, x, log_sum, mean, rescale);
        else if (left_over > 0) query_gradients<1, false>(sums, left, grads, kc, vc, key, x, log_sum, mean, rescale);
      }
    }
    __syncthreads();
  }
  if (row.bad) scale = NOT_A_NUMBER;
  store_rows(dq + ((size_t)r * lq + mine) * QUERY_STRIDE + h * E, QUERY_STRIDE, lq - mine, sums, scale, scale);
}
#endif

#ifdef ATTEND_DKV
// A block of queries in shared memory: TILE rows of q and of dout, the statistics of each query, and the words of its dropout mask.
struct Stage {
  bf16 q[PANEL], dout[PANEL];
  float lse[TILE], delta[TILE];
#if DROPOUT
  uint32 mask[TILE * MASK_WORDS];
#endif
};

// Adds p^T do to dv / rescale and ds^T q to dk / scale for the 16 keys of a warp and 16*n queries.
template <int n, bool whole>
__device__ __forceinline__ void key_gradients(Sums &dk, Sums &dv, const Left &k, const Left &v, const Stage &stage, int c, int first, int key, int word, int keys,
                                              const float *bias, int lq, int lk, float scale, float rescale) {
  int col = threadIdx.x % 4 * 2;
  const bf16 *q = stage.q + c * STRIDE, *dout = stage.dout + c * STRIDE;
  float p[2 * n][4], ds[2 * n][4];
#pragma unroll
  for (int j = 0; j < 2 * n; j++)
#pragma unroll
    for (int i = 0; i < 4; i++) p[j][i] = ds[j][i] = 0;
#pragma unroll
  for (int step = 0; step < STEPS; step++)
#pragma unroll
    for (int a = 0; a < n; a++) {
      multiply_rows(p[2 * a], p[2 * a + 1], k[step], q + a * 16 * STRIDE, step);
      multiply_rows(ds[2 * a], ds[2 * a + 1], v[step], dout + a * 16 * STRIDE, step);
    }
#pragma unroll
  for (int j = 0; j < 2 * n; j++) {
    float2 lse = *reinterpret_cast<const float2 *>(stage.lse + c + j * 8 + col), delta = *reinterpret_cast<const float2 *>(stage.delta + c + j * 8 + col);
#pragma unroll
    for (int i = 0; i < 4; i++) {
      int at = key + i / 2 * 8;
      float e = fmaf(p[j][i], scale * LOG2E, -(i % 2 ? lse.y : lse.x) * LOG2E), g = ds[j][i];
#if BIAS || CAUSAL
      int query = first + c + j * 8 + col + i % 2;
#endif
#if BIAS
      e += bias_at(bias, query, at, lq, lk);
#endif
      float w = power_of_two(e), kept = w;
#if DROPOUT
      bool keep = stage.mask[(c + j * 8 + col + i % 2) * MASK_WORDS + word] >> at % 32 & 1;
      g = keep ? g * rescale : 0.f;
      kept = keep ? w : 0.f;
#endif
      g = w * (g - (i % 2 ? delta.y : delta.x));
      bool visible = whole || at < keys;
#if CAUSAL
      visible = visible && at <= query;
#endif
      p[j][i] = visible ? kept : 0.f;
      ds[j][i] = visible ? g : 0.f;
    }
  }
#pragma unroll
  for (int a = 0; a < n; a++) {
    unsigned x[4];
    to_left(x, p[2 * a], p[2 * a + 1]);
    multiply(dv, x, dout + a * 16 * STRIDE);
    to_left(x, ds[2 * a], ds[2 * a + 1]);
    multiply(dk, x, q + a * 16 * STRIDE);
  }
}

// dk and dv of BLOCK keys of a sequence and head: sums over the queries of all rows that attend to it, in their order.
extern "C" __global__ void __launch_bounds__(THREADS, AT_ONCE(12))
    attend_dkv(const Q *q, const KV *kv, const int *order, const int *starts, const int *lengths, const int *bits, const float *bias, const DO *dout, const float *lse,
               const float *delta, DKV *dkv, int lq, int lk, int heads, float scale, float rescale) {
  DYNAMIC_SHARED(Stage, stages);
  int tiles = (lk + BLOCK - 1) / BLOCK, d = heads * E, lane = threadIdx.x % WARP;
  int h = blockIdx.x / tiles % heads, n = blockIdx.x / tiles / heads, from = blockIdx.x % tiles * BLOCK, mine = from + threadIdx.x / WARP * 16;
  size_t at_keys = ((size_t)n * lk + mine) * KEY_STRIDE + KEYS_AT + h * E;
  Left k, v;
  load_left(k, kv + at_keys, KEY_STRIDE, lk - mine);
  load_left(v, kv + at_keys + d, KEY_STRIDE, lk - mine);
  Sums dk = {}, dv = {};
#if INDEX
  int first_row = starts[n], rows = starts[n + 1] - first_row;
#else
  int rows = 1;
#endif
  int skipped = CAUSAL ? from / TILE : 0; // blocks of queries before all of the keys
  int blocks = max((lq + TILE - 1) / TILE - skipped, 0), count = rows * blocks;
  auto row_at = [&](int i) {
#if INDEX
    return order[first_row + i];
#else
    return n;
#endif
  };
  auto copy = [&](int i, int r, int query) { // the queries from there on of row r
    Stage &to = stages[i % STAGES];
    int there = lq - query;
    copy_rows(to.q, q + ((size_t)r * lq + query) * QUERY_STRIDE + h * E, QUERY_STRIDE, there, q);
    copy_rows(to.dout, dout + ((size_t)r * lq + query) * d + h * E, d, there, dout);
    size_t first = ((size_t)r * heads + h) * lq + query;
    for (int j = threadIdx.x; j < TILE; j += THREADS) {
      copy_word(to.lse + j, j < there ? lse + first + j : lse, j < there);
      copy_word(to.delta + j, j < there ? delta + first + j : delta, j < there);
    }
#if DROPOUT
    int words = (lk + 31) / 32;
    for (int j = threadIdx.x; j < TILE * MASK_WORDS; j += THREADS) {
      int at = j / MASK_WORDS, word = from / 32 + j % MASK_WORDS;
      bool valid = at < there && word < words;
      copy_word(to.mask + j, valid ? bits + (first + at) * words + word : bits, valid);
    }
#endif
  };
  int place = 0, r = 0, query = skipped * TILE; // row r is that at place
  if (count > 0) copy(0, r = row_at(0), query);
  cp_async_commit();
  for (int i = 0; i < count; i++) {
    int next_r = r, next_query = query + TILE;
    if (i + 1 < count) {
      if (next_query >= lq) next_r = row_at(++place), next_query = skipped * TILE;
      copy(i + 1, next_r, next_query);
    }
    cp_async_commit();
    cp_async_wait<1>();
    __syncthreads();
    int keys = lk;
#if LENGTHS
    keys = min(max(lengths[r], 0), lk);
#endif
    if (mine < keys) {
      const Stage &stage = stages[i % STAGES];
      const float *b = bias + (size_t)h * lq * lk;
      int key = mine + lane / 4, word = mine / 32 - from / 32, there = min(TILE, lq - query);
#pragma unroll 1
      for (int c = 0; c < there; c += 32) {
        if (CAUSAL && query + c + 31 < mine) continue;
        if (there - c <= 16) key_gradients<1, false>(dk, dv, k, v, stage, c, query, key, word, keys, b, lq, lk, scale, rescale);
        else if (mine + 16 <= keys) key_gradients<2, true>(dk, dv, k, v, stage, c, query, key, word, keys, b, lq, lk, scale, rescale);
        else key_gradients<2, false>(dk, dv, k, v, stage, c, query, key, word, keys, b, lq, lk, scale, rescale);
      }
    }
    r = next_r, query = next_query;
    __syncthreads();
  }
  store_rows(dkv + at_keys, KEY_STRIDE, lk - mine, dk, scale, scale);
  store_rows(dkv + at_keys + d, KEY_STRIDE, lk - mine, dv, rescale, rescale);
}
#endif

#ifdef ATTEND_DBIAS
// dbias (H, Lq, Lk) = the sum of ds over all rows, in their order, for BLOCK queries and TILE keys of a head.
extern "C" __global__ void __launch_bounds__(THREADS)
    attend_dbias(const Q *q, const KV *kv, const int *lengths, const int *bits, const float *bias, const DO *dout, const float *lse, const float *delta, float *dbias,
                 int rows, int lq, int lk, int heads, float scale, float rescale) {
  DYNAMIC_SHARED(bf16, room);
  int tiles = (lk + TILE - 1) / TILE, blocks = (lq + BLOCK - 1) / BLOCK, d = heads * E, lane = threadIdx.x % WARP;
  int first = blockIdx.x % tiles * TILE, from = blockIdx.x / tiles % blocks * BLOCK, h = blockIdx.x / tiles / blocks, mine = from + threadIdx.x / WARP * 16;
  float sums[TILE / 8][4] = {};
  bool hidden = CAUSAL && first >= from + BLOCK;
  for (int r = 0; r < rows && !hidden; r++) {
    Row row = row_of(0, lengths, r, lk, rows);
    if (first >= row.keys) continue;
    const KV *k = kv + ((size_t)r * lk + first) * KEY_STRIDE + KEYS_AT + h * E;
    copy_rows(room, k, KEY_STRIDE, row.keys - first, kv);
    copy_rows(room + PANEL, k + d, KEY_STRIDE, row.keys - first, kv);
    cp_async_commit();
    size_t at = ((size_t)r * heads + h) * lq;
    Queries x = {mine + lane / 4, lq, lk, row.keys, bits + at * ((lk + 31) / 32), bias + (size_t)h * lq * lk, scale};
    Left left, grads;
    load_left(left, q + ((size_t)r * lq + mine) * QUERY_STRIDE + h * E, QUERY_STRIDE, lq - mine);
    load_left(grads, dout + ((size_t)r * lq + mine) * d + h * E, d, lq - mine);
    float log_sum[2], mean[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
      int query = x.query + half * 8;
      log_sum[half] = query < lq ? lse[at + query] : 0.f;
      mean[half] = query < lq ? delta[at + query] : 0.f;
    }
    cp_async_wait<0>();
    __syncthreads();
    if (mine < lq) {
#pragma unroll
      for (int c = 0; c < TILE; c += 16) {
        float ds[2][4];
        score_gradients<1, false>(ds, left, grads, room + c * STRIDE, room + PANEL + c * STRIDE, first + c, x, log_sum, mean, rescale);
#pragma unroll
        for (int j = 0; j < 2; j++)
#pragma unroll
          for (int i = 0; i < 4; i++) sums[c / 8 + j][i] += ds[j][i];
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int j = 0; j < TILE / 8; j++)
#pragma unroll
    for (int i = 0; i < 4; i++) {
      int query = mine + lane / 4 + i / 2 * 8, key = first + j * 8 + lane % 4 * 2 + i % 2;
      if (query < lq && key < lk) dbias[((size_t)h * lq + query) * lk + key] = sums[j][i];
    }
}
#endif
