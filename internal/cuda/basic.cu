// y = x rounded to bfloat16.
extern "C" __global__ void round_bf16(bf16 *y, const float *x, int64 n) {
  int64 at = (int64)blockIdx.x * 1024 + threadIdx.x;
#pragma unroll
  for (int k = 0; k < 4; k++, at += 256)
    if (at < n) y[at] = from_float<bf16>(x[at]);
}

// y += x.
extern "C" __global__ void add(float *y, const float *x, int64 n) {
  int64 at = (int64)blockIdx.x * 1024 + threadIdx.x;
#pragma unroll
  for (int k = 0; k < 4; k++, at += 256)
    if (at < n) y[at] += x[at];
}

// y = a + b.
extern "C" __global__ void sum(float *y, const float *a, const float *b, int64 n) {
  int64 at = (int64)blockIdx.x * 1024 + threadIdx.x;
#pragma unroll
  for (int k = 0; k < 4; k++, at += 256)
    if (at < n) y[at] = a[at] + b[at];
}
