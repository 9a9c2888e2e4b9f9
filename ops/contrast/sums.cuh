// What the kernels of this package share: sums in double over blocks.

#define NAN_F __int_as_float(0x7fffffff)

// The sum over the threads of a block of whole warps, in all of them. All threads call it.
__device__ __forceinline__ double block_sum_double(double x) {
  __shared__ double room[33];
  int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = (blockDim.x + WARP - 1) / WARP;
  x = warp_sum_double(x);
  __syncthreads(); // room may be read still
  if (lane == 0) room[warp] = x;
  __syncthreads();
  if (warp == 0) {
    x = warp_sum_double(lane < warps ? room[lane] : 0.);
    if (lane == 0) room[32] = x;
  }
  __syncthreads();
  return room[32];
}

// The sum of n values, in all threads of the block, always in the same order.
__device__ __forceinline__ double block_total(const double *x, int n) {
  double sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += x[i];
  return block_sum_double(sum);
}

// How many of n whole numbers are not negative, in all threads of the block.
__device__ __forceinline__ int block_counted(const int *x, int n) {
  int count = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) count += x[i] >= 0;
  return (int)block_sum_double(count);
}
