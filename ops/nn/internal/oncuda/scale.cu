// Products with a factor for each column, and of elements.

// y = x scale (+ shift where SHIFT is 1), for elements from on of scale and shift. y may be x.
extern "C" __global__ void scale_rows(float *y, const float *x, const float *scale, const float *shift, int rows, int cols,
    int from) {
  int row = WARP_ROW;
  if (row >= rows) return;
  size_t at = (size_t)row * cols;
#pragma unroll
  EACH_PIECE(k, col, cols) {
    float v[PIECE], s[PIECE], t[PIECE];
    load_piece(v, x + at, col);
    load_piece(s, scale, (size_t)from + col);
#if SHIFT
    load_piece(t, shift, (size_t)from + col);
#else
    fill_piece(t, 0);
#endif
#pragma unroll
    for (int j = 0; j < PIECE; j++) v[j] = SHIFT ? fmaf(v[j], s[j], t[j]) : v[j] * s[j];
    store_piece(y + at, col, v);
  }
}

// y = a b. y may be a.
extern "C" __global__ void multiply(float *y, const float *a, const float *b, int rows, int cols) {
  int row = WARP_ROW;
  if (row >= rows) return;
  size_t at = (size_t)row * cols;
#pragma unroll
  EACH_PIECE(k, col, cols) {
    float v[PIECE], w[PIECE];
    load_piece(v, a + at, col);
    load_piece(w, b + at, col);
#pragma unroll
    for (int j = 0; j < PIECE; j++) v[j] *= w[j];
    store_piece(y + at, col, v);
  }
}
