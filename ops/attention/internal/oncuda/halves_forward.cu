// The forward kernel; halves.cuh is before it.

#ifdef ATTEND
// Takes 16 n keys from key first on into the running softmax of g groups of queries (Milakov and Gimelshein 2018): with m a
// score as large as any before, or nearly, times log2 e, l = sum 2^(s - m) and o = sum 2^(s - m) v. m follows the largest score
// when that has left it by more than 8, a factor of 256, which costs no digits and spares most of the scaling of o.
template <int g, int n, bool whole>
__device__ __forceinline__ void forward_chunk(Sums (&o)[GROUPS], float (&m)[GROUPS][2], float (&l)[GROUPS][2],
    const Left (&q)[GROUPS], const bf16 *k, const bf16 *v, int first, const Queries &x) {
  int col = threadIdx.x % 4 * 2;
#if DROPOUT
  uint32 drop[2 * g][(n + 1) / 2];
#pragma unroll
  for (int i = 0; i < 2 * g; i++)
#pragma unroll
    for (int j = 0; j < (n + 1) / 2; j++) drop[i][j] = mask_word(x, i, first + j * 32) >> first % 32;
#endif
  float s[g][2 * n][4];
#pragma unroll
  for (int a = 0; a < g; a++)
#pragma unroll
    for (int j = 0; j < 2 * n; j++) s[a][j][0] = s[a][j][1] = s[a][j][2] = s[a][j][3] = 0;
  multiply_rows<g, n>(s, q, k);
  const float unit = BIAS ? 1.f : x.scale * LOG2E; // s * unit is the score times log2 e
  if (BIAS || !whole)
#pragma unroll
    for (int a = 0; a < g; a++)
#pragma unroll
      for (int j = 0; j < 2 * n; j++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
          int key = first + j * 8 + col + i % 2, query = x.query + a * 16 + i / 2 * 8;
#if BIAS
          s[a][j][i] = fmaf(s[a][j][i], x.scale * LOG2E, bias_at(x.bias, query, key, x.lq, x.lk));
#endif
          if (!whole && (key >= x.keys || (CAUSAL && key > query))) s[a][j][i] = -INFINITY_F;
        }
  float largest[g][2];
  bool far = false;
#pragma unroll
  for (int a = 0; a < g; a++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      float y = s[a][0][2 * half];
#pragma unroll
      for (int j = 0; j < 2 * n; j++) y = fmaxf(y, fmaxf(s[a][j][2 * half], s[a][j][2 * half + 1]));
      largest[a][half] = y * unit;
      far = far || largest[a][half] > m[a][half] + 8;
    }
  if (__any_sync(FULL, far)) {
#pragma unroll
    for (int a = 0; a < g; a++)
#pragma unroll
      for (int half = 0; half < 2; half++) {
        float y = fmaxf(m[a][half], row_max(largest[a][half]));
        float shrink = y == -INFINITY_F ? 1.f : power_of_two(m[a][half] - y);
        m[a][half] = y, l[a][half] *= shrink;
#pragma unroll
        for (int j = 0; j < WIDTH / 8; j++) o[a][j][2 * half] *= shrink, o[a][j][2 * half + 1] *= shrink;
      }
  }
#pragma unroll
  for (int a = 0; a < g; a++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      float shift = m[a][half] == -INFINITY_F ? 0.f : m[a][half], sum[2] = {0, 0};
#pragma unroll
      for (int j = 0; j < 2 * n; j++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
          float p = power_of_two(fmaf(s[a][j][2 * half + i], unit, -shift));
          sum[i] += p;
#if DROPOUT
          if (!(drop[2 * a + half][j / 4] >> (j % 4 * 8 + i) & 1)) p = 0;
#endif
          s[a][j][2 * half + i] = p;
        }
      l[a][half] += sum[0] + sum[1];
    }
  multiply<g, n>(o, s, v);
}

// out = softmax(q k^T scale) v, lse = log sum exp (q k^T scale).
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) attend(const Q *q, const KV *kv, const int *order,
    const int *starts, const int *index, const int *lengths, const int *bits, const float *bias, O *out, float *lse, int rows,
    int lq, int lk, int heads, int seqs, float scale, float rescale) {
  DYNAMIC_SHARED(bf16, room);
  const int mine_room = MINE * STRIDE;
  int d = heads * E, lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  bf16 *tiles = room + (ALONE ? warp * (2 * PANEL + mine_room) : 0);
  bf16 *own = (ALONE ? tiles : tiles + warp * mine_room) + 2 * PANEL; // where the second stage is, before that is used
  each_place([&](const Place &at) {
    size_t first = ((size_t)at.row * heads + at.head) * lq;
    const KV *k = kv + (size_t)at.sequence * lk * KEY_STRIDE + KEYS_AT + at.head * E;
    Queries x = {at.mine + lane / 4, lq, lk, at.keys, bits + first * ((lk + 31) / 32), bias + (size_t)at.head * lq * lk, scale};
    int count = (at.seen + TILE - 1) / TILE;
    auto copy = [&](int i) {
      bf16 *to = tiles + i % STAGES * 2 * PANEL;
      const KV *from = k + row_offset(i * TILE, KEY_STRIDE);
      copy_tile(to, from, KEY_STRIDE, at.seen - i * TILE, kv);
      copy_tile(to + PANEL, from + d, KEY_STRIDE, at.seen - i * TILE, kv);
    };
    copy_mine(own, q + ((size_t)at.row * lq + at.mine) * QUERY_STRIDE + at.head * E, QUERY_STRIDE, at.there, q);
    cp_async_commit();
    if (count > 0) copy(0);
    cp_async_commit();
    cp_async_wait<1>();
    __syncwarp();
    Left left[GROUPS];
    take_left(left, own);
    Sums o[GROUPS] = {};
    float m[GROUPS][2], l[GROUPS][2];
#pragma unroll
    for (int g = 0; g < GROUPS; g++) m[g][0] = m[g][1] = -INFINITY_F, l[g][0] = l[g][1] = 0;
#pragma unroll 1
    for (int i = 0; i < count; i++) {
      cp_async_wait<0>();
      meet(); // the tile is there, and the one before it is read
      if (i + 1 < count) copy(i + 1);
      cp_async_commit();
      const bf16 *tile = tiles + i % STAGES * 2 * PANEL;
      int key = i * TILE;
#define TAKE(g, n, whole, c) \
  forward_chunk<g, n, whole>(o, m, l, left, tile + (c - key) * STRIDE, tile + PANEL + (c - key) * STRIDE, c, x)
      if (at.there > 0) EACH_CHUNK(TAKE, key, at)
    }
    meet();
    float factor[GROUPS][2];
#pragma unroll
    for (int g = 0; g < GROUPS; g++)
#pragma unroll
      for (int half = 0; half < 2; half++) {
        float sum = row_sum(l[g][half]);
        factor[g][half] = at.bad ? NOT_A_NUMBER : sum > 0 ? rescale / sum : sum;
        int i = g * 16 + half * 8 + lane / 4;
        if (lane % 4 == 0 && i < at.there)
          lse[first + at.mine + i] = at.bad ? NOT_A_NUMBER : at.keys == 0 ? 0.f : m[g][half] * LN2 + logf(sum);
      }
    store_mine(out + ((size_t)at.row * lq + at.mine) * d + at.head * E, d, at.there, o, factor,
        ALONE ? tiles : tiles + warp * mine_room);
  }, order, starts, index, lengths, rows, lq, lk, heads, seqs);
}
#endif
