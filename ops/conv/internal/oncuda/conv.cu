// Convolutions by products. What the filters see at a place of the result is a row of
//
//   columns (places, wide): columns[(b,i,j), (u*k + v)*C + c] = x[b, i*stride + u - pad, j*stride + v - pad, c]
//
// with 0 outside the image, and from column k*k*C on up to wide, a multiple of 4. With weights (Cout, wide) in that order it is
// y = columns weights^T, dweights = dy^T columns, and dx the sums of dcolumns = dy weights over the places of columns that read one
// of x. PIECE neighbouring channels, 4 or 1, are one thread's.

template <int n> struct __align__(4 * n) Piece {
  float v[n];
};

__device__ __forceinline__ Piece<PIECE> &piece(float *x, size_t at) { return *reinterpret_cast<Piece<PIECE> *>(x + at); }
__device__ __forceinline__ const Piece<PIECE> &piece(const float *x, size_t at) { return *reinterpret_cast<const Piece<PIECE> *>(x + at); }

// columns of the places of whole images x (images, H, W, C), of which there are `places`.
extern "C" __global__ void __launch_bounds__(256)
    conv_columns(float *columns, const float *x, int places, int height, int width, int channels, int out_height, int out_width,
        int kernel, int stride, int pad, int wide) {
  unsigned at = blockIdx.x * 256u + threadIdx.x, across = wide / PIECE, place = at / across;
  if (place >= (unsigned)places) return;
  int col = (at - place * across) * PIECE, tap = col / channels, c = col - tap * channels;
  int out = out_height * out_width, image = place / out, p = place - image * out;
  int y = p / out_width * stride + tap / kernel - pad, z = p % out_width * stride + tap % kernel - pad;
  Piece<PIECE> v = {};
  if (tap < kernel * kernel && y >= 0 && y < height && z >= 0 && z < width)
    v = piece(x, (((size_t)image * height + y) * width + z) * channels + c);
  piece(columns, (size_t)at * PIECE) = v;
}

// x (images, H, W, C), of which there are `places`, = the sums of the columns that read each of its values, in rising order of their
// places; with add they are added to it.
extern "C" __global__ void __launch_bounds__(256)
    conv_uncolumns(float *x, const float *columns, int places, int height, int width, int channels, int out_height, int out_width,
        int kernel, int stride, int pad, int wide, int add) {
  unsigned at = blockIdx.x * 256u + threadIdx.x, across = channels / PIECE, place = at / across;
  if (place >= (unsigned)places) return;
  int c = (at - place * across) * PIECE, image = place / (height * width), p = place - image * height * width;
  int y = p / width + pad, z = p % width + pad; // window i reads it where 0 <= y - i*stride < kernel
  int top = y < kernel ? 0 : (y - kernel) / stride + 1, left = z < kernel ? 0 : (z - kernel) / stride + 1;
  Piece<PIECE> sum = {};
  if (add) sum = piece(x, (size_t)at * PIECE);
  for (int i = top; i <= min(y / stride, out_height - 1); i++)
    for (int j = left; j <= min(z / stride, out_width - 1); j++) {
      size_t row = ((size_t)image * out_height + i) * out_width + j;
      int tap = (y - i * stride) * kernel + z - j * stride;
      Piece<PIECE> v = piece(columns, row * wide + tap * channels + c);
#pragma unroll
      for (int k = 0; k < PIECE; k++) sum.v[k] += v.v[k];
    }
  piece(x, (size_t)at * PIECE) = sum;
}

// packed (filters, wide) = w (filters, C, k, k) in the order of columns, with zeros behind.
extern "C" __global__ void conv_pack(float *packed, const float *w, int filters, int channels, int taps, int wide) {
  unsigned at = blockIdx.x * 256u + threadIdx.x, filter = at / wide;
  if (filter >= (unsigned)filters) return;
  int col = at - filter * wide, tap = col / channels, c = col - tap * channels;
  packed[at] = tap < taps ? w[((size_t)filter * channels + c) * taps + tap] : 0.f;
}

// The way back. With add it is added to w.
extern "C" __global__ void conv_unpack(float *w, const float *packed, int filters, int channels, int taps, int wide, int add) {
  unsigned at = blockIdx.x * 256u + threadIdx.x, filter = at / (channels * taps);
  if (filter >= (unsigned)filters) return;
  int rest = at - filter * channels * taps, c = rest / taps, tap = rest - c * taps;
  float v = packed[(size_t)filter * wide + tap * channels + c];
  w[at] = add ? w[at] + v : v;
}

// scale = gamma / sqrt(variance + eps), as a batch norm of given statistics has it.
extern "C" __global__ void conv_scale(float *scale, const float *gamma, const float *variance, int n, float eps) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) scale[i] = gamma[i] * (float)(1. / sqrt((double)variance[i] + (double)eps));
}

// y (rows, n) = (y - mean) scale + beta (+ add), rounded as a batch norm does it; with relu its positive part.
extern "C" __global__ void __launch_bounds__(256)
    conv_normalise(float *y, const float *mean, const float *scale, const float *beta, const float *add, int64 values, int n, int relu) {
  int64 at = ((int64)blockIdx.x * 256 + threadIdx.x) * PIECE;
  if (at >= values) return;
  int c = (int)(at % n);
  Piece<PIECE> v = piece(y, at), m = piece(mean, c), s = piece(scale, c), b = piece(beta, c), more = {};
  if (add) more = piece(add, at);
#pragma unroll
  for (int k = 0; k < PIECE; k++) {
    float t = __fadd_rn(__fmul_rn(v.v[k] - m.v[k], s.v[k]), b.v[k]) + more.v[k];
    v.v[k] = relu && t < 0.f ? 0.f : t;
  }
  piece(y, at) = v;
}
