// Kernels of the emulator's own test.
struct Pair { float a; long long b; };

__device__ float warp_sum(float x) {
  for (int d = 16; d > 0; d /= 2) x += __shfl_xor_sync(0xffffffffu, x, d);
  return x;
}

// Sum of n numbers per block, by shuffles and one barrier.
extern "C" __global__ void __launch_bounds__(256) reduce(const float *__restrict__ x, float *y, int n) {
  __shared__ float part[8];
  float s = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) s += x[(long long)blockIdx.x * n + i];
  s = warp_sum(s);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
  __syncthreads();
  if (threadIdx.x < 32) {
    s = warp_sum(threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0.0f);
    if (threadIdx.x == 0) y[blockIdx.x] = s;
  }
}

// Like reduce, but the barrier is missing.
extern "C" __global__ void race(const float *x, float *y) {
  __shared__ float part[64];
  part[threadIdx.x] = x[threadIdx.x];
  y[threadIdx.x] = part[63 - threadIdx.x];
}

// Reverses each row in dynamic shared memory; half of the threads leave early.
extern "C" __global__ void reverse(float *x, int n) {
  DYNAMIC_SHARED(float, row);
  float *p = x + blockIdx.x * n;
  if (threadIdx.x >= n) return;
  row[threadIdx.x] = p[threadIdx.x];
  __syncthreads();
  p[threadIdx.x] = row[n - 1 - threadIdx.x];
}

extern "C" __global__ void fresh(float *y) { // shared memory of a block holds nothing of the block before
  __shared__ float s[4];
  DYNAMIC_SHARED(float, d);
  if (threadIdx.x == 0) y[blockIdx.x] = isnan(s[1]) && isnan(d[2]) ? 1.0f : 0.0f;
  s[1] = 2;
  d[2] = 3;
}

#define KERNEL(name) extern "C" __global__ void name
KERNEL(arguments)(double *out, char c, short s, int i, unsigned u, long long l, unsigned long long ul, float f, double d, Pair p,
                  const int *null, bool b) {
  out[0] = c, out[1] = s, out[2] = i, out[3] = u, out[4] = (double)l, out[5] = (double)ul, out[6] = f, out[7] = d;
  out[8] = p.a, out[9] = (double)p.b, out[10] = null == nullptr, out[11] = b;
}
extern "C" __global__ void nothing() {}

extern "C" __global__ void mma_bf16(const unsigned *a, const unsigned *b, const float *c, float *d) {
  unsigned x[4], y[2];
  float z[4], w[4];
  int lane = threadIdx.x;
  for (int i = 0; i < 4; i++) x[i] = a[lane * 4 + i], z[i] = c[lane * 4 + i];
  for (int i = 0; i < 2; i++) y[i] = b[lane * 2 + i];
  mma_m16n8k16_bf16(w, x, y, z);
  for (int i = 0; i < 4; i++) d[lane * 4 + i] = w[i];
}
extern "C" __global__ void mma_tf32(const unsigned *a, const unsigned *b, const float *c, float *d) {
  unsigned x[4], y[2];
  float w[4], z[4];
  int lane = threadIdx.x;
  for (int i = 0; i < 4; i++) x[i] = a[lane * 4 + i], z[i] = c[lane * 4 + i];
  for (int i = 0; i < 2; i++) y[i] = b[lane * 2 + i];
  mma_m16n8k8_tf32(w, x, y, z);
  for (int i = 0; i < 4; i++) d[lane * 4 + i] = w[i];
}

// C[m x n] = A[m x k] B[n x k]^T for one 16x8 tile, k = 32, by ldmatrix, cp.async and mma, as a real kernel would.
extern "C" __global__ void tile(const unsigned short *A, const unsigned short *B, float *C) {
  __shared__ __align__(16) unsigned short a[16][40], b[8][40];
  int lane = threadIdx.x;
  for (int i = lane; i < 64; i += 32) cp_async_16(&a[i / 4][i % 4 * 8], A + i / 4 * 32 + i % 4 * 8, true);
  cp_async_16(&b[lane / 4][lane % 4 * 8], B + lane / 4 * 32 + lane % 4 * 8, true);
  cp_async_commit();
  cp_async_wait<0>();
  __syncwarp();
  float d[4] = {0, 0, 0, 0};
  for (int k = 0; k < 32; k += 16) {
    unsigned x[4], y[2];
    ldmatrix_x4(x, &a[lane % 16][k + lane / 16 * 8]);
    ldmatrix_x2(y, &b[lane % 8][k + lane / 8 % 2 * 8]);
    mma_m16n8k16_bf16(d, x, y, d);
  }
  for (int i = 0; i < 4; i++) C[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = d[i];
}
// The same with B given as [k x n], by ldmatrix.trans.
extern "C" __global__ void tile_trans(const unsigned short *A, const unsigned short *B, float *C) {
  __shared__ __align__(16) unsigned short a[16][40], b[32][8];
  int lane = threadIdx.x;
  for (int i = lane; i < 16 * 32; i += 32) a[i / 32][i % 32] = A[i];
  for (int i = lane; i < 32 * 8; i += 32) b[i / 8][i % 8] = B[i];
  __syncwarp();
  unsigned y[4];
  ldmatrix_x4_trans(y, &b[lane][0]);
  float d[4] = {0, 0, 0, 0};
  for (int k = 0; k < 2; k++) {
    unsigned x[4], z[2] = {y[2 * k], y[2 * k + 1]}, z2[2];
    ldmatrix_x4(x, &a[lane % 16][k * 16 + lane / 16 * 8]);
    ldmatrix_x2_trans(z2, &b[k * 16 + lane % 16][0]);
    if (z[0] != z2[0] || z[1] != z2[1]) __trap();
    mma_m16n8k16_bf16(d, x, z, d);
  }
  for (int i = 0; i < 4; i++) C[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = d[i];
}
extern "C" __global__ void no_wait(const float4 *x, float4 *y) { // the wait of cp.async is missing
  __shared__ float4 s[32];
  cp_async_16(&s[threadIdx.x], x + threadIdx.x, true);
  cp_async_commit();
  __syncwarp();
  y[threadIdx.x] = s[threadIdx.x];
}

extern "C" __global__ void warps(int *out) {
  int lane = threadIdx.x % 32, *o = out + threadIdx.x * 12;
  o[0] = __shfl_sync(0xffffffffu, lane, 5);
  o[1] = __shfl_up_sync(0xffffffffu, lane, 3);
  o[2] = __shfl_down_sync(0xffffffffu, lane, 4, 8);
  o[3] = __shfl_xor_sync(0xffffffffu, lane, 9);
  o[4] = (int)__ballot_sync(0xffffffffu, lane & 1);
  o[5] = __any_sync(0xffffffffu, lane == 7) + 2 * __all_sync(0xffffffffu, lane < 31);
  o[6] = __syncthreads_count(threadIdx.x % 3 == 0);
  o[7] = __syncthreads_or(threadIdx.x == 70) + 2 * __syncthreads_and(threadIdx.x < 70);
  if (lane < 16) // two halves of a warp at collectives of their own
    o[8] = __shfl_xor_sync(0x0000ffffu, lane, 1);
  else
    o[8] = __shfl_down_sync(0xffff0000u, lane, 2);
  o[9] = (int)__shfl_sync(0xffffffffu, (double)lane * 0.5, 31 - lane);
  o[10] = __syncthreads_and(1);
  o[11] = (int)(__shfl_sync(0xffffffffu, 1000000000000ll + lane, 4) - 1000000000000ll);
}

extern "C" __global__ void atomics(int *i, unsigned *u, float *f, double *d, unsigned long long *ul) {
  int t = threadIdx.x;
  atomicAdd(i, t);
  atomicMax(u, (unsigned)t);
  atomicMin(i + 1, -t);
  atomicAdd(f, 0.5f);
  atomicAdd(d, 0.25);
  atomicAdd(ul, 1ull << 33);
  atomicOr(u + 1, 1u << t % 32);
  unsigned old = u[2], seen;
  do {
    seen = old;
    old = atomicCAS(u + 2, seen, seen + 2);
  } while (old != seen);
}

extern "C" __global__ void add_one(float *x, float by) { x[blockIdx.x * blockDim.x + threadIdx.x] += by; }
extern "C" __global__ void write_at(float *x, long long i) { x[i] = 1; }
extern "C" __global__ void write_shared(float *x, int i) {
  DYNAMIC_SHARED(float, s);
  s[i] = x[0];
  x[0] = s[i];
}
extern "C" __global__ void write_array(float *x, int i) {
  __shared__ float s[4];
  s[i] = x[0];
  __syncthreads();
  x[0] = s[i];
}
extern "C" __global__ void misaligned(float *x) { *(float4 *)x = *(float4 *)(x + 1); }
extern "C" __global__ void stuck(float *x) {
  if (threadIdx.x < 40) __shfl_sync(0xffffffffu, x[0], 0);
  else __syncthreads();
}
extern "C" __global__ void asserts(int n) { assert(n == 3); }
extern "C" __global__ void numbers(float *y) {
  y[0] = bf16_round(1.00390625f);                            // 1 + 2^-8, a tie: to even, 1.0
  y[1] = bf16_round(1.01171875f);                            // 1 + 3 * 2^-8, a tie: to even, 1 + 2^-6
  y[2] = bf16_round(__int_as_float(0x7f800001)) == 0x7fff;
  y[3] = __float2int_rn(2.5f), y[4] = __float2int_rz(-2.9f), y[5] = __umulhi(1u << 31, 6), y[6] = __clz(1), y[7] = __ffs(8);
  y[8] = __popc(0xf0f0), y[9] = __brev(1) == 0x80000000u, y[10] = max(3, -1), y[11] = min(2.5f, 1.5f), y[12] = rsqrtf(4.0f);
  y[13] = fmaf(2, 3, 4), y[14] = isnan(__int_as_float(-1)), y[15] = __umul64hi(1ull << 63, 8) == 4;
}
