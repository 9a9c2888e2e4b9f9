// Ops on whole numbers. What the host reports as an error of the run cannot be reported here: the result has INVALID at its
// place, which no index, length or label is.

#define INVALID (-2147483647 - 1)

__device__ __forceinline__ int64 thread_index() { return (int64)blockIdx.x * blockDim.x + threadIdx.x; }

// Each l values of x become k copies of the first one, then the l: y has n values.
extern "C" __global__ void repeat_first(int *y, const int *x, int64 n, int l, int k) {
  int64 i = thread_index();
  if (i >= n) return;
  int64 s = i / (l + k);
  int q = (int)(i % (l + k)) - k;
  y[i] = x[s * l + (q > 0 ? q : 0)];
}

// y = x + k.
extern "C" __global__ void add_int(int *y, const int *x, int64 n, int k) {
  int64 i = thread_index();
  if (i < n) y[i] = (int)((uint32)x[i] + (uint32)k);
}

// y = max(x, least).
extern "C" __global__ void at_least(int *y, const int *x, int64 n, int least) {
  int64 i = thread_index();
  if (i < n) y[i] = x[i] > least ? x[i] : least;
}

// y from value `at` on has the values of up to four vectors, of these lengths, end to end.
extern "C" __global__ void concat_ints(int *y, int64 at, const int *a, int64 na, const int *b, int64 nb, const int *c, int64 nc, const int *d, int64 nd) {
  int64 i = thread_index();
  y += at + i;
  if (i < na) {
    *y = a[i];
    return;
  }
  i -= na;
  if (i < nb) {
    *y = b[i];
    return;
  }
  i -= nb;
  if (i < nc) {
    *y = c[i];
    return;
  }
  i -= nc;
  if (i < nd) *y = d[i];
}

// y[r] = x[index[r]] for x of `size` values; INVALID for an index outside.
extern "C" __global__ void gather_ints(int *y, const int *x, const int *index, int64 n, int size) {
  int64 r = thread_index();
  if (r >= n) return;
  int i = index[r];
  y[r] = i >= 0 && i < size ? x[i] : INVALID;
}

// y[r] = r l + max(lengths[r]-1, 0); INVALID for a length outside [0, l].
extern "C" __global__ void last_rows(int *y, const int *lengths, int64 n, int l) {
  int64 r = thread_index();
  if (r >= n) return;
  int length = lengths[r];
  y[r] = length >= 0 && length <= l ? (int)(r * l) + (length > 0 ? length - 1 : 0) : INVALID;
}

// y[i] = i.
extern "C" __global__ void numbers(int *y, int64 n) {
  int64 i = thread_index();
  if (i < n) y[i] = (int)i;
}

// y[i] = v.
extern "C" __global__ void fill_ints(int *y, int64 n, int v) {
  int64 i = thread_index();
  if (i < n) y[i] = v;
}
