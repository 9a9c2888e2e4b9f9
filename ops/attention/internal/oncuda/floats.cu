// Attention in float32 without tensor cores, in the manner of FlashAttention (Dao et al. 2022): blocks of 256 threads, and
// blocks of 64 queries and 64 keys in shared memory. Thread (ty, tx) of 16 x 16 has sums of rows 4 ty to 4 ty+3, so that the
// rows of a warp are its own: what it writes of them to shared memory only it reads.
//
// More macros: ATTEND, ATTEND_DQ, ATTEND_DKV or ATTEND_DBIAS, the kernel that is wanted.

#define THREADS 256
#define TILE 64
#define WIDTH (E <= 64 ? 64 : 128)
#define STRIDE (WIDTH + 4)      // floats of a row in shared memory: rows that are read together begin in different banks
#define SQUARE (TILE + 4)       // floats of a row of scores there
#define COLS (WIDTH / 16)
#define PANEL (TILE * STRIDE)
#define AT_ONCE (E <= 64 ? 2 : 1) // blocks of a multiprocessor

#define TY ((int)threadIdx.x / 16)
#define TX ((int)threadIdx.x % 16)

// Copies TILE rows of x, ld elements apart, to shared memory, those from rows on and columns from E on as zeros.
__device__ __forceinline__ void copy_rows(float *to, const float *x, int ld, int rows) {
#pragma unroll
  for (int first = 0; first < TILE * WIDTH / 4; first += THREADS) {
    int i = first + threadIdx.x, row = i / (WIDTH / 4), col = i % (WIDTH / 4) * 4;
    float v[4] = {0, 0, 0, 0};
    const float *p = x + row_offset(row, ld) + col;
    if (E % 4 == 0) {
      if (row < rows && col < E) load4(v, p, 0);
    } else {
#pragma unroll
      for (int j = 0; j < 4; j++)
        if (row < rows && col + j < E) v[j] = p[j];
    }
    store4(to, row * STRIDE + col, v);
  }
}

// s (64, 64) += a b^T for rows of WIDTH: the thread's elements are rows 4 ty + i and columns tx + 16 j.
__device__ __forceinline__ void multiply_rows(float (&s)[4][4], const float *a, const float *b) {
#pragma unroll 4
  for (int k = 0; k < WIDTH; k += 4) {
    float x[4][4], y[4][4];
#pragma unroll
    for (int i = 0; i < 4; i++) load4(x[i], a, (4 * TY + i) * STRIDE + k), load4(y[i], b, (TX + 16 * i) * STRIDE + k);
#pragma unroll
    for (int c = 0; c < 4; c++)
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) s[i][j] = fmaf(x[i][c], y[j][c], s[i][j]);
  }
}

// o (64, WIDTH) += s b for the first n rows of b, where s is a square: the thread's elements are rows 4 ty + i and columns
// 4 tx + j of each 64.
__device__ __forceinline__ void multiply(float (&o)[4][COLS], const float *s, const float *b, int n) {
#pragma unroll 2
  for (int k = 0; k < n; k += 4) {
    float x[4][4];
#pragma unroll
    for (int i = 0; i < 4; i++) load4(x[i], s, (4 * TY + i) * SQUARE + k);
#pragma unroll
    for (int c = 0; c < 4; c++)
#pragma unroll
      for (int part = 0; part < COLS / 4; part++) {
        float y[4];
        load4(y, b, (k + c) * STRIDE + part * 64 + 4 * TX);
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
          for (int j = 0; j < 4; j++) o[i][part * 4 + j] = fmaf(x[i][c], y[j], o[i][part * 4 + j]);
      }
  }
}

// Writes the thread's rows and columns of o times scale[i].
__device__ __forceinline__ void store_rows(float *x, int ld, int rows, const float (&o)[4][COLS], const float (&scale)[4]) {
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int part = 0; part < COLS / 4; part++) {
      int row = 4 * TY + i, col = part * 64 + 4 * TX;
      float v[4] = {o[i][part * 4] * scale[i], o[i][part * 4 + 1] * scale[i], o[i][part * 4 + 2] * scale[i],
          o[i][part * 4 + 3] * scale[i]};
      if (row >= rows) continue;
      if (E % 4 == 0) {
        if (col < E) store4(x, row_offset(row, ld) + col, v);
      } else {
#pragma unroll
        for (int j = 0; j < 4; j++)
          if (col + j < E) x[row_offset(row, ld) + col + j] = v[j];
      }
    }
}

// Sums and largest over the 16 threads that share rows.
__device__ __forceinline__ float row_sum(float x) {
#pragma unroll
  for (int d = 8; d > 0; d /= 2) x += __shfl_xor_sync(FULL, x, d);
  return x;
}

__device__ __forceinline__ float row_max(float x) {
#pragma unroll
  for (int d = 8; d > 0; d /= 2) x = fmaxf(x, __shfl_xor_sync(FULL, x, d));
  return x;
}

// Whether dropout keeps the probability of a query and a key; bits are those of the row's and head's first query.
__device__ __forceinline__ bool kept(const int *bits, int query, int key, int lq, int lk) {
#if DROPOUT
  return query < lq && key < lk && (uint32)bits[(size_t)query * ((lk + 31) / 32) + key / 32] >> key % 32 & 1;
#else
  return true;
#endif
}

// The score of a query and a key whose product is s; bias is that of the head.
__device__ __forceinline__ float score(float s, const float *bias, int query, int key, int lq, int lk, float scale) {
  s *= scale;
#if BIAS
  if (query < lq && key < lk) s += bias[(size_t)query * lk + key];
#endif
  return s;
}

#ifdef ATTEND
// out = softmax(q k^T scale) v, lse = log sum exp (q k^T scale), for 64 queries of a row and head: the running softmax of
// Milakov and Gimelshein (2018).
extern "C" __global__ void __launch_bounds__(THREADS, AT_ONCE) attend(const float *q, const float *kv, const int *index,
    const int *lengths, const int *bits, const float *bias, float *out, float *lse, int lq, int lk, int heads, int seqs,
    float scale, float rescale) {
  DYNAMIC_SHARED(float, room);
  float *qs = room, *ks = qs + PANEL, *vs = ks + PANEL, *ps = vs + PANEL;
  int tiles = (lq + TILE - 1) / TILE, d = heads * E;
  int h = blockIdx.x / tiles % heads, r = blockIdx.x / tiles / heads, from = blockIdx.x % tiles * TILE;
  bool idle = from + TY / 2 * 8 >= lq; // the warp has no query
  size_t first = ((size_t)r * heads + h) * lq;
  Row row = row_of(index, lengths, r, lk, seqs);
  const float *k = kv + (size_t)row.sequence * lk * KEY_STRIDE + KEYS_AT + h * E;
  bits += first * ((lk + 31) / 32), bias += (size_t)h * lq * lk;
  copy_rows(qs, q + ((size_t)r * lq + from) * QUERY_STRIDE + h * E, QUERY_STRIDE, lq - from);

  float o[4][COLS] = {}, m[4], l[4];
#pragma unroll
  for (int i = 0; i < 4; i++) m[i] = -INFINITY_F, l[i] = 0;
  int seen = CAUSAL ? min(row.keys, from + TILE) : row.keys;
  for (int at = 0; at < seen; at += TILE) {
    __syncthreads();
    copy_rows(ks, k + row_offset(at, KEY_STRIDE), KEY_STRIDE, row.keys - at);
    copy_rows(vs, k + row_offset(at, KEY_STRIDE) + d, KEY_STRIDE, row.keys - at);
    __syncthreads();
    if (idle) continue;
    float s[4][4] = {};
    multiply_rows(s, qs, ks);
#pragma unroll
    for (int i = 0; i < 4; i++) {
      int query = from + 4 * TY + i;
      float largest = m[i];
#pragma unroll
      for (int j = 0; j < 4; j++) {
        int key = at + TX + 16 * j;
        s[i][j] = key < row.keys && (!CAUSAL || key <= query) ? score(s[i][j], bias, query, key, lq, lk, scale) : -INFINITY_F;
        largest = fmaxf(largest, s[i][j]);
      }
      largest = row_max(largest);
      float shift = largest == -INFINITY_F ? 0.f : largest, shrink = expf(m[i] - shift), sum = 0;
      m[i] = largest;
#pragma unroll
      for (int j = 0; j < 4; j++) {
        int key = at + TX + 16 * j;
        float p = expf(s[i][j] - shift);
        sum += p;
        ps[(4 * TY + i) * SQUARE + TX + 16 * j] = kept(bits, query, key, lq, lk) ? p : 0.f;
      }
      l[i] = fmaf(l[i], shrink, sum);
#pragma unroll
      for (int c = 0; c < COLS; c++) o[i][c] *= shrink;
    }
    __syncwarp();
    multiply(o, ps, vs, min(TILE, seen - at));
  }
  float factor[4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    float sum = row_sum(l[i]);
    int query = from + 4 * TY + i;
    factor[i] = row.bad ? NOT_A_NUMBER : sum > 0 ? rescale / sum : sum;
    if (TX == 0 && query < lq) lse[first + query] = row.bad ? NOT_A_NUMBER : row.keys == 0 ? 0.f : m[i] + logf(sum);
  }
  store_rows(out + ((size_t)r * lq + from) * d + h * E, d, lq - from, o, factor);
}
#endif

#if defined(ATTEND_DQ) || defined(ATTEND_DBIAS)
// Sets ds to the gradients at the scores of 64 queries from first and 64 keys from at on:
//
//	p = exp(q k^T scale - lse)   ds = p (drop(do v^T) - delta)
//
// where delta = rowsum(do * out), which is rowsum(p drop(do v^T)).
__device__ __forceinline__ void score_gradients(float (&ds)[4][4], const float *qs, const float *dos, const float *ks,
    const float *vs, const int *bits, const float *bias, int first, int at, int keys, int lq, int lk, const float (&lse)[4],
    const float (&delta)[4], float scale, float rescale) {
  float s[4][4] = {};
#pragma unroll
  for (int i = 0; i < 4; i++) ds[i][0] = ds[i][1] = ds[i][2] = ds[i][3] = 0;
  multiply_rows(s, qs, ks);
  multiply_rows(ds, dos, vs);
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) {
      int query = first + 4 * TY + i, key = at + TX + 16 * j;
      float p = expf(score(s[i][j], bias, query, key, lq, lk, scale) - lse[i]);
      float g = p * ((kept(bits, query, key, lq, lk) ? ds[i][j] * rescale : 0.f) - delta[i]);
      ds[i][j] = key < keys && (!CAUSAL || key <= query) ? g : 0.f;
    }
}
#endif

#ifdef ATTEND_DQ
// dq = ds k scale for 64 queries of a row and head, and delta for attend_dkv.
extern "C" __global__ void __launch_bounds__(THREADS, AT_ONCE) attend_dq(const float *q, const float *kv, const int *index,
    const int *lengths, const int *bits, const float *bias, const float *out, const float *dout, const float *lse, float *delta,
    float *dq, int lq, int lk, int heads, int seqs, float scale, float rescale) {
  DYNAMIC_SHARED(float, room);
  float *qs = room, *dos = qs + PANEL, *ks = dos + PANEL, *vs = ks + PANEL, *ps = vs + PANEL;
  int tiles = (lq + TILE - 1) / TILE, d = heads * E;
  int h = blockIdx.x / tiles % heads, r = blockIdx.x / tiles / heads, from = blockIdx.x % tiles * TILE;
  bool idle = from + TY / 2 * 8 >= lq;
  size_t first = ((size_t)r * heads + h) * lq, at_out = ((size_t)r * lq + from) * d + h * E;
  Row row = row_of(index, lengths, r, lk, seqs);
  const float *k = kv + (size_t)row.sequence * lk * KEY_STRIDE + KEYS_AT + h * E;
  bits += first * ((lk + 31) / 32), bias += (size_t)h * lq * lk;
  copy_rows(qs, q + ((size_t)r * lq + from) * QUERY_STRIDE + h * E, QUERY_STRIDE, lq - from);
  copy_rows(dos, dout + at_out, d, lq - from);
  __syncthreads();

  float log_sum[4], mean[4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    int at = 4 * TY + i;
    bool there = from + at < lq;
    float sum = 0;
    for (int c = TX; c < E && there; c += 16) sum = fmaf(out[at_out + (size_t)at * d + c], dos[at * STRIDE + c], sum);
    mean[i] = row_sum(sum);
    log_sum[i] = there ? lse[first + from + at] : 0.f;
    if (TX == 0 && there) delta[first + from + at] = mean[i];
  }
  float sums[4][COLS] = {};
  int seen = CAUSAL ? min(row.keys, from + TILE) : row.keys;
  for (int at = 0; at < seen; at += TILE) {
    __syncthreads();
    copy_rows(ks, k + row_offset(at, KEY_STRIDE), KEY_STRIDE, row.keys - at);
    copy_rows(vs, k + row_offset(at, KEY_STRIDE) + d, KEY_STRIDE, row.keys - at);
    __syncthreads();
    if (idle) continue;
    float ds[4][4];
    score_gradients(ds, qs, dos, ks, vs, bits, bias, from, at, row.keys, lq, lk, log_sum, mean, scale, rescale);
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
      for (int j = 0; j < 4; j++) ps[(4 * TY + i) * SQUARE + TX + 16 * j] = ds[i][j];
    __syncwarp();
    multiply(sums, ps, ks, min(TILE, seen - at));
  }
  if (row.bad) scale = NOT_A_NUMBER;
  const float factor[4] = {scale, scale, scale, scale};
  store_rows(dq + ((size_t)r * lq + from) * QUERY_STRIDE + h * E, QUERY_STRIDE, lq - from, sums, factor);
}
#endif

#ifdef ATTEND_DKV
// dk and dv of 64 keys of a sequence and head: sums over the queries of all rows that attend to it, in their order. Here rows
// of scores are keys, and columns are queries.
extern "C" __global__ void __launch_bounds__(THREADS, AT_ONCE) attend_dkv(const float *q, const float *kv, const int *order,
    const int *starts, const int *lengths, const int *bits, const float *bias, const float *dout, const float *lse,
    const float *delta, float *dkv, int lq, int lk, int heads, float scale, float rescale) {
  DYNAMIC_SHARED(float, room);
  float *qs = room, *dos = qs + PANEL, *ks = dos + PANEL, *vs = ks + PANEL, *ps = vs + PANEL;
  int tiles = (lk + TILE - 1) / TILE, d = heads * E;
  int h = blockIdx.x / tiles % heads, n = blockIdx.x / tiles / heads, from = blockIdx.x % tiles * TILE;
  size_t at_keys = ((size_t)n * lk + from) * KEY_STRIDE + KEYS_AT + h * E;
  copy_rows(ks, kv + at_keys, KEY_STRIDE, lk - from);
  copy_rows(vs, kv + at_keys + d, KEY_STRIDE, lk - from);
  bias += (size_t)h * lq * lk;
  int begin = n, end = n + 1;
#if INDEX
  begin = starts[n], end = starts[n + 1];
#endif
  float dk[4][COLS] = {}, dv[4][COLS] = {};
  for (int i = begin; i < end; i++) {
    int r = n, keys = lk;
#if INDEX
    r = order[i];
#endif
#if LENGTHS
    keys = min(max(lengths[r], 0), lk);
#endif
    if (from >= keys) continue;
    bool idle = from + TY / 2 * 8 >= keys; // the row sees none of the warp's keys
    size_t first = ((size_t)r * heads + h) * lq;
    const int *mask = bits + first * ((lk + 31) / 32);
    for (int at = CAUSAL ? from : 0; at < lq; at += TILE) {
      __syncthreads();
      copy_rows(qs, q + ((size_t)r * lq + at) * QUERY_STRIDE + h * E, QUERY_STRIDE, lq - at);
      copy_rows(dos, dout + ((size_t)r * lq + at) * d + h * E, d, lq - at);
      __syncthreads();
      if (idle) continue;
      int there = min(TILE, lq - at);
      float s[4][4] = {}, ds[4][4] = {};
      multiply_rows(s, ks, qs);
      multiply_rows(ds, vs, dos);
#pragma unroll
      for (int c = 0; c < 4; c++) {
        int query = at + TX + 16 * c;
        float log_sum = query < lq ? lse[first + query] : 0.f, mean = query < lq ? delta[first + query] : 0.f;
#pragma unroll
        for (int j = 0; j < 4; j++) {
          int key = from + 4 * TY + j;
          bool visible = query < lq && key < keys && (!CAUSAL || key <= query), keep = kept(mask, query, key, lq, lk);
          float p = expf(score(s[j][c], bias, query, key, lq, lk, scale) - log_sum);
          ds[j][c] = visible ? p * ((keep ? ds[j][c] * rescale : 0.f) - mean) : 0.f;
          ps[(4 * TY + j) * SQUARE + TX + 16 * c] = visible && keep ? p : 0.f;
        }
      }
      __syncwarp();
      multiply(dv, ps, dos, there);
      __syncwarp();
#pragma unroll
      for (int j = 0; j < 4; j++)
#pragma unroll
        for (int c = 0; c < 4; c++) ps[(4 * TY + j) * SQUARE + TX + 16 * c] = ds[j][c];
      __syncwarp();
      multiply(dk, ps, qs, there);
    }
  }
  const float of_k[4] = {scale, scale, scale, scale}, of_v[4] = {rescale, rescale, rescale, rescale};
  store_rows(dkv + at_keys, KEY_STRIDE, lk - from, dk, of_k);
  store_rows(dkv + at_keys + d, KEY_STRIDE, lk - from, dv, of_v);
}
#endif

#ifdef ATTEND_DBIAS
// dbias (H, Lq, Lk) = the sum of ds over all rows, in their order, for 64 queries and keys of a head.
extern "C" __global__ void __launch_bounds__(THREADS, AT_ONCE) attend_dbias(const float *q, const float *kv, const int *lengths,
    const int *bits, const float *bias, const float *dout, const float *lse, const float *delta, float *dbias, int rows, int lq,
    int lk, int heads, float scale, float rescale) {
  DYNAMIC_SHARED(float, room);
  float *qs = room, *dos = qs + PANEL, *ks = dos + PANEL, *vs = ks + PANEL;
  int tiles = (lk + TILE - 1) / TILE, blocks = (lq + TILE - 1) / TILE, d = heads * E;
  int at = blockIdx.x % tiles * TILE, from = blockIdx.x / tiles % blocks * TILE, h = blockIdx.x / tiles / blocks;
  bias += (size_t)h * lq * lk;
  float sums[4][4] = {};
  bool hidden = CAUSAL && at >= from + TILE;
  for (int r = 0; r < rows && !hidden; r++) {
    Row row = row_of(0, lengths, r, lk, rows);
    if (at >= row.keys) continue;
    const float *k = kv + ((size_t)r * lk + at) * KEY_STRIDE + KEYS_AT + h * E;
    size_t first = ((size_t)r * heads + h) * lq;
    __syncthreads();
    copy_rows(qs, q + ((size_t)r * lq + from) * QUERY_STRIDE + h * E, QUERY_STRIDE, lq - from);
    copy_rows(dos, dout + ((size_t)r * lq + from) * d + h * E, d, lq - from);
    copy_rows(ks, k, KEY_STRIDE, row.keys - at);
    copy_rows(vs, k + d, KEY_STRIDE, row.keys - at);
    __syncthreads();
    float log_sum[4], mean[4], ds[4][4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      int query = from + 4 * TY + i;
      log_sum[i] = query < lq ? lse[first + query] : 0.f;
      mean[i] = query < lq ? delta[first + query] : 0.f;
    }
    score_gradients(ds, qs, dos, ks, vs, bits + first * ((lk + 31) / 32), bias, from, at, row.keys, lq, lk, log_sum, mean,
        scale, rescale);
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
      for (int j = 0; j < 4; j++) sums[i][j] += ds[i][j];
  }
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) {
      int query = from + 4 * TY + i, key = at + TX + 16 * j;
      if (query < lq && key < lk) dbias[((size_t)h * lq + query) * lk + key] = sums[i][j];
    }
}
#endif
