// An op element by element, made from an expression. Before this comes element(..), the expression of one element, and macros:
// VIEWS and NUMBERS are the kernel's parameters for operands and numbers, PLACES says for the elements from (a, b, j) on where they
// are in each operand, LOADS reads them into arrays, and ELEMENT(k) is the k-th. WIDE neighbours a thread, 1 or 4, all in one row.

#if LARGE
typedef uint64 index;
#else
typedef uint32 index;
#endif

// Neighbours of an operand: step is 0 for one value that all of them have.
__device__ __forceinline__ void load(float (&v)[WIDE], const float *p, int step) {
#if WIDE == 4
  if (step) {
    load4(v, p, 0);
    return;
  }
#endif
#pragma unroll
  for (int k = 0; k < WIDE; k++) v[k] = p[0];
}

extern "C" __global__ void elements(float *y, index n, int inner, int length VIEWS NUMBERS) {
  index i = WIDE * ((index)blockIdx.x * 256 + threadIdx.x);
  if (i >= n) return;
#if ROWS
  index r = i / length, j = i % length, a = r / inner, b = r % inner;
#else
  index j = i, a = 0, b = 0;
#endif
  LOADS
  float v[WIDE];
#pragma unroll
  for (int k = 0; k < WIDE; k++) v[k] = ELEMENT(k);
#if WIDE == 4
  store4(y, i, v);
#else
  y[i] = v[0];
#endif
}
