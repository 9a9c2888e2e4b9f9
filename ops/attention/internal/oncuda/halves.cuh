// Attention by the tensor cores: products of bfloat16 with sums of float32, in the manner of FlashAttention-2 (Dao 2023).
// A warp has one or two groups of 16 queries (or keys) as left operands in registers; tiles of keys (or queries) pass through
// shared memory. What is read from there serves both groups: with one group alone the reading takes longer than the products.
//
// More macros, which attention_cuda.go chooses by the shapes: ATTEND, ATTEND_DQ, ATTEND_DKV, ATTEND_SHORT or ATTEND_DBIAS, the
// kernel that is wanted; GROUPS of 16 rows of a warp; WARPS of a block; BLOCKS of a multiprocessor at least, for which
// registers are shared out; TILE, the keys (or queries) in shared memory at a time, 32 or 64; STAGES, 2 where there are several
// of these, which are copied ahead, else 1; CHUNK, those of a tile that a warp works on at a time, 16, 32 or 64; and, for
// queries, at most one of: TOGETHER, the warps of a block have rows that share a sequence of keys; ALONE, each warp of a block
// has a row and head with few keys for itself. Otherwise a block has neighbouring queries of a row and head.

#define WIDTH ((E + 15) / 16 * 16)
#define STEPS (WIDTH / 16)
#define STRIDE (WIDTH + 8) // an odd number of 16 bytes: ldmatrix meets each bank once
#define THREADS (WARPS * WARP)
#define MINE (GROUPS * 16)    // queries (or keys) of a warp
#define BLOCK (WARPS * MINE)  // of a block
#define PANEL (TILE * STRIDE) // elements of a matrix in shared memory
#define MASK_WORDS (BLOCK / 32 + 1) // of dropout, of a query and the keys of a block

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

// Writes 16 rows of sums, the first eight times top and the others times bottom; rows counts those that there are.
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

// Eight neighbours in a row, the first n of them, as floats.
template <class T> __device__ __forceinline__ void floats8(float (&v)[8], const T *x, int n) {
#pragma unroll
  for (int i = 0; i < 8; i++) v[i] = i < n ? to_float(x[i]) : 0.f;
}

#if E % 8 == 0
template <> __device__ __forceinline__ void floats8<bf16>(float (&v)[8], const bf16 *x, int n) {
  uint4 y = n > 0 ? *reinterpret_cast<const uint4 *>(x) : make_uint4(0, 0, 0, 0);
  uint32 w[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
  for (int i = 0; i < 4; i++) v[2 * i] = __uint_as_float(w[i] << 16), v[2 * i + 1] = __uint_as_float(w[i] & 0xffff0000u);
}
#endif

// Copies the first n of eight neighbours to shared memory as bfloat16, and zeros after them. bfloat16 whose rows begin at
// multiples of 16 bytes arrives with the next cp_async_commit. there is any address that may be read.
__device__ __forceinline__ void copy8(bf16 *to, const bf16 *x, int n, const bf16 *there) {
  if (E % 8 == 0) cp_async_16(to, n > 0 ? x : there, n > 0);
  else *reinterpret_cast<uint4 *>(to) = load8(x, n);
}

__device__ __forceinline__ void copy8(bf16 *to, const float *x, int n, const float *there) {
  *reinterpret_cast<uint4 *>(to) = load8(x, n);
}

// Waits for the threads that share tiles of keys.
__device__ __forceinline__ void meet() {
#if ALONE
  __syncwarp();
#else
  __syncthreads();
#endif
}

// Copies count rows of x, ld elements apart, to shared memory by so many threads, of which this is one, those from rows on as
// zeros. base is any address that may be read.
template <int count, int threads, class T>
__device__ __forceinline__ void copy_rows(bf16 *to, const T *x, int ld, int rows, const T *base, int thread) {
  const int pieces = WIDTH / 8, all = count * pieces;
  int row = thread / pieces, col = thread % pieces * 8;
  to += row * STRIDE + col, x += row_offset(row, ld) + col;
  if (threads % pieces == 0) { // each thread copies a column of pieces
    const int step = threads / pieces;
#pragma unroll
    for (int k = 0; k < count; k += step)
      if (count % step == 0 || row + k < count)
        copy8(to + k * STRIDE, x + row_offset(k, ld), row + k < rows ? E - col : 0, base);
    return;
  }
#pragma unroll
  for (int first = 0; first < all; first += threads) {
    int i = first + thread, at = i / pieces, c = i % pieces * 8;
    if (i < all) copy8(to + (at - row) * STRIDE + c - col, x + row_offset(at - row, ld) + c - col, at < rows ? E - c : 0, base);
  }
}

// Copies TILE rows by the threads that share them.
template <class T> __device__ __forceinline__ void copy_tile(bf16 *to, const T *x, int ld, int rows, const T *base) {
  copy_rows<TILE, ALONE ? WARP : THREADS>(to, x, ld, rows, base, ALONE ? threadIdx.x % WARP : threadIdx.x);
}

// Copies the rows of a warp.
template <class T> __device__ __forceinline__ void copy_mine(bf16 *to, const T *x, int ld, int rows, const T *base) {
  copy_rows<MINE, WARP>(to, x, ld, rows, base, threadIdx.x % WARP);
}

// Sets a to the rows of a warp in shared memory.
__device__ __forceinline__ void take_left(Left (&a)[GROUPS], const bf16 *from) {
  int lane = threadIdx.x % WARP;
  from += lane % 16 * STRIDE + lane / 16 * 8;
#pragma unroll
  for (int g = 0; g < GROUPS; g++)
#pragma unroll
    for (int k = 0; k < STEPS; k++) ldmatrix_x4(a[g][k], from + g * 16 * STRIDE + k * 16);
}

// Writes the rows of a warp, group g's first eight times factor[g][0] and the others times factor[g][1]; rows counts those that
// there are. room is shared memory for them, which the warp has for itself.
template <class T>
__device__ __forceinline__ void store_mine(T *x, int ld, int rows, const Sums (&y)[GROUPS], const float (&factor)[GROUPS][2], bf16 *) {
#pragma unroll
  for (int g = 0; g < GROUPS; g++)
    store_rows(x + row_offset(g * 16, ld), ld, rows - g * 16, y[g], factor[g][0], factor[g][1]);
}

#if E % 8 == 0
// bfloat16 goes through shared memory, so that whole rows are written.
template <>
__device__ __forceinline__ void store_mine<bf16>(bf16 *x, int ld, int rows, const Sums (&y)[GROUPS],
    const float (&factor)[GROUPS][2], bf16 *room) {
  int lane = threadIdx.x % WARP;
  __syncwarp();
#pragma unroll
  for (int g = 0; g < GROUPS; g++)
#pragma unroll
    for (int n = 0; n < WIDTH / 8; n++)
#pragma unroll
      for (int half = 0; half < 2; half++)
        *reinterpret_cast<uint32 *>(room + (g * 16 + half * 8 + lane / 4) * STRIDE + n * 8 + lane % 4 * 2) =
            pack(y[g][n][2 * half] * factor[g][half], y[g][n][2 * half + 1] * factor[g][half]);
  __syncwarp();
  const int pieces = E / 8;
#pragma unroll
  for (int first = 0; first < MINE * pieces; first += WARP) {
    int row = (first + lane) / pieces, col = (first + lane) % pieces * 8;
    if (row < rows && row < MINE)
      *reinterpret_cast<uint4 *>(x + row_offset(row, ld) + col) = *reinterpret_cast<const uint4 *>(room + row * STRIDE + col);
  }
}
#endif

// y[.] (16, 16 n) += a[.] b^T for g groups and the 16 n rows of b.
template <int g, int n>
__device__ __forceinline__ void multiply_rows(float (&y)[g][2 * n][4], const Left (&a)[GROUPS], const bf16 *b) {
  int lane = threadIdx.x % WARP;
  b += (lane / 16 * 8 + lane % 8) * STRIDE + lane / 8 % 2 * 8;
#pragma unroll
  for (int k = 0; k < STEPS; k++)
#pragma unroll
    for (int c = 0; c < n; c++) {
      unsigned x[4];
      ldmatrix_x4(x, b + c * 16 * STRIDE + k * 16);
      unsigned lo[2] = {x[0], x[1]}, hi[2] = {x[2], x[3]};
#pragma unroll
      for (int i = 0; i < g; i++) {
        mma_m16n8k16_bf16(y[i][2 * c], a[i][k], lo, y[i][2 * c]);
        mma_m16n8k16_bf16(y[i][2 * c + 1], a[i][k], hi, y[i][2 * c + 1]);
      }
    }
}

// y[.] (16, WIDTH) += a[.] b for g groups, the 16 n columns of a, which are rounded, and the rows of b.
template <int g, int n>
__device__ __forceinline__ void multiply(Sums (&y)[GROUPS], const float (&a)[g][2 * n][4], const bf16 *b) {
  int lane = threadIdx.x % WARP;
  b += (lane / 8 % 2 * 8 + lane % 8) * STRIDE + lane / 16 * 8;
#pragma unroll
  for (int c = 0; c < n; c++) {
    unsigned left[g][4];
#pragma unroll
    for (int i = 0; i < g; i++) {
      left[i][0] = pack(a[i][2 * c][0], a[i][2 * c][1]), left[i][1] = pack(a[i][2 * c][2], a[i][2 * c][3]);
      left[i][2] = pack(a[i][2 * c + 1][0], a[i][2 * c + 1][1]), left[i][3] = pack(a[i][2 * c + 1][2], a[i][2 * c + 1][3]);
    }
#pragma unroll
    for (int e = 0; e < STEPS; e++) {
      unsigned x[4];
      ldmatrix_x4_trans(x, b + c * 16 * STRIDE + e * 16);
      unsigned lo[2] = {x[0], x[1]}, hi[2] = {x[2], x[3]};
#pragma unroll
      for (int i = 0; i < g; i++) {
        mma_m16n8k16_bf16(y[i][2 * e], left[i], lo, y[i][2 * e]);
        mma_m16n8k16_bf16(y[i][2 * e + 1], left[i], hi, y[i][2 * e + 1]);
      }
    }
  }
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

// What a warp knows of its queries of a row and head: the lane's are query, query + 8, query + 16, ..
struct Queries {
  int query, lq, lk, keys; // keys: that the row sees
  const int *bits;         // of the row's and head's first query
  const float *bias;       // of the head
  float scale;
};

// The words of the dropout mask of the lane's i-th query and keys from a multiple of 32 on, shifted to the lane's first column.
__device__ __forceinline__ uint32 mask_word(const Queries &x, int i, int key) {
  int words = (x.lk + 31) / 32, word = key / 32, query = x.query + i * 8;
  return word < words && query < x.lq ? (uint32)x.bits[(size_t)query * words + word] >> threadIdx.x % 4 * 2 : 0;
}

__device__ __forceinline__ float bias_at(const float *bias, int query, int key, int lq, int lk) {
  return query < lq && key < lk ? bias[(size_t)query * lk + key] * LOG2E : 0.f;
}

// A warp's queries.
struct Place {
  int row, head, sequence, mine, there; // of a row and head from query mine on; there says how many are left, none: no queries
  int keys, seen;                       // keys of the row, and those that the block needs
  bool bad;
};

// Calls visit for the queries of each warp of a block, the kernel's Place one by one.
template <class F>
__device__ __forceinline__ void each_place(F visit, const int *order, const int *starts, const int *index, const int *lengths,
    int rows, int lq, int lk, int heads, int seqs) {
  int warp = threadIdx.x / WARP;
#if TOGETHER
  // A block for each sequence, and one for the rows whose index is none of a sequence, which come first and last in order.
  int h = blockIdx.x % heads, n = blockIdx.x / heads;
  int first = n < seqs ? starts[n] : 0, end = n < seqs ? starts[n + 1] : rows - (starts[seqs] - starts[0]);
  auto row_at = [&](int i) { return order[n < seqs || i < starts[0] ? i : starts[seqs] + i - starts[0]]; };
#pragma unroll 1
  for (int i = first; i < end; i += WARPS) {
    Place x = {0, h, n < seqs ? n : 0, 0, 0, 0, 0, false};
    for (int j = i; j < min(i + WARPS, end); j++) x.seen = max(x.seen, row_of(index, lengths, row_at(j), lk, seqs).keys);
    if (i + warp < end) {
      x.row = row_at(i + warp), x.there = lq;
      Row row = row_of(index, lengths, x.row, lk, seqs);
      x.keys = row.keys, x.bad = row.bad;
    }
    visit(x);
    meet();
  }
#elif ALONE
  int i = blockIdx.x * WARPS + warp;
  if (i >= rows * heads) return;
  Row row = row_of(index, lengths, i / heads, lk, seqs);
  visit(Place{i / heads, i % heads, row.sequence, 0, lq, row.keys, row.keys, row.bad});
#else
  int blocks = (lq + BLOCK - 1) / BLOCK, from = blockIdx.x % blocks * BLOCK, mine = from + warp * MINE,
      r = blockIdx.x / blocks / heads;
  Row row = row_of(index, lengths, r, lk, seqs);
  visit(Place{r, (int)(blockIdx.x / blocks % heads), row.sequence, mine, lq - mine, row.keys,
      CAUSAL ? min(row.keys, from + BLOCK) : row.keys, row.bad});
#endif
}

// Calls take<groups, keys/16, whole>(first key) for the keys of a tile from key on that a warp's queries see, CHUNK of them at a
// time. whole: all queries of the warp see all of them.
#define EACH_CHUNK(take, key, at)                                                                                           \
  {                                                                                                                         \
    int limit = CAUSAL ? min((at).keys, (at).mine + MINE) : (at).keys, c = key, end = min(limit, key + TILE);               \
    if (GROUPS > 1 && (at).there <= 16) {                                                                                   \
      _Pragma("unroll 1") for (; c < end; c += 16) take(1, 1, false, c);                                                    \
    } else {                                                                                                                \
      int full = CAUSAL ? min(end, (at).mine + 1) : end;                                                                    \
      _Pragma("unroll 1") for (; c + CHUNK <= full; c += CHUNK) take(GROUPS, CHUNK / 16, true, c);                          \
      if (CHUNK > 16)                                                                                                       \
        _Pragma("unroll 1") for (; c + 16 < end; c += 32) take(GROUPS, 2, false, c);                                        \
      _Pragma("unroll 1") for (; c < end; c += 16) take(GROUPS, 1, false, c);                                               \
    }                                                                                                                       \
  }
