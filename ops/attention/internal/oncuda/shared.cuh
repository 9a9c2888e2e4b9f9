// What the attention kernels in bfloat16 and in float32 share. Letters as in attention.go: R rows (sequences of queries), N
// sequences of keys, Lq and Lk tokens of each, H heads of width E, D = H E.
//
// Macros: E; the types Q, KV, O, DO, DQ and DKV of queries, of keys and values, of the output, of its gradient and of the
// gradients; SELF: queries, keys and values are rows [q | k | v] of one matrix, else rows of q and rows [k | v]; INDEX,
// LENGTHS, DROPOUT, BIAS and CAUSAL: the options of the op.
//
// Integers of a run that are out of range cannot be reported from here: such a row reads no keys and its output is NaN.

#define LOG2E 1.4426950408889634f
#define LN2 0.6931471805599453f

// Where keys begin inside a row, and how far apart rows are; values lie D behind keys.
#define KEYS_AT (SELF ? d : 0)
#define QUERY_STRIDE (SELF ? 3 * d : d)
#define KEY_STRIDE (SELF ? 3 * d : 2 * d)

// Where row i begins, for rows ld elements apart.
__device__ __forceinline__ int64 row_offset(int i, int ld) { return (int64)i * ld; }

// 2^x to an error of 2 ulp; numbers below 2^-126 are 0.
__device__ __forceinline__ float power_of_two(float x) {
#ifdef EMULATED
  return exp2f(x);
#else
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#endif
}

// The key sequence of a row and how many of its keys the row sees.
struct Row {
  int sequence, keys;
  bool bad;
};

__device__ __forceinline__ Row row_of(const int *index, const int *lengths, int r, int lk, int seqs) {
  Row x = {r, lk, false};
#if INDEX
  x.sequence = index[r];
  if (x.sequence < 0 || x.sequence >= seqs) x = {0, 0, true};
#endif
#if LENGTHS
  int n = lengths[r];
  if (n < 0 || n > lk) x.keys = 0, x.bad = true;
  if (!x.bad) x.keys = n;
#endif
  return x;
}
