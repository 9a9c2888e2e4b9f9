// AdamW over the slabs of a model as mirrors keep them, with what belongs to an update: the norm of the gradient and moving
// averages of parameters (momentum twins).

// A piece of one parameter: what one block works on. Go writes it, see pieceWords.
struct __align__(16) Piece {
  int64 at;       // word of the first element in the mirrors of values, gradients and moments
  int64 twin;     // word of its moving average, -1: none
  int length;
  int update;     // 0: it never changes and has a moving average alone
  float rate;     // times the learning rate
  float decay;
  int side;       // of the blocks of a learned metric, 0: it is none
  uint32 first;   // place of the first element in such a block
  float identity; // decay towards 1 on the diagonal
  float l1;
};

// Scalars of an update.
struct Step {
  float scale, decay, beta1, rest1, beta2, rest2, correct2, eps, rate, shift, least, weight;
};

template <int n> __device__ __forceinline__ void load(float (&v)[n], const float *p, int i) {
  if constexpr (n == 4) load4(v, p, i);
  else v[0] = p[i];
}

template <int n, class T> __device__ __forceinline__ void store(T *p, int i, const float (&v)[n]) {
  if constexpr (n == 4) store4(p, i, v);
  else p[i] = from_float<T>(v[0]);
}

// Loshchilov and Hutter 2019, algorithm 2, in the order of the host's kernel (vector.AdamW) and with its roundings:
//   g = scale g
//   p = p - lr decay p
//   m = beta1 m + (1 - beta1) g
//   v = beta2 v + (1 - beta2) g^2
//   p = p - lr / (1 - beta1^t) m / (sqrt(v / (1 - beta2^t)) + eps)
__device__ __forceinline__ void move(float &p, float &m, float &v, float g, const Step &s) {
  g = __fmul_rn(s.scale, g);
  p = __fmaf_rn(-s.decay, p, p);
  m = __fmaf_rn(s.rest1, g, __fmul_rn(s.beta1, m));
  v = __fmaf_rn(s.rest2, __fmul_rn(g, g), __fmul_rn(s.beta2, v));
  p = __fsub_rn(p, __fdiv_rn(__fmul_rn(m, s.rate), __fadd_rn(__fsqrt_rn(__fmul_rn(v, s.correct2)), s.eps)));
}

// What besides the gradient moves the weight at a place of a block of a learned metric:
//   w = w + lr decay (towards the identity)    on the diagonal
//   w = sign(w) max(|w| - lr L1, 0)            off it
// A comparison with NaN is false: NaN stays.
__device__ __forceinline__ float pulled(float w, uint32 place, uint32 side, const Step &s) {
  place %= side * side;
  if (place / side == place % side) return __fadd_rn(w, s.shift);
  if (w > 0.f) {
    w = __fsub_rn(w, s.least);
    return w < 0.f ? 0.f : w;
  }
  w = __fadd_rn(w, s.least);
  return w > 0.f ? 0.f : w;
}

// Elements i to i + n of a piece whose memory begins at the pointers: half and twin may be null.
template <int n>
__device__ __forceinline__ void elements(int i, const Piece &c, const Step &s, float *values, float *m, float *v, const float *grads, bf16 *half, float *twin) {
  float p[n];
  load<n>(p, values, i);
  if (c.update) {
    float a[n], b[n], g[n];
    load<n>(a, m, i);
    load<n>(b, v, i);
    load<n>(g, grads, i);
#pragma unroll
    for (int k = 0; k < n; k++) {
      move(p[k], a[k], b[k], g[k], s);
      if (c.side) p[k] = pulled(p[k], c.first + i + k, c.side, s);
    }
    store<n>(m, i, a);
    store<n>(v, i, b);
    store<n>(values, i, p);
    if (half) store<n>(half, i, p);
  }
  if (twin) {
    float e[n];
    load<n>(e, twin, i);
#pragma unroll
    for (int k = 0; k < n; k++) e[k] = __fmaf_rn(s.weight, __fsub_rn(p[k], e[k]), e[k]);
    store<n>(twin, i, e);
  }
}

// One block a piece: values, moments and, unless twins is null, moving averages (Li et al. 2021, section 3.2), with what is kept
// of the values in bfloat16.
extern "C" __global__ void __launch_bounds__(256) adamw(const Piece *pieces, float *values, bf16 *half, float *m, float *v, const float *grads, float *twins,
                                                        float lr, float beta1, float rest1, float beta2, float rest2, float correct1, float correct2, float eps, float scale, float weight) {
  const Piece c = pieces[blockIdx.x];
  const bool averaged = twins && c.twin >= 0;
  if (!c.update && !averaged) return;
  const float rate = __fmul_rn(lr, c.rate);
  const Step s = {scale, __fmul_rn(rate, c.decay), beta1, rest1, beta2, rest2, correct2, eps, __fdiv_rn(rate, correct1),
                  __fmul_rn(rate, c.identity), __fmul_rn(rate, c.l1), weight};
  values += c.at, m += c.at, v += c.at, grads += c.at;
  half = half ? half + c.at : nullptr;
  twins = averaged ? twins + c.twin : nullptr;
  // Pieces of a whole parameter are aligned in all mirrors, so that four elements are one access.
  const bool aligned = ((c.at | (averaged ? c.twin : 0)) & 3) == 0;
  const int wide = aligned ? c.length / 4 * 4 : 0;
  for (int i = 4 * threadIdx.x; i < wide; i += 4 * blockDim.x) elements<4>(i, c, s, values, m, v, grads, half, twins);
  for (int i = wide + threadIdx.x; i < c.length; i += blockDim.x) elements<1>(i, c, s, values, m, v, grads, half, twins);
}

// sums[piece] = sum of squares of the gradients that an update reads: no square of a float leaves the range of double.
extern "C" __global__ void __launch_bounds__(256) sum_squares(double *sums, const Piece *pieces, const float *grads) {
  const Piece c = pieces[blockIdx.x];
  double sum = 0;
  if (c.update) {
    grads += c.at;
    const int wide = (c.at & 3) == 0 ? c.length / 4 * 4 : 0;
    for (int i = 4 * threadIdx.x; i < wide; i += 4 * blockDim.x) {
      float g[4];
      load4(g, grads, i);
#pragma unroll
      for (int k = 0; k < 4; k++) sum += (double)g[k] * (double)g[k];
    }
    for (int i = wide + threadIdx.x; i < c.length; i += blockDim.x) sum += (double)grads[i] * (double)grads[i];
  }
  sum = block_sum_double(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// total = sum over n of sums, by one block.
extern "C" __global__ void __launch_bounds__(1024) sum_pieces(double *total, const double *sums, int n) {
  double sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += sums[i];
  sum = block_sum_double(sum);
  if (threadIdx.x == 0) *total = sum;
}
