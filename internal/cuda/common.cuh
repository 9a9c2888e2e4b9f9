// What every kernel source begins with: types, sums and maxima over warps and blocks, and the matrix instructions.
// NVRTC has no headers of CUDA at hand; what is needed of them is here.

typedef unsigned char uint8;
typedef unsigned short uint16;
typedef unsigned int uint32;
typedef unsigned long long uint64;
typedef long long int64;

#define WARP 32
#define LANE (threadIdx.x % WARP)
#define FULL 0xffffffffu
#define INFINITY_F __int_as_float(0x7f800000)
#define NOT_A_NUMBER __int_as_float(0x7fc00000)

#ifndef EMULATED
#define DYNAMIC_SHARED(type, name) extern __shared__ __align__(16) unsigned char name##_bytes[]; type *name = reinterpret_cast<type *>(name##_bytes)

__device__ __forceinline__ uint16 bf16_round(float x) {
  uint16 r;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(x));
  return r;
}

// d = a b + c for a (16, 16), b (16, 8) and d (16, 8), in the layout of PTX mma.sync m16n8k16.
__device__ __forceinline__ void mma_m16n8k16_bf16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], const float (&c)[4]) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
               : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
}

__device__ __forceinline__ unsigned shared_address(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

// Loads 8x8 matrices of two-byte values, whose rows begin at the addresses that the lanes give.
__device__ __forceinline__ void ldmatrix_x4(unsigned (&r)[4], const void *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(row)) : "memory");
}

__device__ __forceinline__ void ldmatrix_x4_trans(unsigned (&r)[4], const void *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(row)) : "memory");
}

__device__ __forceinline__ void ldmatrix_x2(unsigned (&r)[2], const void *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(shared_address(row)) : "memory");
}

__device__ __forceinline__ void ldmatrix_x2_trans(unsigned (&r)[2], const void *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(shared_address(row)) : "memory");
}

// Copies 16 bytes to shared memory beside the thread's other work; zeros where not valid.
__device__ __forceinline__ void cp_async_16(void *shared, const void *global, bool valid) {
  int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)), "l"(global), "r"(bytes) : "memory");
}

__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int n> __device__ __forceinline__ void cp_async_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory"); }
#endif

// A bfloat16 value: the upper half of a rounded float.
struct bf16 {
  uint16 bits;
};

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(bf16 x) { return __uint_as_float((uint32)x.bits << 16); }

template <class T> __device__ __forceinline__ T from_float(float x);
template <> __device__ __forceinline__ float from_float<float>(float x) { return x; }
template <> __device__ __forceinline__ bf16 from_float<bf16>(float x) { return bf16{bf16_round(x)}; }

// Two values as one word of two bfloat16, the first one in the lower half.
__device__ __forceinline__ uint32 pack_bf16(float lo, float hi) { return (uint32)bf16_round(lo) | (uint32)bf16_round(hi) << 16; }

// Four neighbours at element i, whose address is aligned to four elements.
__device__ __forceinline__ void load4(float (&v)[4], const float *p, size_t i) {
  float4 x = *reinterpret_cast<const float4 *>(p + i);
  v[0] = x.x, v[1] = x.y, v[2] = x.z, v[3] = x.w;
}

__device__ __forceinline__ void load4(float (&v)[4], const bf16 *p, size_t i) {
  uint2 x = *reinterpret_cast<const uint2 *>(p + i);
  v[0] = __uint_as_float(x.x << 16), v[1] = __uint_as_float(x.x & 0xffff0000u);
  v[2] = __uint_as_float(x.y << 16), v[3] = __uint_as_float(x.y & 0xffff0000u);
}

__device__ __forceinline__ void store4(float *p, size_t i, const float (&v)[4]) {
  *reinterpret_cast<float4 *>(p + i) = make_float4(v[0], v[1], v[2], v[3]);
}

__device__ __forceinline__ void store4(bf16 *p, size_t i, const float (&v)[4]) {
  *reinterpret_cast<uint2 *>(p + i) = make_uint2(pack_bf16(v[0], v[1]), pack_bf16(v[2], v[3]));
}

__device__ __forceinline__ float sigmoid(float x) { return 1.f / (1.f + expf(-x)); }

// The sum over the lanes of a warp, in all of them, always in the same order.
__device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
  for (int d = 16; d > 0; d /= 2) x += __shfl_xor_sync(FULL, x, d);
  return x;
}

__device__ __forceinline__ float warp_max(float x) {
#pragma unroll
  for (int d = 16; d > 0; d /= 2) x = fmaxf(x, __shfl_xor_sync(FULL, x, d));
  return x;
}

// The sum over the threads of a block of whole warps, in all of them. room is shared memory of 33 floats. All threads call it.
__device__ __forceinline__ float block_sum(float x, float *room) {
  int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = (blockDim.x + WARP - 1) / WARP;
  x = warp_sum(x);
  __syncthreads(); // room may be read still
  if (lane == 0) room[warp] = x;
  __syncthreads();
  if (warp == 0) {
    x = warp_sum(lane < warps ? room[lane] : 0.f);
    if (lane == 0) room[32] = x;
  }
  __syncthreads();
  return room[32];
}

__device__ __forceinline__ float block_max(float x, float *room) {
  int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = (blockDim.x + WARP - 1) / WARP;
  x = warp_max(x);
  __syncthreads();
  if (lane == 0) room[warp] = x;
  __syncthreads();
  if (warp == 0) {
    x = warp_max(lane < warps ? room[lane] : -INFINITY_F);
    if (lane == 0) room[32] = x;
  }
  __syncthreads();
  return room[32];
}

__device__ __forceinline__ double warp_sum_double(double x) {
#pragma unroll
  for (int d = 16; d > 0; d /= 2) x += __shfl_xor_sync(FULL, x, d);
  return x;
}

__device__ __forceinline__ double warp_max_double(double x) {
#pragma unroll
  for (int d = 16; d > 0; d /= 2) x = fmax(x, __shfl_xor_sync(FULL, x, d));
  return x;
}

// The sum over the threads of a block of whole warps in double, in all of them. All threads call it.
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
