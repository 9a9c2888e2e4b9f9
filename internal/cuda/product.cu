// Kernels beside the products of cuBLASLt.

// n neighbours that are read or written at once: their address is aligned to all of them.
template <class T, int n> struct alignas(sizeof(T) * n) Neighbours {
  T v[n];
};

#ifdef FROM
// to (rows, each), each a multiple of 8, = from (rows, cols) whose rows begin ld values apart, as another type: with zeros from column
// cols on, and from column *limit on if there is a limit. WIDE neighbours of from are read at once. A thread writes 8 values.
extern "C" __global__ void place_rows(TO *to, const FROM *from, const int *limit, int rows, int each, int cols, int64 ld) {
  uint32 at = blockIdx.x * 256u + threadIdx.x, chunks = each / 8, row = at / chunks;
  if (row >= (uint32)rows) return;
  int col = (at - row * chunks) * 8;
  int end = limit ? max(0, min(*limit, cols)) : cols;
  const FROM *x = from + row * ld + col;
  Neighbours<TO, 8> y;
  if (col + 8 <= end) {
#pragma unroll
    for (int k = 0; k < 8; k += WIDE) {
      Neighbours<FROM, WIDE> part = *reinterpret_cast<const Neighbours<FROM, WIDE> *>(x + k);
#pragma unroll
      for (int i = 0; i < WIDE; i++) y.v[k + i] = from_float<TO>(to_float(part.v[i]));
    }
  } else {
#pragma unroll
    for (int k = 0; k < 8; k++) y.v[k] = from_float<TO>(col + k < end ? to_float(x[k]) : 0.f);
  }
  *reinterpret_cast<Neighbours<TO, 8> *>(to + (size_t)at * 8) = y;
}
#endif

#ifdef Y
// y += bias (cols) for each of the rows of y, which begin ld values apart..
extern "C" __global__ void add_bias(Y *y, const BIAS *bias, int cols, int64 ld) {
  int col = blockIdx.y * 256 + threadIdx.x;
  if (col >= cols) return;
  Y *at = y + blockIdx.x * ld + col;
  *at = from_float<Y>(to_float(*at) + to_float(bias[col]));
}
#endif
