// The backward kernels; halves.cuh is before them.

#if defined(ATTEND_DQ) || defined(ATTEND_DBIAS)
// The gradients at the scores of g groups of queries and 16 n keys from key first on, whose keys and values are at k and v:
//
//	p = exp(q k^T scale - lse)   ds = p (drop(do v^T) - delta)
//
// where delta = rowsum(do * out), which is rowsum(p drop(do v^T)). log_sum is lse times log2 e.
template <int g, int n, bool whole>
__device__ __forceinline__ void score_gradients(float (&ds)[g][2 * n][4], const Left (&q)[GROUPS], const Left (&dout)[GROUPS],
    const bf16 *k, const bf16 *v, int first, const Queries &x, const float (&log_sum)[GROUPS][2], const float (&delta)[GROUPS][2],
    float rescale) {
  int col = threadIdx.x % 4 * 2;
#if DROPOUT
  uint32 drop[2 * g];
#pragma unroll
  for (int i = 0; i < 2 * g; i++) drop[i] = mask_word(x, i, first) >> first % 32;
#endif
  float s[g][2 * n][4];
#pragma unroll
  for (int a = 0; a < g; a++)
#pragma unroll
    for (int j = 0; j < 2 * n; j++)
#pragma unroll
      for (int i = 0; i < 4; i++) s[a][j][i] = ds[a][j][i] = 0;
  multiply_rows<g, n>(s, q, k);
  multiply_rows<g, n>(ds, dout, v);
#pragma unroll
  for (int a = 0; a < g; a++)
#pragma unroll
    for (int j = 0; j < 2 * n; j++)
#pragma unroll
      for (int i = 0; i < 4; i++) {
        int half = i / 2, key = first + j * 8 + col + i % 2, query = x.query + a * 16 + half * 8;
        float e = fmaf(s[a][j][i], x.scale * LOG2E, -log_sum[a][half]), y = ds[a][j][i];
#if BIAS
        e += bias_at(x.bias, query, key, x.lq, x.lk);
#endif
#if DROPOUT
        y = drop[2 * a + half] >> (j * 8 + i % 2) & 1 ? y * rescale : 0.f;
#endif
        y = power_of_two(e) * (y - delta[a][half]);
        if (!whole && (key >= x.keys || (CAUSAL && key > query))) y = 0;
        ds[a][j][i] = y;
      }
}
#endif

#ifdef ATTEND_DQ
// Adds ds k for 16 n keys to dq / scale.
template <int g, int n, bool whole>
__device__ __forceinline__ void query_gradients(Sums (&dq)[GROUPS], const Left (&q)[GROUPS], const Left (&dout)[GROUPS],
    const bf16 *k, const bf16 *v, int first, const Queries &x, const float (&log_sum)[GROUPS][2],
    const float (&delta)[GROUPS][2], float rescale) {
  float ds[g][2 * n][4];
  score_gradients<g, n, whole>(ds, q, dout, k, v, first, x, log_sum, delta, rescale);
  multiply<g, n>(dq, ds, k);
}

// Sets delta to rowsum(dout * out) of the lane's queries and writes it for attend_dkv. there: queries that there are.
__device__ __forceinline__ void take_delta(float (&delta)[GROUPS][2], float *to, const O *out, const DO *dout, int d, int there) {
  int lane = threadIdx.x % WARP;
  float sums[MINE / 4]; // of rows lane/8, lane/8 + 4, .., by eight lanes each
#pragma unroll
  for (int i = 0; i < MINE / 4; i++) {
    int row = i * 4 + lane / 8;
    float sum = 0;
#pragma unroll
    for (int first = 0; first < E; first += 64) {
      int col = first + lane % 8 * 8, n = row < there ? E - col : 0;
      float a[8], b[8];
      floats8(a, out + row_offset(row, d) + col, n);
      floats8(b, dout + row_offset(row, d) + col, n);
#pragma unroll
      for (int j = 0; j < 8; j++) sum = fmaf(a[j], b[j], sum);
    }
    sum = row_sum(sum);
    sums[i] = sum + __shfl_xor_sync(FULL, sum, 4);
    if (lane % 8 == 0 && row < there) to[row] = sums[i];
  }
#pragma unroll
  for (int g = 0; g < GROUPS; g++)
#pragma unroll
    for (int half = 0; half < 2; half++) { // row g*16 + half*8 + lane/4
      int i = g * 4 + half * 2, from = lane / 4 % 4 * 8;
      float low = __shfl_sync(FULL, sums[i], from), high = __shfl_sync(FULL, sums[i + 1], from);
      delta[g][half] = lane < 16 ? low : high;
    }
}

// dq = ds k scale, and delta for attend_dkv.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) attend_dq(const Q *q, const KV *kv, const int *order,
    const int *starts, const int *index, const int *lengths, const int *bits, const float *bias, const O *out, const DO *dout,
    const float *lse, float *delta, DQ *dq, int rows, int lq, int lk, int heads, int seqs, float scale, float rescale) {
  DYNAMIC_SHARED(bf16, room);
  const int mine_room = 2 * MINE * STRIDE;
  int d = heads * E, lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  bf16 *tiles = room + (ALONE ? warp * (2 * PANEL + mine_room) : 0);
  bf16 *own = (ALONE ? tiles : tiles + warp * mine_room) + 2 * PANEL; // where the second stage is, before that is used
  each_place([&](const Place &at) {
    size_t first = ((size_t)at.row * heads + at.head) * lq, at_out = ((size_t)at.row * lq + at.mine) * d + at.head * E;
    size_t at_query = ((size_t)at.row * lq + at.mine) * QUERY_STRIDE + at.head * E;
    const KV *k = kv + (size_t)at.sequence * lk * KEY_STRIDE + KEYS_AT + at.head * E;
    Queries x = {at.mine + lane / 4, lq, lk, at.keys, bits + first * ((lk + 31) / 32), bias + (size_t)at.head * lq * lk, scale};
    int count = (at.seen + TILE - 1) / TILE;
    auto copy = [&](int i) {
      bf16 *to = tiles + i % STAGES * 2 * PANEL;
      const KV *from = k + row_offset(i * TILE, KEY_STRIDE);
      copy_tile(to, from, KEY_STRIDE, at.seen - i * TILE, kv);
      copy_tile(to + PANEL, from + d, KEY_STRIDE, at.seen - i * TILE, kv);
    };
    copy_mine(own, q + at_query, QUERY_STRIDE, at.there, q);
    copy_mine(own + MINE * STRIDE, dout + at_out, d, at.there, dout);
    cp_async_commit();
    if (count > 0) copy(0);
    cp_async_commit();
    float mean[GROUPS][2], log_sum[GROUPS][2];
    take_delta(mean, delta + first + at.mine, out + at_out, dout + at_out, d, at.there);
#pragma unroll
    for (int g = 0; g < GROUPS; g++)
#pragma unroll
      for (int half = 0; half < 2; half++) {
        int i = g * 16 + half * 8 + lane / 4;
        log_sum[g][half] = i < at.there ? lse[first + at.mine + i] * LOG2E : 0.f;
      }
    cp_async_wait<1>();
    __syncwarp();
    Left left[GROUPS], grads[GROUPS];
    take_left(left, own);
    take_left(grads, own + MINE * STRIDE);
    Sums sums[GROUPS] = {};
#pragma unroll 1
    for (int i = 0; i < count; i++) {
      cp_async_wait<0>();
      meet(); // the tile is there, and the one before it is read
      if (i + 1 < count) copy(i + 1);
      cp_async_commit();
      const bf16 *tile = tiles + i % STAGES * 2 * PANEL;
      int key = i * TILE;
#define TAKE(g, n, whole, c)                                                                                                \
  query_gradients<g, n, whole>(sums, left, grads, tile + (c - key) * STRIDE, tile + PANEL + (c - key) * STRIDE, c, x, log_sum, \
      mean, rescale)
      if (at.there > 0) EACH_CHUNK(TAKE, key, at)
    }
    meet();
    float factor[GROUPS][2];
#pragma unroll
    for (int g = 0; g < GROUPS; g++) factor[g][0] = factor[g][1] = at.bad ? NOT_A_NUMBER : scale;
    store_mine(dq + at_query, QUERY_STRIDE, at.there, sums, factor, ALONE ? tiles : tiles + warp * mine_room);
  }, order, starts, index, lengths, rows, lq, lk, heads, seqs);
}
#endif

#ifdef ATTEND_DKV
// A tile of queries in shared memory: TILE rows of q and of dout, the statistics of each query, and the words of its dropout
// mask.
struct Stage {
  bf16 q[PANEL], dout[PANEL];
  float lse[TILE], delta[TILE];
#if DROPOUT
  uint32 mask[TILE * MASK_WORDS];
#endif
};

// What a warp knows of its keys: the lane's are key, key + 8, ..
struct Keys {
  int key, word, keys; // word of the mask's of a query; keys that the row sees
  const float *bias;   // of the head
  int lq, lk;
  float scale, rescale;
};

// Adds p^T do to dv / rescale and ds^T q to dk / scale for g groups of keys and 16 n queries from c on, the first of which is
// first.
template <int g, int n, bool whole>
__device__ __forceinline__ void key_gradients(Sums (&dk)[GROUPS], Sums (&dv)[GROUPS], const Left (&k)[GROUPS],
    const Left (&v)[GROUPS], const Stage &stage, int c, int first, const Keys &x) {
  int col = threadIdx.x % 4 * 2;
  const bf16 *q = stage.q + c * STRIDE, *dout = stage.dout + c * STRIDE;
  float p[g][2 * n][4], ds[g][2 * n][4];
#pragma unroll
  for (int a = 0; a < g; a++)
#pragma unroll
    for (int j = 0; j < 2 * n; j++)
#pragma unroll
      for (int i = 0; i < 4; i++) p[a][j][i] = ds[a][j][i] = 0;
  multiply_rows<g, n>(p, k, q);
  multiply_rows<g, n>(ds, v, dout);
#pragma unroll
  for (int j = 0; j < 2 * n; j++) {
    int at = c + j * 8 + col;
    float2 lse = *reinterpret_cast<const float2 *>(stage.lse + at), delta = *reinterpret_cast<const float2 *>(stage.delta + at);
    float log_sum[2] = {lse.x * LOG2E, lse.y * LOG2E}, mean[2] = {delta.x, delta.y};
#if DROPOUT
    uint32 drop[2] = {stage.mask[at * MASK_WORDS + x.word] >> x.key % 32, stage.mask[(at + 1) * MASK_WORDS + x.word] >> x.key % 32};
#endif
#pragma unroll
    for (int a = 0; a < g; a++)
#pragma unroll
      for (int i = 0; i < 4; i++) {
        int key = x.key + a * 16 + i / 2 * 8;
        float e = fmaf(p[a][j][i], x.scale * LOG2E, -log_sum[i % 2]), y = ds[a][j][i];
#if BIAS || CAUSAL
        int query = first + j * 8 + col + i % 2;
#endif
#if BIAS
        e += bias_at(x.bias, query, key, x.lq, x.lk);
#endif
        float w = power_of_two(e), kept = w;
#if DROPOUT
        bool keep = drop[i % 2] >> (a * 16 + i / 2 * 8) & 1;
        y = keep ? y * x.rescale : 0.f;
        kept = keep ? w : 0.f;
#endif
        y = w * (y - mean[i % 2]);
        bool visible = whole || key < x.keys;
#if CAUSAL
        visible = visible && (whole || key <= query);
#endif
        p[a][j][i] = visible ? kept : 0.f;
        ds[a][j][i] = visible ? y : 0.f;
      }
  }
  multiply<g, n>(dv, p, dout);
  multiply<g, n>(dk, ds, q);
}

// dk and dv of BLOCK keys of a sequence and head: sums over the queries of all rows that attend to it, in their order.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) attend_dkv(const Q *q, const KV *kv, const int *order,
    const int *starts, const int *lengths, const int *bits, const float *bias, const DO *dout, const float *lse,
    const float *delta, DKV *dkv, int lq, int lk, int heads, float scale, float rescale) {
  DYNAMIC_SHARED(Stage, stages);
  const int mine_room = 2 * MINE * STRIDE;
  int tiles = (lk + BLOCK - 1) / BLOCK, d = heads * E, lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  int h = blockIdx.x / tiles % heads, n = blockIdx.x / tiles / heads, from = blockIdx.x % tiles * BLOCK,
      mine = from + warp * MINE, there = lk - mine;
  size_t at_keys = ((size_t)n * lk + mine) * KEY_STRIDE + KEYS_AT + h * E;
  bf16 *own = reinterpret_cast<bf16 *>(stages + 1) + warp * mine_room; // where the second stage is, before that is used
#if INDEX
  int first_row = starts[n], rows = starts[n + 1] - first_row;
#else
  int rows = 1;
#endif
  int skipped = CAUSAL ? from / TILE : 0; // tiles of queries before all of the keys
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
    copy_tile(to.q, q + ((size_t)r * lq + query) * QUERY_STRIDE + h * E, QUERY_STRIDE, there, q);
    copy_tile(to.dout, dout + ((size_t)r * lq + query) * d + h * E, d, there, dout);
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
  copy_mine(own, kv + at_keys, KEY_STRIDE, there, kv);
  copy_mine(own + MINE * STRIDE, kv + at_keys + d, KEY_STRIDE, there, kv);
  cp_async_commit();
  int place = 0, r = 0, query = skipped * TILE; // row r is that at place
  if (count > 0) copy(0, r = row_at(0), query);
  cp_async_commit();
  cp_async_wait<1>();
  __syncwarp();
  Left k[GROUPS], v[GROUPS];
  take_left(k, own);
  take_left(v, own + MINE * STRIDE);
  Sums dk[GROUPS] = {}, dv[GROUPS] = {};
#pragma unroll 1
  for (int i = 0; i < count; i++) {
    cp_async_wait<0>();
    __syncthreads(); // the tile is there, and the one before it is read
    int next_r = r, next_query = query + TILE;
    if (i + 1 < count) {
      if (next_query >= lq) next_r = row_at(++place), next_query = skipped * TILE;
      copy(i + 1, next_r, next_query);
    }
    cp_async_commit();
    int keys = lk;
#if LENGTHS
    keys = min(max(lengths[r], 0), lk);
#endif
    if (mine < keys) {
      const Stage &stage = stages[i % STAGES];
      Keys x = {mine + lane / 4, mine / 32 - from / 32, keys, bias + (size_t)h * lq * lk, lq, lk, scale, rescale};
      int end = min(TILE, lq - query), c = CAUSAL ? max(0, mine - query) / CHUNK * CHUNK : 0;
      bool one = GROUPS > 1 && mine + 16 >= keys, whole = mine + MINE <= keys;
#pragma unroll 1
      for (; c < end; c += one ? 16 : CHUNK) {
        if (one) key_gradients<1, 1, false>(dk, dv, k, v, stage, c, query + c, x);
        else if (whole && (!CAUSAL || mine + MINE <= query + c + 1))
          key_gradients<GROUPS, CHUNK / 16, true>(dk, dv, k, v, stage, c, query + c, x);
        else key_gradients<GROUPS, CHUNK / 16, false>(dk, dv, k, v, stage, c, query + c, x);
      }
    }
    r = next_r, query = next_query;
  }
  __syncthreads();
  own = reinterpret_cast<bf16 *>(stages) + warp * mine_room;
  float factor[GROUPS][2];
#pragma unroll
  for (int g = 0; g < GROUPS; g++) factor[g][0] = factor[g][1] = scale;
  store_mine(dkv + at_keys, KEY_STRIDE, there, dk, factor, own);
#pragma unroll
  for (int g = 0; g < GROUPS; g++) factor[g][0] = factor[g][1] = rescale;
  store_mine(dkv + at_keys + d, KEY_STRIDE, there, dv, factor, own + MINE * STRIDE);
}
#endif

#ifdef ATTEND_DBIAS
// dbias (H, Lq, Lk) = the sum of ds over all rows, in their order, for BLOCK queries and TILE keys of a head. GROUPS is 1.
extern "C" __global__ void __launch_bounds__(THREADS) attend_dbias(const Q *q, const KV *kv, const int *lengths,
    const int *bits, const float *bias, const DO *dout, const float *lse, const float *delta, float *dbias, int rows, int lq,
    int lk, int heads, float scale, float rescale) {
  DYNAMIC_SHARED(bf16, room);
  int tiles = (lk + TILE - 1) / TILE, blocks = (lq + BLOCK - 1) / BLOCK, d = heads * E, lane = threadIdx.x % WARP;
  int first = blockIdx.x % tiles * TILE, from = blockIdx.x / tiles % blocks * BLOCK, h = blockIdx.x / tiles / blocks,
      mine = from + threadIdx.x / WARP * 16;
  float sums[TILE / 8][4] = {};
  bf16 *own = room + 2 * PANEL + threadIdx.x / WARP * 2 * MINE * STRIDE;
  bool hidden = CAUSAL && first >= from + BLOCK;
  for (int r = 0; r < rows && !hidden; r++) {
    Row row = row_of(0, lengths, r, lk, rows);
    if (first >= row.keys) continue;
    const KV *k = kv + ((size_t)r * lk + first) * KEY_STRIDE + KEYS_AT + h * E;
    copy_tile(room, k, KEY_STRIDE, row.keys - first, kv);
    copy_tile(room + PANEL, k + d, KEY_STRIDE, row.keys - first, kv);
    copy_mine(own, q + ((size_t)r * lq + mine) * QUERY_STRIDE + h * E, QUERY_STRIDE, lq - mine, q);
    copy_mine(own + MINE * STRIDE, dout + ((size_t)r * lq + mine) * d + h * E, d, lq - mine, dout);
    cp_async_commit();
    size_t at = ((size_t)r * heads + h) * lq;
    Queries x = {mine + lane / 4, lq, lk, row.keys, bits + at * ((lk + 31) / 32), bias + (size_t)h * lq * lk, scale};
    float log_sum[GROUPS][2], mean[GROUPS][2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
      int query = x.query + half * 8;
      log_sum[0][half] = query < lq ? lse[at + query] * LOG2E : 0.f;
      mean[0][half] = query < lq ? delta[at + query] : 0.f;
    }
    cp_async_wait<0>();
    __syncthreads();
    Left left[GROUPS], grads[GROUPS];
    take_left(left, own);
    take_left(grads, own + MINE * STRIDE);
    if (mine < lq) {
#pragma unroll
      for (int c = 0; c < TILE; c += 16) {
        float ds[1][2][4];
        const bf16 *kc = room + c * STRIDE, *vc = kc + PANEL;
        score_gradients<1, 1, false>(ds, left, grads, kc, vc, first + c, x, log_sum, mean, rescale);
#pragma unroll
        for (int j = 0; j < 2; j++)
#pragma unroll
          for (int i = 0; i < 4; i++) sums[c / 8 + j][i] += ds[0][j][i];
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
