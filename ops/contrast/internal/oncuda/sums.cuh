// What the kernels of this package share: sums in double over blocks.

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
