// Rows divided by their length. A warp takes a row, of which it sums squares in double, as the host does: they may leave the
// range of float.

// y = x / max(|x|, eps). y may be x.
extern "C" __global__ void l2_normalize(float *y, float *norms, const float *x, int rows, int cols, float eps) {
  int row = WARP_ROW, lane = threadIdx.x % 32;
  if (row >= rows) return;
  x += (size_t)row * cols, y += (size_t)row * cols;
  double sum = 0;
#pragma unroll 4
  for (int col = lane * PIECE; col < cols; col += 32 * PIECE) {
    float v[PIECE];
    load_piece(v, x, col);
#pragma unroll
    for (int j = 0; j < PIECE; j++) sum += (double)v[j] * v[j];
  }
  float norm = (float)sqrt(warp_sum_double(sum));
  if (lane == 0) norms[row] = norm;
  float scale = 1.f / fmaxf(norm, eps);
#pragma unroll 4
  for (int col = lane * PIECE; col < cols; col += 32 * PIECE) {
    float v[PIECE];
    load_piece(v, x, col);
#pragma unroll
    for (int j = 0; j < PIECE; j++) v[j] *= scale;
    store_piece(y, col, v);
  }
}

// dx = (dy - y (y dy)) / |x| for rows y that were divided by |x|, dy / eps for those shorter than eps. dx may be dy.
extern "C" __global__ void l2_normalize_dx(float *dx, const float *y, const float *norms, const float *dy, int rows, int cols,
    float eps) {
  int row = WARP_ROW, lane = threadIdx.x % 32;
  if (row >= rows) return;
  size_t at = (size_t)row * cols;
  y += at, dy += at, dx += at;
  float norm = norms[row], along = 0, scale = 1.f / eps;
  if (!(norm < eps)) {
#pragma unroll 4
    for (int col = lane * PIECE; col < cols; col += 32 * PIECE) {
      float v[PIECE], d[PIECE];
      load_piece(v, y, col);
      load_piece(d, dy, col);
#pragma unroll
      for (int j = 0; j < PIECE; j++) along = fmaf(v[j], d[j], along);
    }
    scale = 1.f / norm;
    along = -warp_sum(along) / norm;
  }
#pragma unroll 4
  for (int col = lane * PIECE; col < cols; col += 32 * PIECE) {
    float v[PIECE], d[PIECE];
    load_piece(v, y, col);
    load_piece(d, dy, col);
#pragma unroll
    for (int j = 0; j < PIECE; j++) d[j] = norm < eps ? scale * d[j] : fmaf(along, v[j], scale * d[j]);
    store_piece(dx, col, d);
  }
}
