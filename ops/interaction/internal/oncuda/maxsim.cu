// Kernels of late interaction. Products are those of ni images from image i0 on with nj texts from text j0 on, rows of all
// tokens of the images, T each, and columns of all tokens of the texts, L each, with ld values in a row.

// Which tokens of a sequence take part: from first to its length.
struct Side {
  const int *lengths;
  int len, first;
  __device__ int end(int i) const { return max(first, lengths ? min(lengths[i], len) : len); }
  __device__ bool bad(int i) const { return lengths && lengths[i] > len; } // an error on the host
};

#define SIDES const int *xlengths, const int *ylengths, int T, int L, int xfirst, int yfirst, int i0, int j0, \
              int nj, int m, int ld
#define TAKE_PAIR \
  int bi = blockIdx.x / nj, bj = blockIdx.x - bi * nj, i = i0 + bi, j = j0 + bj; \
  size_t pair = (size_t)i * m + j, at = (size_t)bi * T * ld + (size_t)bj * L

// A larger value takes the place of best, or an equal one that comes first.
__device__ __forceinline__ void better(float &best, int &at, float v, int k) {
  if (v > best || v == best && k < at) best = v, at = k;
}

// The scores of pairs: the sums of the maxima of the images' tokens with weights v, whose places go to xplaces (N, M, T), and
// of the texts' with weights w, whose places go to yplaces (N, M, L); null for a side without a sum. A token without any has
// the place -1. A block for each pair.
extern "C" __global__ void maxsim(float *scores, int *xplaces, int *yplaces, const float *products, const float *v,
    const float *w, SIDES) {
  __shared__ double sums[WARP];
  TAKE_PAIR;
  Side x{xlengths, T, xfirst}, y{ylengths, L, yfirst};
  int t0 = xfirst, t1 = x.end(i), l0 = yfirst, l1 = y.end(j), warps = blockDim.x / WARP;
  if (t0 == t1 || l0 == l1) t1 = t0, l1 = l0;
  products += at;
  double sum = 0;
  if (xplaces) {
    xplaces += pair * T;
    for (int t = threadIdx.x / WARP; t < T; t += warps) {
      if (t < t0 || t >= t1) {
        if (LANE == 0) xplaces[t] = -1;
        continue;
      }
      const float *row = products + (size_t)t * ld;
      float best = -INFINITY_F;
      int place = L;
      for (int l = l0 + LANE; l < l1; l += WARP) better(best, place, row[l], l);
#pragma unroll
      for (int d = 16; d > 0; d /= 2) better(best, place, __shfl_xor_sync(FULL, best, d), __shfl_xor_sync(FULL, place, d));
      if (place == L) place = l0, best = row[l0]; // nothing but NaN
      if (LANE == 0) xplaces[t] = place, sum += (double)v[(size_t)i * T + t] * best;
    }
  }
  if (yplaces) {
    yplaces += pair * L;
    for (int l = threadIdx.x; l < L; l += blockDim.x) {
      int place = -1;
      if (l >= l0 && l < l1) {
        float best = products[(size_t)t0 * ld + l];
        place = t0;
        for (int t = t0 + 1; t < t1; t++) {
          float p = products[(size_t)t * ld + l];
          if (p > best) best = p, place = t;
        }
        sum += (double)w[(size_t)j * L + l] * best;
      }
      yplaces[l] = place;
    }
  }
  sum = warp_sum_double(sum);
  if (LANE == 0) sums[threadIdx.x / WARP] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int k = 1; k < warps; k++) sum += sums[k];
    scores[pair] = x.bad(i) || y.bad(j) ? NOT_A_NUMBER : (float)sum;
  }
}

// d = the gradients of the products, g_ij (v_it [l = place of t] + w_jl [t = place of l]), 0 for all others. A block for each
// pair.
extern "C" __global__ void maxsim_slopes(float *d, const int *xplaces, const int *yplaces, const float *g, const float *v,
    const float *w, SIDES) {
  TAKE_PAIR;
  float slope = g[pair];
  d += at;
  for (int k = threadIdx.x; k < T * L; k += blockDim.x) {
    int t = k / L, l = k - t * L;
    float sum = 0;
    if (xplaces && xplaces[pair * T + t] == l) sum += v[(size_t)i * T + t];
    if (yplaces && yplaces[pair * L + l] == t) sum += w[(size_t)j * L + l];
    d[(size_t)t * ld + l] = sum == 0 ? 0.f : slope * sum;
  }
}

// dv of a token of a side = sum over the n sequences of the other side of g times the largest product, made again from its
// place. own and other are rows of C channels, lens tokens of a sequence; pairs of own sequence i and other j are i istep + j
// jstep. A block for each token.
extern "C" __global__ void maxsim_dweights(float *dv, const int *places, const float *g, const float *own, const float *other,
    int len, int other_len, int n, int channels, int64 istep, int64 jstep) {
  __shared__ float room[33];
  int i = blockIdx.x / len, t = blockIdx.x - i * len, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
  const float *x = own + (size_t)blockIdx.x * channels;
  float sum = 0; // of each lane, over its channels
  for (int j = warp; j < n; j += warps) {
    size_t pair = i * istep + j * jstep;
    int l = places[pair * len + t];
    if (l < 0) continue;
    const float *y = other + ((size_t)j * other_len + l) * channels;
    float dot = 0;
    for (int c = LANE; c < channels; c += WARP) dot += x[c] * y[c];
    sum += g[pair] * dot;
  }
  sum = block_sum(sum, room);
  if (threadIdx.x == 0) dv[blockIdx.x] = sum;
}

// Results of tokens, a warp for each of n sequences of len, 0 for tokens that take no part: MODE 0: 1/n of n tokens that do, 1:
// 1, 2: the sequence's value, 3: the softmax of logits a, 4: its gradient, where a is the softmax and b that at it. NaN where a length is more than there are tokens.
#ifdef MODE
extern "C" __global__ void per_token(float *y, const float *a, const float *b, const int *lengths, int n, int len, int first) {
  int i = (blockIdx.x * blockDim.x + threadIdx.x) / WARP;
  if (i >= n) return;
  Side s{lengths, len, first};
  int lo = first, hi = s.end(i);
  size_t at = (size_t)i * len;
  float top = -INFINITY_F, sum = 0;
  if (MODE == 3) {
    for (int k = lo + LANE; k < hi; k += WARP) top = fmaxf(top, a[at + k]);
    top = warp_max(top);
    for (int k = lo + LANE; k < hi; k += WARP) sum += expf(a[at + k] - top);
    sum = warp_sum(sum);
  }
  if (MODE == 4) {
    for (int k = lo + LANE; k < hi; k += WARP) sum += a[at + k] * b[at + k];
    sum = warp_sum(sum);
  }
  for (int k = LANE; k < len; k += WARP) {
    float v = 0;
    if (k >= lo && k < hi) {
      if (MODE == 0) v = 1.f / (hi - lo);
      if (MODE == 1) v = 1;
      if (MODE == 2) v = a[i];
      if (MODE == 3) v = expf(a[at + k] - top) / sum;
      if (MODE == 4) v = a[at + k] * (b[at + k] - sum);
    }
    y[at + k] = s.bad(i) ? NOT_A_NUMBER : v;
  }
}
#endif

// out (6): what MismatchSamples says of scores (n, n) and moments (n, n, 3), in double. A block.
extern "C" __global__ void mismatch_samples(float *out, const float *scores, const float *moments, int n) {
  __shared__ double sums[6][WARP];
  double own[6] = {0, 0, 0, 0, 0, 0};
  for (int j = threadIdx.x; j < n; j += blockDim.x) {
    int best = 0, worst = 0;
    float high = scores[j], low = high;
    for (int i = 0; i < n; i++) {
      float v = scores[(size_t)i * n + j];
      if (v > high) high = v, best = i;
      else if (v < low) low = v, worst = i;
    }
    if (best != j) continue;
    for (int k = 0; k < 3; k++) {
      own[k] += moments[((size_t)j * n + j) * 3 + k];
      own[3 + k] += moments[((size_t)worst * n + j) * 3 + k];
    }
  }
  for (int k = 0; k < 6; k++) {
    double sum = warp_sum_double(own[k]);
    if (LANE == 0) sums[k][threadIdx.x / WARP] = sum;
  }
  __syncthreads();
  if (threadIdx.x >= 6) return;
  double sum = 0;
  for (int k = 0; k < blockDim.x / WARP; k++) sum += sums[threadIdx.x][k];
  out[threadIdx.x] = sum;
}
