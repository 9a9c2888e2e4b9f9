// y (cols, rows) = x (rows, cols) transposed, Y: float or bf16. A block of 32 x 8 threads turns a square of 32 x 32 values: both
// its reads and its writes are whole lines of memory. A column of room more keeps the columns in different banks.
extern "C" __global__ void transpose(Y *y, const float *x, int rows, int cols, int across) {
  __shared__ float tile[32][33];
  int row0 = blockIdx.x / across * 32, col0 = blockIdx.x % across * 32;
  int col = col0 + threadIdx.x;
  for (int i = threadIdx.y; i < 32; i += 8) {
    int row = row0 + i;
    if (row < rows && col < cols) tile[i][threadIdx.x] = x[(size_t)row * cols + col];
  }
  __syncthreads();
  int row = row0 + threadIdx.x;
  for (int i = threadIdx.y; i < 32; i += 8) {
    int c = col0 + i;
    if (row < rows && c < cols) y[(size_t)c * rows + row] = from_float<Y>(tile[threadIdx.x][i]);
  }
}
