// Rows in pieces of PIECE neighbours: 4, one access of 16 bytes for float, where every row begins at such an address, else 1.

template <class T> __device__ __forceinline__ void load_piece(float (&v)[PIECE], const T *p, size_t i) {
#if PIECE == 4
  load4(v, p, i);
#else
  v[0] = to_float(p[i]);
#endif
}

template <class T> __device__ __forceinline__ void store_piece(T *p, size_t i, const float (&v)[PIECE]) {
#if PIECE == 4
  store4(p, i, v);
#else
  p[i] = from_float<T>(v[0]);
#endif
}

__device__ __forceinline__ void fill_piece(float (&v)[PIECE], float x) {
#pragma unroll
  for (int j = 0; j < PIECE; j++) v[j] = x;
}

// The bits of dropout of the elements of a row from col on, the first one in bit 0, for a row whose words are given.
__device__ __forceinline__ uint32 piece_bits(const uint32 *words, int col) { return words[col / 32] >> (col % 32); }

// What several kernels share that write a matrix a row at a time: a block has 8 rows, each a warp, whose lanes take up to 8
// pieces.
#define WARP_ROW (int)(blockIdx.x * 8 + threadIdx.x / 32)
#define EACH_PIECE(k, col, cols) \
  for (int k = 0, col; k < 8 && (col = (int)((blockIdx.y * 8 + k) * 32 + threadIdx.x % 32) * PIECE) < (cols); k++)

// A quiet NaN: what kernels write where the host reports an operand that is out of range.
