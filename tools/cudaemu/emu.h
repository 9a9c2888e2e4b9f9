R"emu(
// CUDA's kernel language for g++: what a kernel of this project may use, in place of the compiler's and NVRTC's built-in
// declarations. This file is one raw string literal (first and last line) that nvrtc.cpp includes, so that the shared
// library carries it; the emulated nvrtcCompileProgram puts it before every kernel source.
// A thread of a block is a fiber of the host library; whatever needs several threads goes through the table emu_host.
#define EMULATED 1
#define __CUDACC_RTC__ 1
#define __CUDA_ARCH__ 900
#define __global__ __attribute__((visibility("default"), emu_global))
#define __launch_bounds__(...) __attribute__((emu_bounds(__VA_ARGS__)))
#define __device__
#define __host__
#define __shared__ static thread_local
#define __constant__ static
#define __managed__ static
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define __maxnreg__(n)
#define __builtin_assume(x) ((void)0)
// For what the library does in place of an instruction: without the checks of the kernels' own code.
#define EMU_FAST __attribute__((no_sanitize_undefined, optimize("O3")))
#define EMU_EXPORT __attribute__((visibility("default")))

typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;

#define EMU_VECTOR(type, name, align2, align4) \
  struct name##1 { type x; }; \
  struct alignas(align2) name##2 { type x, y; }; \
  struct name##3 { type x, y, z; }; \
  struct alignas(align4) name##4 { type x, y, z, w; }; \
  inline name##1 make_##name##1(type x) { return {x}; } \
  inline name##2 make_##name##2(type x, type y) { return {x, y}; } \
  inline name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; } \
  inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
EMU_VECTOR(signed char, char, 2, 4)
EMU_VECTOR(unsigned char, uchar, 2, 4)
EMU_VECTOR(short, short, 4, 8)
EMU_VECTOR(unsigned short, ushort, 4, 8)
EMU_VECTOR(int, int, 8, 16)
EMU_VECTOR(unsigned, uint, 8, 16)
EMU_VECTOR(long long, longlong, 16, 16)
EMU_VECTOR(unsigned long long, ulonglong, 16, 16)
EMU_VECTOR(float, float, 8, 16)
EMU_VECTOR(double, double, 16, 16)
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};

// The host library's part; state.h declares the same table. Change EMU_INTERFACE in both when it changes.
typedef void (*EmuCombine)(void **lanes, unsigned mask);
struct EmuHost {
  void (*collective)(unsigned mask, void *operand, EmuCombine combine, const char *what);
  int (*barrier)(int kind, int predicate); // kind 0: plain, 1: or, 2: and, 3: count
  void (*fail)(int code, const char *text);
  unsigned (*active)();                    // lanes of this warp that have not returned
  unsigned (*lane)();
  void *(*dynamic_shared)();
  void (*copy_async)(void *shared, const void *global, int valid);
  void (*copy_commit)();
  void (*copy_wait)(int groups);
  void (*yield)();
};
extern "C" {
EMU_EXPORT uint3 threadIdx, blockIdx;
EMU_EXPORT dim3 blockDim, gridDim;
EMU_EXPORT EmuHost *emu_host;
EMU_EXPORT int emu_interface = 1;
EMU_EXPORT void *emu_touch_shared() { __shared__ char touch; touch = 0; return &touch; }
}
const int warpSize = 32;

#define DYNAMIC_SHARED(type, name) type *name = reinterpret_cast<type *>(emu_host->dynamic_shared())

// The C library, declared by hand: its C++ headers would take most of the time of a compilation.
extern "C" {
int printf(const char *, ...);
void *memcpy(void *, const void *, size_t);
void *memset(void *, int, size_t);
#define EMU_MATH1(name) double name(double); float name##f(float);
EMU_MATH1(acos) EMU_MATH1(acosh) EMU_MATH1(asin) EMU_MATH1(asinh) EMU_MATH1(atan) EMU_MATH1(atanh) EMU_MATH1(cbrt)
EMU_MATH1(ceil) EMU_MATH1(cos) EMU_MATH1(cosh) EMU_MATH1(erf) EMU_MATH1(erfc) EMU_MATH1(exp) EMU_MATH1(exp2)
EMU_MATH1(expm1) EMU_MATH1(fabs) EMU_MATH1(floor) EMU_MATH1(lgamma) EMU_MATH1(log) EMU_MATH1(log10) EMU_MATH1(log1p)
EMU_MATH1(log2) EMU_MATH1(nearbyint) EMU_MATH1(rint) EMU_MATH1(round) EMU_MATH1(sin) EMU_MATH1(sinh) EMU_MATH1(sqrt)
EMU_MATH1(tan) EMU_MATH1(tanh) EMU_MATH1(trunc)
#define EMU_MATH2(name) double name(double, double); float name##f(float, float);
EMU_MATH2(atan2) EMU_MATH2(copysign) EMU_MATH2(fdim) EMU_MATH2(fmax) EMU_MATH2(fmin) EMU_MATH2(fmod) EMU_MATH2(hypot)
EMU_MATH2(nextafter) EMU_MATH2(pow) EMU_MATH2(remainder)
double fma(double, double, double);
float fmaf(float, float, float);
double ldexp(double, int);
float ldexpf(float, int);
double frexp(double, int *);
float frexpf(float, int *);
void sincosf(float, float *, float *);
long lrintf(float);
long long llrintf(float);
int abs(int);
long long llabs(long long);
}
#define EMU_FLOAT1(name) inline float name(float x) { return name##f(x); }
EMU_FLOAT1(acos) EMU_FLOAT1(asin) EMU_FLOAT1(atan) EMU_FLOAT1(ceil) EMU_FLOAT1(cos) EMU_FLOAT1(cosh) EMU_FLOAT1(erf)
EMU_FLOAT1(erfc) EMU_FLOAT1(exp) EMU_FLOAT1(exp2) EMU_FLOAT1(expm1) EMU_FLOAT1(fabs) EMU_FLOAT1(floor) EMU_FLOAT1(log)
EMU_FLOAT1(log10) EMU_FLOAT1(log1p) EMU_FLOAT1(log2) EMU_FLOAT1(rint) EMU_FLOAT1(round) EMU_FLOAT1(sin) EMU_FLOAT1(sinh)
EMU_FLOAT1(sqrt) EMU_FLOAT1(tan) EMU_FLOAT1(tanh) EMU_FLOAT1(trunc)
#define EMU_FLOAT2(name) inline float name(float x, float y) { return name##f(x, y); }
EMU_FLOAT2(atan2) EMU_FLOAT2(copysign) EMU_FLOAT2(fmax) EMU_FLOAT2(fmin) EMU_FLOAT2(fmod) EMU_FLOAT2(pow)
inline float fma(float x, float y, float z) { return fmaf(x, y, z); }
inline float abs(float x) { return fabsf(x); }
inline double abs(double x) { return fabs(x); }
inline long abs(long x) { return x < 0 ? -x : x; }
inline long long abs(long long x) { return x < 0 ? -x : x; }
inline bool isnan(float x) { return __builtin_isnan(x); }
inline bool isnan(double x) { return __builtin_isnan(x); }
inline bool isinf(float x) { return __builtin_isinf(x); }
inline bool isinf(double x) { return __builtin_isinf(x); }
inline bool isfinite(float x) { return __builtin_isfinite(x); }
inline bool isfinite(double x) { return __builtin_isfinite(x); }
inline bool signbit(float x) { return __builtin_signbit(x); }
inline float rsqrtf(float x) { return (float)(1.0 / sqrt((double)x)); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float sinpif(float x) { return (float)sin(3.14159265358979323846 * (double)x); }
inline float cospif(float x) { return (float)cos(3.14159265358979323846 * (double)x); }
inline float exp10f(float x) { return (float)pow(10.0, (double)x); }
inline float normcdff(float x) { return (float)(0.5 * erfc(-0.70710678118654752440 * (double)x)); }
inline float __expf(float x) { return expf(x); }
inline float __exp10f(float x) { return exp10f(x); }
inline float __logf(float x) { return logf(x); }
inline float __log2f(float x) { return log2f(x); }
inline float __log10f(float x) { return log10f(x); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline void __sincosf(float x, float *s, float *c) { sincosf(x, s, c); }
inline float __tanf(float x) { return tanf(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline float __fdividef(float x, float y) { return x / y; }
inline float fdividef(float x, float y) { return x / y; }
inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1) : 0; }

#define EMU_MINMAX(type) \
  inline type min(type a, type b) { return b < a ? b : a; } \
  inline type max(type a, type b) { return a < b ? b : a; }
EMU_MINMAX(int) EMU_MINMAX(unsigned) EMU_MINMAX(long) EMU_MINMAX(unsigned long) EMU_MINMAX(long long)
EMU_MINMAX(unsigned long long)
#define EMU_MINMAX_MIXED(type, a, b) \
  inline type min(a x, b y) { return min((type)x, (type)y); } \
  inline type min(b x, a y) { return min((type)x, (type)y); } \
  inline type max(a x, b y) { return max((type)x, (type)y); } \
  inline type max(b x, a y) { return max((type)x, (type)y); }
EMU_MINMAX_MIXED(unsigned, int, unsigned)
EMU_MINMAX_MIXED(unsigned long, long, unsigned long)
EMU_MINMAX_MIXED(unsigned long long, long long, unsigned long long)
inline float min(float a, float b) { return fminf(a, b); } // the number where one is NaN, as on the device
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }
EMU_MINMAX_MIXED(double, float, double)

// Arithmetic in a given rounding: only to nearest, the host's mode. -ffp-contract=off keeps products and sums apart.
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __frsqrt_rn(float x) { return rsqrtf(x); }
inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dsub_rn(double x, double y) { return x - y; }
inline double __dmul_rn(double x, double y) { return x * y; }
inline double __ddiv_rn(double x, double y) { return x / y; }
inline double __fma_rn(double x, double y, double z) { return fma(x, y, z); }
inline double __dsqrt_rn(double x) { return sqrt(x); }

// Bits and numbers. Conversions to integers saturate and take NaN to 0, as cvt does.
template <class To, class From> inline To emu_bits(From x) {
  static_assert(sizeof(To) == sizeof(From), "a reinterpretation keeps the size");
  To y;
  __builtin_memcpy(&y, &x, sizeof y);
  return y;
}
inline int __float_as_int(float x) { return emu_bits<int>(x); }
inline float __int_as_float(int x) { return emu_bits<float>(x); }
inline unsigned __float_as_uint(float x) { return emu_bits<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return emu_bits<float>(x); }
inline long long __double_as_longlong(double x) { return emu_bits<long long>(x); }
inline double __longlong_as_double(long long x) { return emu_bits<double>(x); }
inline int __double2hiint(double x) { return (int)(emu_bits<unsigned long long>(x) >> 32); }
inline int __double2loint(double x) { return (int)emu_bits<unsigned long long>(x); }
template <class To> inline To emu_saturate(double x, double low, double high, To least, To most) {
  if (__builtin_isnan(x)) return 0;
  if (x <= low) return least;
  if (x >= high) return most;
  return (To)x;
}
inline int emu_to_int(double x) { return emu_saturate<int>(x, -2147483648.0, 2147483647.0, -2147483647 - 1, 2147483647); }
inline unsigned emu_to_uint(double x) { return emu_saturate<unsigned>(x, 0.0, 4294967295.0, 0u, 4294967295u); }
inline long long emu_to_ll(double x) {
  return emu_saturate<long long>(x, -9223372036854775808.0, 9223372036854775808.0, -9223372036854775807LL - 1,
                                 9223372036854775807LL);
}
inline unsigned long long emu_to_ull(double x) {
  return emu_saturate<unsigned long long>(x, 0.0, 18446744073709551616.0, 0ull, 18446744073709551615ull);
}
#define EMU_CONVERT(from, type) \
  inline int __##from##2int_rn(type x) { return emu_to_int(nearbyint((double)x)); } \
  inline int __##from##2int_rz(type x) { return emu_to_int(trunc((double)x)); } \
  inline int __##from##2int_rd(type x) { return emu_to_int(floor((double)x)); } \
  inline int __##from##2int_ru(type x) { return emu_to_int(ceil((double)x)); } \
  inline unsigned __##from##2uint_rn(type x) { return emu_to_uint(nearbyint((double)x)); } \
  inline unsigned __##from##2uint_rz(type x) { return emu_to_uint(trunc((double)x)); } \
  inline unsigned __##from##2uint_rd(type x) { return emu_to_uint(floor((double)x)); } \
  inline unsigned __##from##2uint_ru(type x) { return emu_to_uint(ceil((double)x)); } \
  inline long long __##from##2ll_rn(type x) { return emu_to_ll(nearbyint((double)x)); } \
  inline long long __##from##2ll_rz(type x) { return emu_to_ll(trunc((double)x)); } \
  inline unsigned long long __##from##2ull_rn(type x) { return emu_to_ull(nearbyint((double)x)); } \
  inline unsigned long long __##from##2ull_rz(type x) { return emu_to_ull(trunc((double)x)); }
EMU_CONVERT(float, float)
EMU_CONVERT(double, double)
inline float __int2float_rn(int x) { return (float)x; }
inline float __uint2float_rn(unsigned x) { return (float)x; }
inline float __ll2float_rn(long long x) { return (float)x; }
inline float __ull2float_rn(unsigned long long x) { return (float)x; }
inline float __double2float_rn(double x) { return (float)x; }
inline double __int2double_rn(int x) { return x; }
inline double __uint2double_rn(unsigned x) { return x; }
inline double __ll2double_rn(long long x) { return (double)x; }
inline double __ull2double_rn(unsigned long long x) { return (double)x; }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
inline int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
inline long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
inline unsigned __brev(unsigned x) {
  unsigned y = 0;
  for (int i = 0; i < 32; i++) y |= (x >> i & 1) << (31 - i);
  return y;
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned s) {
  unsigned long long both = (unsigned long long)y << 32 | x;
  unsigned r = 0;
  for (int i = 0; i < 4; i++) {
    unsigned n = s >> 4 * i & 15, byte = (unsigned)(both >> 8 * (n & 7)) & 255;
    r |= (n & 8 ? (byte & 128 ? 255u : 0u) : byte) << 8 * i;
  }
  return r;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned s) {
  return (unsigned)(((unsigned long long)high << 32 | low) << (s & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned s) {
  return (unsigned)(((unsigned long long)high << 32 | low) >> (s & 31));
}

// Barriers of the block, fences, failure.
inline void __syncthreads() { emu_host->barrier(0, 0); }
inline int __syncthreads_or(int p) { return emu_host->barrier(1, p != 0); }
inline int __syncthreads_and(int p) { return emu_host->barrier(2, p != 0); }
inline int __syncthreads_count(int p) { return emu_host->barrier(3, p != 0); }
inline void __threadfence() { __asm__ volatile("" ::: "memory"); }
inline void __threadfence_block() { __asm__ volatile("" ::: "memory"); }
inline void __threadfence_system() { __asm__ volatile("" ::: "memory"); }
inline void __nanosleep(unsigned) { emu_host->yield(); }
inline void __trap() { emu_host->fail(719, "__trap()"); }
inline long long clock64() { return (long long)__builtin_ia32_rdtsc(); }
#define EMU_TEXT_(x) #x
#define EMU_TEXT(x) EMU_TEXT_(x)
#ifdef NDEBUG
#define assert(x) ((void)0)
#else
#define assert(x) ((x) ? (void)0 : emu_host->fail(710, "assert(" #x ") in " __FILE__ ":" EMU_TEXT(__LINE__)))
#endif

// Collectives of a warp: every lane of the mask hands in a pointer to its operands; the last one to arrive lets `combine`
// compute the results of all, which it writes into their operands. `mask` of combine: the lanes that take part.
#define EMU_LANES(mask) for (unsigned emu_rest = (mask), lane; emu_rest && (lane = __builtin_ctz(emu_rest), true); \
                             emu_rest &= emu_rest - 1)
inline void emu_combine_nothing(void **, unsigned) {}
inline void __syncwarp(unsigned mask = 0xffffffffu) { emu_host->collective(mask, nullptr, emu_combine_nothing, "__syncwarp"); }
inline unsigned __activemask() { return emu_host->active(); }

template <class T> struct EmuShuffle {
  T value, result;
  int source;
  EMU_FAST static void combine(void **lanes, unsigned mask) {
    EMU_LANES(mask) {
      EmuShuffle *to = (EmuShuffle *)lanes[lane];
      if (mask >> to->source & 1)
        to->result = ((EmuShuffle *)lanes[to->source])->value;
      else
        __builtin_memset(&to->result, 0xff, sizeof(T)); // undefined on the device: NaN
    }
  }
};
template <class T> inline T emu_shuffle(unsigned mask, T value, int source, const char *what) {
  static_assert(sizeof(T) <= 8, "a shuffle takes at most 8 bytes");
  EmuShuffle<T> s;
  s.value = value;
  s.source = source;
  emu_host->collective(mask, &s, EmuShuffle<T>::combine, what);
  return s.result;
}
template <class T> inline T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  int lane = emu_host->lane();
  return emu_shuffle(mask, value, (lane & ~(width - 1)) + (source & (width - 1)), "__shfl_sync");
}
template <class T> inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  int lane = emu_host->lane(), first = lane & ~(width - 1);
  return emu_shuffle(mask, value, lane - (int)delta >= first ? lane - (int)delta : lane, "__shfl_up_sync");
}
template <class T> inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  int lane = emu_host->lane(), last = lane | (width - 1);
  return emu_shuffle(mask, value, lane + (int)delta <= last ? lane + (int)delta : lane, "__shfl_down_sync");
}
template <class T> inline T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32) {
  int lane = emu_host->lane(), last = lane | (width - 1), other = (lane ^ bits) & 31;
  return emu_shuffle(mask, value, other <= last ? other : lane, "__shfl_xor_sync");
}

struct EmuVote {
  unsigned value, result;
  EMU_FAST static void ballot(void **lanes, unsigned mask) {
    unsigned bits = 0;
    EMU_LANES(mask) bits |= (unsigned)(((EmuVote *)lanes[lane])->value != 0) << lane;
    EMU_LANES(mask) ((EmuVote *)lanes[lane])->result = bits;
  }
  EMU_FAST static void all(void **lanes, unsigned mask) {
    ballot(lanes, mask);
    EMU_LANES(mask) ((EmuVote *)lanes[lane])->result = ((EmuVote *)lanes[lane])->result == mask;
  }
};
inline unsigned emu_vote(unsigned mask, unsigned value, EmuCombine combine, const char *what) {
  EmuVote v = {value, 0};
  emu_host->collective(mask, &v, combine, what);
  return v.result;
}
inline unsigned __ballot_sync(unsigned mask, int p) { return emu_vote(mask, p != 0, EmuVote::ballot, "__ballot_sync"); }
inline int __any_sync(unsigned mask, int p) { return emu_vote(mask, p != 0, EmuVote::ballot, "__any_sync") != 0; }
inline int __all_sync(unsigned mask, int p) { return (int)emu_vote(mask, p != 0, EmuVote::all, "__all_sync"); }

template <class T> struct EmuMatch {
  T value;
  unsigned result;
  EMU_FAST static void combine(void **lanes, unsigned mask) {
    EMU_LANES(mask) {
      EmuMatch *m = (EmuMatch *)lanes[lane];
      m->result = 0;
      for (int other = 0; other < 32; other++)
        if (mask >> other & 1 && ((EmuMatch *)lanes[other])->value == m->value) m->result |= 1u << other;
    }
  }
};
template <class T> inline unsigned __match_any_sync(unsigned mask, T value) {
  EmuMatch<T> m = {value, 0};
  emu_host->collective(mask, &m, EmuMatch<T>::combine, "__match_any_sync");
  return m.result;
}

template <class T, int op> struct EmuReduce {
  T value, result;
  EMU_FAST static void combine(void **lanes, unsigned mask) {
    bool first = true;
    T r = 0;
    EMU_LANES(mask) {
      T v = ((EmuReduce *)lanes[lane])->value;
      if (first) r = v;
      else if (op == 0) r += v;
      else if (op == 1) r = v < r ? v : r;
      else if (op == 2) r = r < v ? v : r;
      else if (op == 3) r &= v;
      else if (op == 4) r |= v;
      else r ^= v;
      first = false;
    }
    EMU_LANES(mask) ((EmuReduce *)lanes[lane])->result = r;
  }
};
#define EMU_REDUCE(name, type, op) \
  inline type name(unsigned mask, type value) { \
    EmuReduce<type, op> r = {value, 0}; \
    emu_host->collective(mask, &r, EmuReduce<type, op>::combine, #name); \
    return r.result; \
  }
EMU_REDUCE(__reduce_add_sync, unsigned, 0) EMU_REDUCE(__reduce_add_sync, int, 0)
EMU_REDUCE(__reduce_min_sync, unsigned, 1) EMU_REDUCE(__reduce_min_sync, int, 1)
EMU_REDUCE(__reduce_max_sync, unsigned, 2) EMU_REDUCE(__reduce_max_sync, int, 2)
EMU_REDUCE(__reduce_and_sync, unsigned, 3) EMU_REDUCE(__reduce_or_sync, unsigned, 4) EMU_REDUCE(__reduce_xor_sync, unsigned, 5)

// Atomics: one thread runs at a time and none is interrupted, so plain code is atomic.
#define EMU_ATOMIC(name, type, expression) \
  inline type name(type *p, type v) { \
    type old = *p; \
    *p = (expression); \
    return old; \
  }
#define EMU_ATOMIC_INT(name, expression) \
  EMU_ATOMIC(name, int, expression) EMU_ATOMIC(name, unsigned, expression) EMU_ATOMIC(name, unsigned long long, expression)
EMU_ATOMIC_INT(atomicAdd, old + v)
EMU_ATOMIC(atomicAdd, float, old + v)
EMU_ATOMIC(atomicAdd, double, old + v)
EMU_ATOMIC(atomicSub, int, old - v)
EMU_ATOMIC(atomicSub, unsigned, old - v)
EMU_ATOMIC_INT(atomicMax, old < v ? v : old)
EMU_ATOMIC(atomicMax, long long, old < v ? v : old)
EMU_ATOMIC_INT(atomicMin, v < old ? v : old)
EMU_ATOMIC(atomicMin, long long, v < old ? v : old)
EMU_ATOMIC_INT(atomicAnd, old & v)
EMU_ATOMIC_INT(atomicOr, old | v)
EMU_ATOMIC_INT(atomicXor, old ^ v)
EMU_ATOMIC_INT(atomicExch, v)
EMU_ATOMIC(atomicExch, float, v)
EMU_ATOMIC(atomicInc, unsigned, old >= v ? 0 : old + 1)
EMU_ATOMIC(atomicDec, unsigned, old == 0 || old > v ? v : old - 1)
#define EMU_CAS(type) \
  inline type atomicCAS(type *p, type compare, type v) { \
    type old = *p; \
    if (old == compare) *p = v; \
    return old; \
  }
EMU_CAS(int) EMU_CAS(unsigned) EMU_CAS(unsigned long long) EMU_CAS(unsigned short)

// Loads and stores with hints of the cache.
#define EMU_LOAD(name) template <class T> inline T name(const T *p) { return *p; }
EMU_LOAD(__ldg) EMU_LOAD(__ldcg) EMU_LOAD(__ldca) EMU_LOAD(__ldcs) EMU_LOAD(__ldlu) EMU_LOAD(__ldcv)
#define EMU_STORE(name) template <class T> inline void name(T *p, T v) { *p = v; }
EMU_STORE(__stwb) EMU_STORE(__stcg) EMU_STORE(__stcs) EMU_STORE(__stwt)

// What is inline PTX on the device (the kernels' common header has it under #ifndef EMULATED).

// cvt.rn.bf16.f32: to nearest, ties to even; NaN gives 0x7fff.
inline unsigned short bf16_round(float x) {
  unsigned u = emu_bits<unsigned>(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  return (unsigned short)((u + 0x7fffu + (u >> 16 & 1)) >> 16);
}

// mma.sync: D = A B + C over a warp. PTX ISA, "Matrix fragments for mma": g = lane / 4 (groupID), t = lane % 4
// (threadID_in_group). C and D, 16x8: elements 0, 1 are row g, columns 2t, 2t+1; elements 2, 3 are row g+8.
struct EmuMma {
  float *d;
  const unsigned *a, *b;
  const float *c;
};
typedef float EmuRow __attribute__((vector_size(32))); // 8 columns of B or D
EMU_FAST inline void emu_mma_finish(void **lanes, const float (*a)[16], const EmuRow *b, int depth) {
  EmuRow d[16];
  for (int lane = 0; lane < 32; lane++)
    for (int i = 0; i < 4; i++) d[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2] = ((EmuMma *)lanes[lane])->c[i];
  for (int row = 0; row < 16; row++) {
    EmuRow sum = d[row];
    for (int k = 0; k < depth; k++) sum += a[row][k] * b[k];
    d[row] = sum;
  }
  for (int lane = 0; lane < 32; lane++)
    for (int i = 0; i < 4; i++) ((EmuMma *)lanes[lane])->d[i] = d[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
}
// m16n8k16, bf16. A, 16x16: register 0 is row g, columns 2t, 2t+1; 1 is row g+8; 2 is row g, columns 2t+8, 2t+9; 3 is
// row g+8 of these. B, 16x8: register 0 is rows 2t, 2t+1 of column g; 1 is rows 2t+8, 2t+9. The lower half comes first.
EMU_FAST inline void emu_combine_mma_bf16(void **lanes, unsigned mask) {
  if (mask != 0xffffffffu) emu_host->fail(719, "mma_m16n8k16_bf16 needs all 32 lanes of the warp");
  float a[16][16];
  EmuRow b[16];
  for (int lane = 0; lane < 32; lane++) {
    EmuMma *m = (EmuMma *)lanes[lane];
    int g = lane / 4, t = lane % 4;
    for (int r = 0; r < 4; r++)
      for (int half = 0; half < 2; half++)
        a[g + r % 2 * 8][t * 2 + half + r / 2 * 8] = emu_bits<float>(half ? m->a[r] & 0xffff0000u : m->a[r] << 16);
    for (int r = 0; r < 2; r++)
      for (int half = 0; half < 2; half++)
        b[t * 2 + half + r * 8][g] = emu_bits<float>(half ? m->b[r] & 0xffff0000u : m->b[r] << 16);
  }
  emu_mma_finish(lanes, a, b, 16);
}
inline void mma_m16n8k16_bf16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], const float (&c)[4]) {
  EmuMma m = {d, a, b, c};
  emu_host->collective(0xffffffffu, &m, emu_combine_mma_bf16, "mma_m16n8k16_bf16");
}
// m16n8k8, tf32 (the lower 13 bits of an operand do not count). A, 16x8: register 0 is row g, column t; 1 is row g+8,
// column t; 2 is row g, column t+4; 3 is row g+8, column t+4. B, 8x8: register 0 is row t of column g; 1 is row t+4.
EMU_FAST inline void emu_combine_mma_tf32(void **lanes, unsigned mask) {
  if (mask != 0xffffffffu) emu_host->fail(719, "mma_m16n8k8_tf32 needs all 32 lanes of the warp");
  float a[16][16];
  EmuRow b[8];
  for (int lane = 0; lane < 32; lane++) {
    EmuMma *m = (EmuMma *)lanes[lane];
    int g = lane / 4, t = lane % 4;
    for (int r = 0; r < 4; r++) a[g + r % 2 * 8][t + r / 2 * 4] = emu_bits<float>(m->a[r] & 0xffffe000u);
    for (int r = 0; r < 2; r++) b[t + r * 4][g] = emu_bits<float>(m->b[r] & 0xffffe000u);
  }
  emu_mma_finish(lanes, a, b, 8);
}
inline void mma_m16n8k8_tf32(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], const float (&c)[4]) {
  EmuMma m = {d, a, b, c};
  emu_host->collective(0xffffffffu, &m, emu_combine_mma_tf32, "mma_m16n8k8_tf32");
}

// ldmatrix: 2 or 4 matrices of 8x8 elements of 16 bits. Lane 8i+r gives the address of row r of matrix i (16 bytes,
// aligned to 16). Register i of lane L is row L/4, columns 2(L%4), 2(L%4)+1 of matrix i; .trans: of its transpose.
template <int matrices, bool trans> struct EmuLdmatrix {
  unsigned *r;
  const void *row;
  EMU_FAST static void combine(void **lanes, unsigned mask) {
    if (mask != 0xffffffffu) emu_host->fail(719, "ldmatrix needs all 32 lanes of the warp");
    for (int i = 0; i < matrices; i++) {
      unsigned short m[8][8];
      for (int r = 0; r < 8; r++) {
        const void *row = ((EmuLdmatrix *)lanes[8 * i + r])->row;
        if ((size_t)row % 16) emu_host->fail(716, "ldmatrix: the address of a row is not a multiple of 16");
        __builtin_memcpy(m[r], row, 16);
      }
      for (int lane = 0; lane < 32; lane++) {
        int x = lane / 4, y = lane % 4 * 2;
        unsigned low = trans ? m[y][x] : m[x][y], high = trans ? m[y + 1][x] : m[x][y + 1];
        ((EmuLdmatrix *)lanes[lane])->r[i] = low | high << 16;
      }
    }
  }
};
#define EMU_LDMATRIX(name, matrices, trans) \
  inline void name(unsigned (&r)[matrices], const void *row) { \
    EmuLdmatrix<matrices, trans> m = {r, row}; \
    emu_host->collective(0xffffffffu, &m, EmuLdmatrix<matrices, trans>::combine, #name); \
  }
EMU_LDMATRIX(ldmatrix_x4, 4, false)
EMU_LDMATRIX(ldmatrix_x4_trans, 4, true)
EMU_LDMATRIX(ldmatrix_x2, 2, false)
EMU_LDMATRIX(ldmatrix_x2_trans, 2, true)

// cp.async.cg.shared.global of 16 bytes, zeros where not valid. The copy is done as late as possible, in the wait that
// covers its group, so that a missing wait shows as NaN.
inline void cp_async_16(void *shared, const void *global, bool valid) { emu_host->copy_async(shared, global, valid); }
inline void cp_async_commit() { emu_host->copy_commit(); }
template <int n> inline void cp_async_wait() { emu_host->copy_wait(n); }

// Launching: emu_call unpacks kernelParams by the kernel's type; emu_sizes gives the sizes of its parameters.
template <int... i> struct EmuIndices {};
template <class... A, int... i> inline void emu_unpack(void (*kernel)(A...), void **p, EmuIndices<i...>) {
  kernel(*(A *)p[i]...);
}
template <class... A> inline void emu_call(void (*kernel)(A...), void **p) {
  emu_unpack(kernel, p, EmuIndices<__integer_pack((int)sizeof...(A))...>());
}
template <class T> struct EmuSize { static const unsigned value = sizeof(T); };
template <class T> struct EmuSize<T *> { static const unsigned value = sizeof(T *) | 0x80000000u; }; // a pointer, to check
template <class... A> inline int emu_sizes(void (*)(A...), unsigned *sizes) {
  unsigned all[] = {EmuSize<A>::value..., 0};
  for (unsigned i = 0; i < sizeof...(A); i++) sizes[i] = all[i];
  return (int)sizeof...(A);
}
inline int emu_first(int threads = 1024, int = 0, int = 0) { return threads; }
)emu"
