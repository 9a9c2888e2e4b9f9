// Test of the emulator: selftest LIBRARY KERNELS. Calls the library as a program calls the real ones.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <time.h>
#include <vector>

static void *library;
static int failures;
// Calls a function of the library by its name.
template <class... A> static int call(const char *name, A... a) {
  auto f = (int (*)(A...))dlsym(library, name);
  if (!f) {
    printf("missing: %s\n", name);
    exit(1);
  }
  return f(a...);
}
static void check(bool ok, const char *what) {
  printf("%s %s\n", ok ? "ok  " : "FAIL", what);
  failures += !ok;
}
static void expect(int got, int wanted, const char *what) {
  if (got != wanted) printf("     got %d, wanted %d:\n", got, wanted);
  check(got == wanted, what);
}
static double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

typedef uint64_t Ptr;
static void *module, *context, *stream;
static std::vector<char> image;

static void load() {
  expect(call("cuModuleLoadData", &module, (const void *)image.data()), 0, "load a module");
}
static void *function(const char *name) {
  void *f = nullptr;
  if (int e = call("cuModuleGetFunction", &f, module, name)) expect(e, 0, name);
  return f;
}
static Ptr alloc(size_t bytes) {
  Ptr p = 0;
  if (int e = call("cuMemAlloc_v2", &p, bytes)) expect(e, 0, "allocate");
  return p;
}
template <class T> static Ptr put(const std::vector<T> &v) {
  Ptr p = alloc(v.size() * sizeof(T));
  expect(call("cuMemcpyHtoDAsync_v2", p, (const void *)v.data(), v.size() * sizeof(T), stream), 0, "copy to the device");
  return p;
}
template <class T> static std::vector<T> get(Ptr p, size_t n) {
  std::vector<T> v(n);
  call("cuMemcpyDtoHAsync_v2", (void *)v.data(), p, n * sizeof(T), stream);
  expect(call("cuStreamSynchronize", stream), 0, "copy from the device");
  return v;
}
template <class... A> static int launch(const char *name, unsigned grid, unsigned block, unsigned shared, A... a) {
  void *params[] = {(void *)&a..., nullptr};
  return call("cuLaunchKernel", function(name), grid, 1u, 1u, block, 1u, 1u, shared, stream, params, (void **)nullptr);
}
static int sync() { return call("cuStreamSynchronize", stream); }
// After a broken context: a new one.
static void restart() {
  call("cuDevicePrimaryCtxRelease_v2", 0);
  call("cuDevicePrimaryCtxRetain", &context, 0);
  call("cuCtxSetCurrent", context);
  call("cuStreamCreate", &stream, 1u);
  load();
}

static float widen(uint16_t x) {
  uint32_t u = (uint32_t)x << 16;
  float f;
  memcpy(&f, &u, 4);
  return f;
}
static uint16_t narrow(float x) {
  uint32_t u;
  memcpy(&u, &x, 4);
  return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
static uint32_t bits(float x) {
  uint32_t u;
  memcpy(&u, &x, 4);
  return u;
}
static std::mt19937 generator(7);
static float random_float() { return std::uniform_real_distribution<float>(-1, 1)(generator); }

static int compile(const std::string &source, const char *option, std::vector<char> &out, std::string &log) {
  void *p;
  const char *text = "#define FROM_HEADER 5\n", *name = "part/extra.cuh";
  call("nvrtcCreateProgram", &p, source.c_str(), "kernels.cu", 1, &text, &name);
  const char *options[] = {"--gpu-architecture=sm_90", "-DVALUE=7", option};
  int e = call("nvrtcCompileProgram", p, 3, options);
  size_t n;
  call("nvrtcGetProgramLogSize", p, &n);
  log.resize(n);
  call("nvrtcGetProgramLog", p, &log[0]);
  if (!e) {
    call("nvrtcGetCUBINSize", p, &n);
    out.resize(n);
    call("nvrtcGetCUBIN", p, out.data());
  }
  call("nvrtcDestroyProgram", &p);
  return e;
}

static void compiling(const std::string &source) {
  std::string log;
  double t = now();
  int e = compile(source, "--std=c++17", image, log);
  printf("     compiled in %.2f s\n", now() - t);
  if (e) printf("%s\n", log.c_str());
  expect(e, 0, "compile the kernels");
  t = now();
  expect(compile(source, "--std=c++17", image, log), 0, "compile again");
  printf("     from the cache in %.3f s\n", now() - t);
  std::vector<char> other;
  expect(compile("extern \"C\" __global__ void f(int *x) {\n  *x = unknown_name;\n}\n", "", other, log), 6, "a compile error");
  check(log.find("unknown_name") != std::string::npos && log.find("kernels.cu:2") != std::string::npos,
        "the log names the error and its line");
  expect(compile("#include \"part/extra.cuh\"\nstatic_assert(VALUE + FROM_HEADER + MORE == 15, \"\");\n", "--define-macro=MORE=3",
                 other, log), 0, "headers and definitions");
}

static void reductions() {
  std::vector<float> x(3 * 1000);
  double sums[3] = {};
  for (size_t i = 0; i < x.size(); i++) sums[i / 1000] += x[i] = random_float();
  Ptr px = put(x), py = alloc(3 * 4);
  auto y = get<float>(py, 3);
  check(std::isnan(y[0]) && std::isnan(y[2]), "new memory holds NaN");
  expect(launch("reduce", 3, 256, 0, px, py, 1000), 0, "launch reduce");
  y = get<float>(py, 3);
  check(fabs(y[0] - sums[0]) < 1e-3 && fabs(y[1] - sums[1]) < 1e-3 && fabs(y[2] - sums[2]) < 1e-3, "reduce");
  expect(launch("reduce", 3, 512, 0, px, py, 1000), 1, "more threads than __launch_bounds__");

  bool wrong = false;
  Ptr pr = alloc(64 * 4);
  launch("race", 1, 64, 0, px, pr);
  auto r = get<float>(pr, 64);
  for (int i = 0; i < 64; i++) wrong |= !(r[i] == x[63 - i]);
  check(wrong, "a missing barrier shows");

  std::vector<float> rows(4 * 100);
  for (size_t i = 0; i < rows.size(); i++) rows[i] = i;
  Ptr p = put(rows);
  expect(launch("reverse", 4, 128, 400, p, 100), 0, "launch with dynamic shared memory");
  auto back = get<float>(p, rows.size());
  bool good = true;
  for (int i = 0; i < 400; i++) good &= back[i] == rows[i / 100 * 100 + 99 - i % 100];
  check(good, "dynamic shared memory and threads that leave early");
  Ptr pf = alloc(12);
  launch("fresh", 3, 1, 64, pf);
  auto f = get<float>(pf, 3);
  check(f[0] == 1 && f[1] == 1 && f[2] == 1, "shared memory is undefined in each block");
  expect(launch("reverse", 1, 128, 100000, p, 100), 1, "too much dynamic shared memory without asking");
  expect(call("cuFuncSetAttribute", function("reverse"), 8, 100000), 0, "ask for dynamic shared memory");
  expect(launch("reverse", 1, 128, 100000, p, 100), 0, "large dynamic shared memory");
  expect(call("cuFuncSetAttribute", function("reverse"), 8, 300000), 1, "more shared memory than there is");
  for (Ptr q : {px, py, pr, p, pf}) expect(call("cuMemFree_v2", q), 0, "free");
}

static void arguments() {
  Ptr p = alloc(12 * 8);
  struct Pair { float a; long long b; } pair = {2.5f, -77};
  expect(launch("arguments", 1, 1, 0, p, (char)-3, (short)-300, -70000, 4000000000u, -5000000000ll, 1ull << 63, 1.5f, 2.25, pair,
                (Ptr)0, true), 0, "launch with many kinds of arguments");
  auto v = get<double>(p, 12);
  const double wanted[] = {-3, -300, -70000, 4e9, -5e9, 9223372036854775808.0, 1.5, 2.25, 2.5, -77, 1, 1};
  check(!memcmp(v.data(), wanted, sizeof wanted), "arguments arrive");
  expect(launch("nothing", 2, 32, 0), 0, "a kernel without arguments");
}

static void fragments() {
  // Matrices are scattered to fragments by the formulas of the PTX ISA, written out here once more element by element.
  std::vector<uint32_t> a(32 * 4), b(32 * 2);
  std::vector<float> c(32 * 4);
  float A[16][16], B[16][8], C[16][8];
  for (auto &r : A) for (float &x : r) x = widen(narrow(random_float()));
  for (auto &r : B) for (float &x : r) x = widen(narrow(random_float()));
  for (auto &r : C) for (float &x : r) x = random_float();
  for (int lane = 0; lane < 32; lane++) {
    int group = lane >> 2, inside = lane & 3;
    for (int i = 0; i < 8; i++) { // a0..a7
      int row = (i < 2 || (i >= 4 && i < 6)) ? group : group + 8;
      int col = i < 4 ? inside * 2 + (i & 1) : inside * 2 + (i & 1) + 8;
      a[lane * 4 + i / 2] |= (uint32_t)narrow(A[row][col]) << 16 * (i & 1);
    }
    for (int i = 0; i < 4; i++) { // b0..b3
      int row = i < 2 ? inside * 2 + (i & 1) : inside * 2 + (i & 1) + 8;
      b[lane * 2 + i / 2] |= (uint32_t)narrow(B[row][group]) << 16 * (i & 1);
    }
    for (int i = 0; i < 4; i++) c[lane * 4 + i] = C[i < 2 ? group : group + 8][inside * 2 + (i & 1)];
  }
  auto good = [&](const std::vector<float> &d, int depth) {
    for (int lane = 0; lane < 32; lane++)
      for (int i = 0; i < 4; i++) {
        int row = i < 2 ? lane >> 2 : (lane >> 2) + 8, col = (lane & 3) * 2 + (i & 1);
        double s = C[row][col];
        for (int k = 0; k < depth; k++) s += (double)A[row][k] * B[k][col];
        if (!(fabs(s - d[lane * 4 + i]) < 1e-5)) return false;
      }
    return true;
  };
  Ptr pa = put(a), pb = put(b), pc = put(c), pd = alloc(128 * 4);
  launch("mma_bf16", 1, 32, 0, pa, pb, pc, pd);
  check(good(get<float>(pd, 128), 16), "mma m16n8k16 bf16");
  for (int lane = 0; lane < 32; lane++) {
    int group = lane >> 2, inside = lane & 3;
    for (int i = 0; i < 4; i++)
      a[lane * 4 + i] = bits(A[i == 0 || i == 2 ? group : group + 8][i < 2 ? inside : inside + 4]) | 0x1234 % 0x2000;
    for (int i = 0; i < 2; i++) b[lane * 2 + i] = bits(B[i == 0 ? inside : inside + 4][group]) | 0x1fff;
  }
  pa = put(a), pb = put(b);
  launch("mma_tf32", 1, 32, 0, pa, pb, pc, pd);
  check(good(get<float>(pd, 128), 8), "mma m16n8k8 tf32");

  std::vector<uint16_t> ta(16 * 32), tb(8 * 32), tt(32 * 8);
  for (auto &x : ta) x = narrow(random_float());
  for (int n = 0; n < 8; n++)
    for (int k = 0; k < 32; k++) tt[k * 8 + n] = tb[n * 32 + k] = narrow(random_float());
  Ptr qa = put(ta), qb = put(tb), qt = put(tt), q = alloc(128 * 4), q2 = alloc(128 * 4);
  launch("tile", 1, 32, 0, qa, qb, q);
  launch("tile_trans", 1, 32, 0, qa, qt, q2);
  auto d = get<float>(q, 128), d2 = get<float>(q2, 128);
  bool ok = true, ok2 = true;
  for (int m = 0; m < 16; m++)
    for (int n = 0; n < 8; n++) {
      double s = 0;
      for (int k = 0; k < 32; k++) s += (double)widen(ta[m * 32 + k]) * widen(tb[n * 32 + k]);
      ok &= fabs(s - d[m * 8 + n]) < 1e-5;
      ok2 &= fabs(s - d2[m * 8 + n]) < 1e-5;
    }
  check(ok, "ldmatrix, cp.async and mma");
  check(ok2, "ldmatrix.trans and mma");
  Ptr f4 = put(std::vector<float>(128, 1.0f)), g4 = alloc(512);
  launch("no_wait", 1, 32, 0, f4, g4);
  check(std::isnan(get<float>(g4, 128)[5]), "a missing wait of cp.async shows");
}

static void warps() {
  Ptr p = alloc(96 * 12 * 4);
  launch("warps", 1, 96, 0, p);
  auto v = get<int>(p, 96 * 12);
  bool ok[12];
  for (bool &o : ok) o = true;
  for (int t = 0; t < 96; t++) {
    int l = t % 32, *o = &v[t * 12];
    const int wanted[12] = {5, l < 3 ? l : l - 3, l % 8 < 4 ? l + 4 : l, l ^ 9, (int)0xaaaaaaaa, 1, 32, 1,
                            l < 16 ? l ^ 1 : (l + 2 < 32 ? l + 2 : l), (31 - l) / 2, 1, 4};
    for (int i = 0; i < 12; i++) ok[i] &= o[i] == wanted[i];
  }
  const char *names[] = {"shfl", "shfl_up", "shfl_down of width 8", "shfl_xor", "ballot", "any and all", "syncthreads_count",
                         "syncthreads_or and _and", "halves of a warp", "shfl of double", "syncthreads_and", "shfl of long long"};
  for (int i = 0; i < 12; i++) check(ok[i], names[i]);

  std::vector<int> zero(32, 0);
  Ptr a = put(zero), b = put(zero), c = put(zero), d = put(zero), e = put(zero);
  launch("atomics", 1, 64, 0, a, b, c, d, e);
  auto i = get<int>(a, 2);
  auto u = get<unsigned>(b, 3);
  check(i[0] == 2016 && i[1] == -63 && u[0] == 63 && u[1] == ~0u && u[2] == 128 && get<float>(c, 1)[0] == 32 &&
            get<double>(d, 1)[0] == 16 && get<uint64_t>(e, 1)[0] == 64ull << 33, "atomics");
  Ptr n = alloc(64);
  launch("numbers", 1, 1, 0, n);
  auto y = get<float>(n, 16);
  const float wanted[] = {0x3f80, 0x3f82, 1, 2, -2, 3, 31, 4, 8, 1, 3, 1.5, 0.5, 10, 1, 1};
  check(!memcmp(y.data(), wanted, sizeof wanted), "numbers");
}

static void graphs() {
  std::vector<float> zero(64, 0.0f);
  Ptr p = put(zero), q = alloc(256);
  sync();
  expect(call("cuStreamBeginCapture_v2", stream, 1), 0, "begin a capture");
  int status;
  call("cuStreamIsCapturing", stream, &status);
  expect(status, 1, "capture is active");
  {
    float by = 2;
    void *params[] = {&p, &by};
    call("cuLaunchKernel", function("add_one"), 2u, 1u, 1u, 32u, 1u, 1u, 0u, stream, params, (void **)nullptr);
    by = 100; // the capture has a copy
  }
  call("cuMemcpyDtoDAsync_v2", q, p, (size_t)256, stream);
  call("cuMemsetD32Async", p, 0x3f800000u, (size_t)1, stream);
  void *graph, *exec;
  expect(call("cuStreamEndCapture", stream, &graph), 0, "end a capture");
  size_t n;
  call("cuGraphGetNodes", graph, (void **)nullptr, &n);
  expect(n, 3, "nodes of the graph");
  expect(call("cuGraphInstantiateWithFlags", &exec, graph, 0ull), 0, "instantiate");
  check(get<float>(p, 1)[0] == 0, "a capture does not run");
  for (int i = 0; i < 3; i++) expect(call("cuGraphLaunch", exec, stream), 0, "launch the graph");
  auto a = get<float>(p, 64), b = get<float>(q, 64);
  check(a[0] == 1 && a[1] == 6 && b[0] == 3 && b[63] == 6, "replay");
  call("cuGraphExecDestroy", exec);
  call("cuGraphDestroy", graph);

  for (int i = 0; i < 3; i++) {
    call("cuStreamBeginCapture_v2", stream, 0);
    Ptr r;
    int e = i == 0 ? sync() : i == 1 ? call("cuMemAlloc_v2", &r, (size_t)8) : call("cuMemFree_v2", q);
    expect(e, 900, i == 0 ? "synchronise in a capture" : i == 1 ? "allocate in a capture" : "free in a capture");
    expect(call("cuStreamEndCapture", stream, &graph), 901, "the capture is lost");
  }
  void *x, *y;
  call("cuEventCreate", &x, 0u);
  call("cuEventCreate", &y, 0u);
  call("cuEventRecord", x, stream);
  launch("add_one", 2, 32, 0, p, 1.0f);
  call("cuEventRecord", y, stream);
  expect(call("cuEventSynchronize", y), 0, "synchronise with an event");
  float ms = -1;
  expect(call("cuEventElapsedTime", &ms, x, y), 0, "elapsed time");
  check(ms >= 0 && ms < 1000, "elapsed time is plausible");
}

// With CUDAEMU_LATE the host sees nothing before it waits.
static void late() {
  const char *before = getenv("CUDAEMU_LATE");
  setenv("CUDAEMU_LATE", "1", 1);
  float *pinned, pageable[4] = {5, 5, 5, 5};
  expect(call("cuMemHostAlloc", (void **)&pinned, (size_t)16, 0u), 0, "memory of the host");
  Ptr p = alloc(16);
  pinned[0] = 3;
  call("cuMemcpyHtoDAsync_v2", p, (const void *)pinned, (size_t)16, stream);
  call("cuMemcpyHtoDAsync_v2", p + 4, (const void *)pageable, (size_t)8, stream);
  pinned[0] = pageable[0] = 4; // too early for the pinned one
  launch("add_one", 1, 2, 0, p, 1.0f);
  call("cuMemcpyDtoHAsync_v2", (void *)(pinned + 1), p, (size_t)8, stream);
  check(std::isnan(pinned[1]), "late work is not done at once");
  sync();
  check(pinned[1] == 5 && pinned[2] == 6, "late work is done by a synchronisation");
  call("cuMemFreeHost", (void *)pinned);
  if (!before) unsetenv("CUDAEMU_LATE");
}

static void faults() {
  Ptr p = alloc(1000), r;
  expect(call("cuMemcpyDtoDAsync_v2", p, p + 992, (size_t)16, stream), 1, "a copy beyond an allocation");
  std::vector<char> host(16);
  expect(call("cuMemcpyHtoDAsync_v2", (Ptr)(uintptr_t)host.data(), (const void *)host.data(), (size_t)8, stream), 1,
         "a copy to host memory as device memory");
  expect(call("cuMemAlloc_v2", &r, (size_t)5 << 30), 2, "more memory than there is");
  expect(call("cuMemFree_v2", p + 8), 1, "free of what is no allocation");
  Ptr big = alloc((size_t)2 << 30);
  expect(call("cuMemFree_v2", big), 0, "a large allocation");
  struct { const char *kernel; long long index; int error; const char *what; } cases[] = {
      {"write_at", 1 << 20, 700, "a write far beyond an allocation"},
      {"write_at", 256, 700, "a write behind the padding of an allocation"},
      {"write_at", 250, 700, "a write into the padding of an allocation"},
      {"write_shared", 16, 0, "a write into dynamic shared memory"},
      {"write_shared", 32, 700, "a write beyond dynamic shared memory"},
      {"write_array", 3, 0, "a write into a shared array"},
      {"write_array", 4, 716, "a write beyond a shared array"},
  };
  for (auto &c : cases) {
    p = alloc(1000);
    call("cuMemsetD8Async", p, (unsigned char)0, (size_t)1000, stream);
    int e = c.kernel[6] == 'a' && c.kernel[7] == 't' ? launch(c.kernel, 1, 1, 0, p, c.index)
                                                     : launch(c.kernel, 1, 1, 80, p, (int)c.index);
    expect(e, 0, "the launch itself succeeds");
    expect(sync(), c.error, c.what);
    if (c.error) {
      expect(call("cuMemAlloc_v2", &r, (size_t)8), c.error, "the error stays");
      restart();
    }
  }
  float here = 0;
  launch("write_at", 1, 1, 0, (Ptr)(uintptr_t)&here, 0ll);
  expect(sync(), 700, "an address of the host as a parameter");
  check(here == 0, "the kernel did not run");
  restart();
  p = alloc(64);
  launch("misaligned", 1, 1, 0, p);
  expect(sync(), 716, "a misaligned vector");
  restart();
  p = alloc(64);
  launch("stuck", 1, 64, 0, p);
  expect(sync(), 719, "a deadlock");
  restart();
  launch("asserts", 1, 1, 0, 3);
  expect(sync(), 0, "an assertion that holds");
  launch("asserts", 1, 1, 0, 4);
  expect(sync(), 710, "an assertion that does not hold");
  restart();
}

static void products() {
  void *lt, *pref;
  call("cublasLtCreate", &lt);
  call("cublasLtMatmulPreferenceCreate", &pref);
  uint64_t space = 1 << 20;
  call("cublasLtMatmulPreferenceSetAttribute", pref, 1, (const void *)&space, (size_t)8);
  Ptr work = alloc(space);
  for (int variant = 0; variant < 32; variant++) {
    int ta = variant & 1, tb = variant >> 1 & 1, type = variant & 4 ? 14 : 0, epilogue = (int[]){1, 4, 256, 512}[variant >> 3];
    int m = 37, n = 21, k = 300, batch = 2;
    int ar = ta ? k : m, ac = ta ? m : k, br = tb ? n : k, bc = tb ? k : n, lda = ar + 3, ldb = br + 1, ldd = m + 2;
    int64_t sa = lda * ac, sb = ldb * bc, sd = ldd * n;
    std::vector<float> a(sa * batch), b(sb * batch), c(sd * batch), bias(64);
    for (auto *v : {&a, &b, &c, &bias})
      for (float &x : *v) x = widen(narrow(random_float()));
    auto upload = [&](const std::vector<float> &v) {
      if (type == 0) return put(v);
      std::vector<uint16_t> w(v.size());
      for (size_t i = 0; i < v.size(); i++) w[i] = narrow(v[i]);
      return put(w);
    };
    auto download = [&](Ptr p, size_t count) {
      if (type == 0) return get<float>(p, count);
      auto w = get<uint16_t>(p, count);
      std::vector<float> v(count);
      for (size_t i = 0; i < count; i++) v[i] = widen(w[i]);
      return v;
    };
    Ptr pa = upload(a), pb = upload(b), pd = upload(c), pbias = upload(bias);
    void *desc, *la, *lb, *ld;
    call("cublasLtMatmulDescCreate", &desc, 68, 0);
    call("cublasLtMatmulDescSetAttribute", desc, 3, (const void *)&ta, (size_t)4);
    call("cublasLtMatmulDescSetAttribute", desc, 4, (const void *)&tb, (size_t)4);
    call("cublasLtMatmulDescSetAttribute", desc, 7, (const void *)&epilogue, (size_t)4);
    call("cublasLtMatmulDescSetAttribute", desc, 8, (const void *)&pbias, (size_t)8);
    call("cublasLtMatrixLayoutCreate", &la, type, (uint64_t)ar, (uint64_t)ac, (int64_t)lda);
    call("cublasLtMatrixLayoutCreate", &lb, type, (uint64_t)br, (uint64_t)bc, (int64_t)ldb);
    call("cublasLtMatrixLayoutCreate", &ld, type, (uint64_t)m, (uint64_t)n, (int64_t)ldd);
    int64_t strides[] = {sa, sb, sd};
    void *layouts[] = {la, lb, ld};
    for (int i = 0; i < 3; i++) {
      call("cublasLtMatrixLayoutSetAttribute", layouts[i], 5, (const void *)&batch, (size_t)4);
      call("cublasLtMatrixLayoutSetAttribute", layouts[i], 6, (const void *)&strides[i], (size_t)8);
    }
    char result[96];
    int count = 0;
    int e = call("cublasLtMatmulAlgoGetHeuristic", lt, desc, la, lb, ld, ld, pref, 1, (void *)result, &count);
    if (e || count != 1) expect(e, 0, "heuristic");
    float alpha = 0.5f, beta = -2;
    e = call("cublasLtMatmul", lt, desc, (const void *)&alpha, (const void *)pa, la, (const void *)pb, lb, (const void *)&beta,
             (const void *)pd, ld, (void *)pd, ld, (const void *)result, (void *)work, (size_t)space, stream);
    if (e) expect(e, 0, "matmul");
    auto d = download(pd, c.size()), g = download(pbias, 64);
    bool ok = true;
    auto A = [&](int z, int i, int x) { return a[z * sa + (ta ? x + i * lda : i + x * lda)]; };
    auto B = [&](int z, int x, int j) { return b[z * sb + (tb ? j + x * ldb : x + j * ldb)]; };
    auto near = [&](double wanted, float got) { return fabs(wanted - got) <= (type ? 0.01 : 1e-5) * (fabs(wanted) + 1); };
    for (int z = 0; z < batch; z++)
      for (int j = 0; j < n; j++)
        for (int i = 0; i < ldd; i++) {
          double s = 0;
          if (i < m) {
            for (int x = 0; x < k; x++) s += (double)A(z, i, x) * B(z, x, j);
            s = alpha * s + beta * c[z * sd + i + j * ldd] + (epilogue == 4 ? bias[i] : 0);
          } else {
            s = c[z * sd + i + j * ldd]; // between the columns nothing changes
          }
          ok &= near(s, d[z * sd + i + j * ldd]);
        }
    if (epilogue == 256 || epilogue == 512) // both matrices of the batch write to the same gradient: the last one stays
      for (int i = 0; i < (epilogue == 256 ? m : n); i++) {
        double s = 0;
        for (int x = 0; x < k; x++) s += epilogue == 256 ? A(1, i, x) : B(1, x, i);
        ok &= near(s, g[i]);
      }
    char name[100];
    snprintf(name, sizeof name, "product %s%s, %s, epilogue %d", ta ? "T" : "N", tb ? "T" : "N", type ? "bf16" : "fp32",
             epilogue);
    check(ok, name);
    if (variant == 0) {
      call("cublasLtMatrixLayoutCreate", &lb, type, (uint64_t)br + 1, (uint64_t)bc, (int64_t)ldb);
      call("cublasLtMatrixLayoutSetAttribute", lb, 5, (const void *)&batch, (size_t)4);
      expect(call("cublasLtMatmulAlgoGetHeuristic", lt, desc, la, lb, ld, ld, pref, 1, (void *)result, &count), 7,
             "shapes that do not fit");
    }
  }
  int n = 512;
  void *desc, *l;
  call("cublasLtMatmulDescCreate", &desc, 68, 0);
  call("cublasLtMatrixLayoutCreate", &l, 0, (uint64_t)n, (uint64_t)n, (int64_t)n);
  Ptr a = put(std::vector<float>(n * n, 1.0f)), b = put(std::vector<float>(n * n, 1.0f)), d = alloc(n * n * 4);
  float one = 1, zero = 0;
  double t = now();
  for (int i = 0; i < 5; i++)
    call("cublasLtMatmul", lt, desc, (const void *)&one, (const void *)a, l, (const void *)b, l, (const void *)&zero,
         (const void *)d, l, (void *)d, l, (const void *)nullptr, (void *)nullptr, (size_t)0, stream);
  sync();
  printf("     product of %d: %.1f GFLOP/s\n", n, 5 * 2.0 * n * n * n / (now() - t) * 1e-9);
  check(get<float>(d, n * n)[n * n - 1] == n, "a large product");
}

static void speed() {
  Ptr x = put(std::vector<float>(1 << 20, 1.0f)), y = alloc(4 << 10);
  sync();
  double t = now();
  launch("reduce", 1024, 256, 0, x, y, 1024);
  sync();
  printf("     1024 blocks of 256 threads, 5 to 10 shuffles and a barrier each: %.1f ms\n", 1e3 * (now() - t));
  t = now();
  launch("add_one", 4096, 256, 0, x, 1.0f);
  sync();
  printf("     a million threads without barriers: %.1f ms\n", 1e3 * (now() - t));
  check(get<float>(y, 1024)[1023] == 1024, "a large reduction");
}

// CUDAEMU_FAIL: a call that fails alone, and kernels that break the context, also within a graph.
static void failures_on_demand() {
  Ptr p = alloc(64), r;
  setenv("CUDAEMU_FAIL", "cuMemAlloc_v2:2:2", 1);
  expect(call("cuMemAlloc_v2", &r, (size_t)8), 0, "the call before the one that shall fail");
  expect(call("cuMemAlloc_v2", &r, (size_t)8), 2, "the call that shall fail");
  expect(call("cuMemAlloc_v2", &r, (size_t)8), 0, "the call after it");
  setenv("CUDAEMU_FAIL", "cuDeviceGetCount:1+:100", 1);
  int n;
  call("cuDeviceGetCount", &n);
  expect(call("cuDeviceGetCount", &n), 100, "all calls from one on");
  setenv("CUDAEMU_FAIL", "kernel:2", 1);
  launch("add_one", 1, 16, 0, p, 1.0f);
  expect(launch("add_one", 1, 16, 0, p, 1.0f), 0, "the launch of a kernel that shall fail succeeds");
  expect(sync(), 719, "a kernel that shall fail");
  setenv("CUDAEMU_FAIL", "cuStreamSynchronize:1:46", 1);
  restart();
  expect(sync(), 46, "a device that has gone");
  unsetenv("CUDAEMU_FAIL");
  expect(call("cuMemAlloc_v2", &r, (size_t)8), 46, "a device that has gone stays away");
  restart();
}

int main(int, char **argv) {
  library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    printf("%s\n", dlerror());
    return 1;
  }
  std::stringstream source;
  source << std::ifstream(argv[2]).rdbuf();
  int value;
  expect(call("cuDeviceGetCount", &value), 3, "calls before cuInit fail");
  expect(call("cuInit", 0u), 0, "cuInit");
  call("cuDeviceGetAttribute", &value, 75, 0);
  expect(value, 9, "compute capability");
  call("cuDevicePrimaryCtxRetain", &context, 0);
  expect(call("cuStreamCreate", &stream, 1u), 201, "calls without a current context fail");
  call("cuCtxSetCurrent", context);
  call("cuStreamCreate", &stream, 1u);
  compiling(source.str());
  load();
  reductions();
  arguments();
  fragments();
  warps();
  graphs();
  products();
  speed();
  late();
  faults();
  failures_on_demand();
  expect(call("cuCtxSynchronize"), 0, "synchronise the context");
  printf(failures ? "%d checks failed\n" : "all checks passed\n", failures);
  return failures != 0;
}
