// Kernels of PairNet, for a block of images with all texts. Letters: n images of the block, m texts, h hidden units, c channels.
// What hidden units have of pairs is (n, h, m), so that threads side by side read texts side by side; t is transposed to (h, m).
#define SLICES 8 // threads that share a sum

// scaled (n, h, c) = a_hc x_ic.
extern "C" __global__ void scale_weights(float *scaled, const float *a, const float *x, int h, int c, int64 all) {
  int64 at = (int64)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= all) return;
  int64 row = at / c, k = at - row * c, i = row / h;
  scaled[at] = a[(row - i * h) * c + k] * x[i * c + k];
}

// The sum of the threads that share it, in those of the first slice. All threads of the block call it.
__device__ __forceinline__ float slice_sum(float x) {
  __shared__ float room[SLICES][WARP];
  room[threadIdx.y][threadIdx.x] = x;
  __syncthreads();
  if (threadIdx.y == 0)
    for (int y = 1; y < SLICES; y++) x += room[y][threadIdx.x];
  return x;
}

// scores (n, m) = sum_h v_h relu(p_ihj + u_ih + t_hj). A block of (32, SLICES) threads for 32 texts of an image.
extern "C" __global__ void pair_scores(float *scores, const float *p, const float *u, const float *t, const float *v, int m,
                                       int h) {
  int64 i = blockIdx.x;
  int j = blockIdx.y * WARP + threadIdx.x;
  float sum = 0;
  if (j < m)
#pragma unroll 4
    for (int k = threadIdx.y; k < h; k += SLICES) {
      float x = p[(i * h + k) * m + j] + u[i * h + k] + t[(int64)k * m + j];
      sum += v[k] * (x <= 0 ? 0.f : x); // NaN stays
    }
  sum = slice_sum(sum);
  if (threadIdx.y == 0 && j < m) scores[i * m + j] = sum;
}

// Back from the gradient dy (n, m) of scores: p becomes g_ihj = dy_ij v_h where p_ihj + u_ih + t_hj > 0, else 0, of which du
// (n, h) are the sums over texts. dv (n, h) are those of v for each image. A block for each image and hidden unit.
extern "C" __global__ void pair_slopes(float *p, float *du, float *dv, const float *dy, const float *u, const float *t,
                                       const float *v, int m, int h) {
  __shared__ float room[33];
  int64 row = blockIdx.x, i = row / h, k = row - i * h;
  float own = u[row], weight = v[k], dsum = 0, dweight = 0;
  p += row * m, t += k * m, dy += i * m;
  for (int j = threadIdx.x; j < m; j += blockDim.x) {
    float x = p[j] + own + t[j], g = 0;
    if (x > 0) {
      g = dy[j] * weight;
      dweight += dy[j] * x;
    }
    p[j] = g;
    dsum += g;
  }
  dsum = block_sum(dsum, room), dweight = block_sum(dweight, room);
  if (threadIdx.x == 0) du[row] = dsum, dv[row] = dweight;
}

// to (rows, c) = sum_k x_rkc by_kc, where row r begins at r row_step rows of x and its k-th one k step rows further; by null: 1.
// It is added to what is there if more. A block of (32, SLICES) threads for 32 columns of a row.
extern "C" __global__ void sum_products(float *to, const float *x, const float *by, int count, int row_step, int step, int c,
                                        int more) {
  int64 r = blockIdx.x;
  int col = blockIdx.y * WARP + threadIdx.x;
  float sum = 0;
  if (col < c)
#pragma unroll 4
    for (int k = threadIdx.y; k < count; k += SLICES) {
      float y = x[(r * row_step + (int64)k * step) * c + col];
      sum += by ? y * by[(int64)k * c + col] : y;
    }
  sum = slice_sum(sum);
  if (threadIdx.y != 0 || col >= c) return;
  to[r * c + col] = more ? to[r * c + col] + sum : sum;
}
