// The CUDA driver API (functions of cuda.h): device, context, streams, events, graphs, modules and launches.
//
// Work is done when it is enqueued. With CUDAEMU_LATE=1 it waits until something synchronises: a missing synchronisation
// then shows as a wrong result on the host. Errors of a kernel come as on a device: the launch succeeds, and every later
// call fails, until the primary context has been released by all.
#include "state.h"

#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <dlfcn.h>
#include <link.h>
#include <memory>
#include <set>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

std::recursive_mutex emu_lock;

void say(const char *format, ...) {
  char text[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  fprintf(stderr, "cudaemu: %s\n", text);
}

namespace {

struct Op {
  OpType type;
  std::function<CUresult()> run;
};
struct Graph { std::vector<std::shared_ptr<Op>> ops; };
enum CaptureMode { GLOBAL = 0, THREAD_LOCAL = 1, RELAXED = 2 };
struct Stream {
  bool blocking; // with the legacy default stream
  Graph *capture = nullptr;
  bool invalidated = false;
  CaptureMode mode = GLOBAL;
  pid_t thread = 0;
};
struct Event {
  bool timing, recorded = false, captured = false;
  std::chrono::steady_clock::time_point time;
};

bool initialised;
int retained;
CUresult broken; // error that stays
constexpr int most_devices = 64;
char context_objects[most_devices];  // their addresses are the handles of the primary contexts
thread_local void *current;          // the context of this thread
std::set<void *> streams, events, graphs, execs, modules, functions;
std::deque<std::function<CUresult()>> late;

pid_t this_thread() { return (pid_t)syscall(SYS_gettid); }

// The default stream's handles are 0, 1 (legacy) and 2 (per thread).
bool is_default(void *s) { return (uintptr_t)s <= 2; }
bool is_stream(void *s) { return is_default(s) || streams.count(s); }
Stream *capturing(void *s) {
  if (is_default(s) || !streams.count(s)) return nullptr;
  Stream *t = (Stream *)s;
  return t->capture ? t : nullptr;
}

// The numbers of the devices that CUDA_VISIBLE_DEVICES leaves: as in the driver, those before the first wrong one.
std::vector<int> visible_devices() {
  const char *s = getenv("CUDAEMU_DEVICES"), *v = getenv("CUDA_VISIBLE_DEVICES");
  int n = s ? atoi(s) : 0;
  if (n < 1 || n > most_devices) n = 1;
  std::vector<int> list;
  for (int i = 0; !v && i < n; i++) list.push_back(i);
  while (v && *v) {
    char *end;
    long i = strtol(v, &end, 10);
    if (end == v || i < 0 || i >= n) break;
    list.push_back(i);
    v = *end == ',' ? end + 1 : end;
  }
  return list;
}
int device_count() { return visible_devices().size(); }
bool no_device(int device) { return device < 0 || device >= device_count(); }

// Whether work waits until something synchronises.
bool put_off() {
  const char *s = getenv("CUDAEMU_LATE");
  return s && *s && *s != '0';
}

CUresult run_now(const std::function<CUresult()> &run) {
  if (broken) return broken;
  if (CUresult e = run()) broken = e;
  return CUDA_SUCCESS;
}

// Does what CUDAEMU_LATE has put off.
CUresult flush() {
  while (!late.empty()) {
    auto run = late.front();
    late.pop_front();
    run_now(run);
  }
  return broken;
}

// What may not happen while a stream is captured: invalidates the captures that forbid it.
CUresult not_in_capture(const char *what, bool relaxed_may) {
  CUresult e = CUDA_SUCCESS;
  for (void *s : streams) {
    Stream *t = (Stream *)s;
    if (!t->capture) continue;
    if (relaxed_may && (t->mode == RELAXED || (t->mode == THREAD_LOCAL && t->thread != this_thread()))) continue;
    say("%s while a stream is being captured", what);
    t->invalidated = true;
    e = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return e;
}

// relaxed: captures that mind calls of their own thread alone go on.
CUresult synchronise(const char *what, bool relaxed) {
  if (CUresult e = ready()) return e;
  if (CUresult e = not_in_capture(what, relaxed)) return e;
  if (CUresult e = flush()) return e;
  if (!memory_whole()) broken = CUDA_ERROR_ILLEGAL_ADDRESS;
  return broken;
}

CUresult copy(void *stream, const char *what, void *to, const void *from, size_t bytes, CUdeviceptr device_to,
              CUdeviceptr device_from) {
  if (CUresult e = ready()) return e;
  if ((device_to && !memory_check(device_to, bytes, what)) || (device_from && !memory_check(device_from, bytes, what)) ||
      (bytes && (!to || !from)))
    return CUDA_ERROR_INVALID_VALUE;
  if (bytes && device_to && device_from && device_to < device_from + bytes && device_from < device_to + bytes) {
    say("%s: source and destination overlap", what);
    return CUDA_ERROR_INVALID_VALUE;
  }
  return enqueue(stream, OP_MEMCPY, [=]() -> CUresult {
    // Replayed graphs: the memory may have gone since.
    if ((device_to && !memory_check(device_to, bytes, what)) || (device_from && !memory_check(device_from, bytes, what)))
      return CUDA_ERROR_ILLEGAL_ADDRESS;
    memcpy(to, from, bytes);
    return CUDA_SUCCESS;
  });
}

CUresult fill(void *stream, const char *what, CUdeviceptr p, size_t count, unsigned value, size_t width) {
  if (CUresult e = ready()) return e;
  if (p % width || !memory_check(p, count * width, what)) return CUDA_ERROR_INVALID_VALUE;
  return enqueue(stream, OP_MEMSET, [=]() -> CUresult {
    if (!memory_check(p, count * width, what)) return CUDA_ERROR_ILLEGAL_ADDRESS;
    if (width == 1)
      memset((void *)p, (int)value, count);
    else
      for (size_t i = 0; i < count; i++) ((unsigned *)p)[i] = value;
    return CUDA_SUCCESS;
  });
}

std::string module_path(int file) { return "/proc/self/fd/" + std::to_string(file); }

void unload(Module *m) {
  for (auto &k : m->kernels) {
    functions.erase(k.second);
    delete k.second;
  }
  dlclose(m->library);
  // A library that is loaded still keeps its descriptor: the loader knows it by the path.
  if (!dlopen(module_path(m->file).c_str(), RTLD_NOW | RTLD_NOLOAD)) close(m->file);
  modules.erase(m);
  delete m;
}

} // namespace

void break_context(int status) { broken = (CUresult)status; }

CUresult ready() {
  if (!initialised) return CUDA_ERROR_NOT_INITIALIZED;
  if (!current || !retained) {
    say("a call needs a current context: cuCtxSetCurrent has not been called on this thread");
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  return broken;
}

CUresult enqueue(void *stream, OpType type, std::function<CUresult()> run) {
  if (!is_stream(stream)) {
    say("work for %p, which is not a stream", stream);
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (Stream *s = capturing(stream)) {
    if (s->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    s->capture->ops.push_back(std::make_shared<Op>(Op{type, run}));
    return CUDA_SUCCESS;
  }
  if (is_default(stream))
    for (void *p : streams) {
      Stream *s = (Stream *)p;
      if (s->capture && s->blocking) {
        say("work for the default stream while a stream that waits for it is being captured");
        s->invalidated = true;
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
      }
    }
  if (put_off()) {
    late.push_back(run);
    return CUDA_SUCCESS;
  }
  return run_now(run);
}

// Errors.

static const struct { int code; const char *name, *text; } errors[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {35, "CUDA_ERROR_INSUFFICIENT_DRIVER", "CUDA driver version is insufficient for CUDA runtime version"},
    {46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA-capable device(s) is/are busy or unavailable"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {214, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the provided PTX was compiled with an unsupported toolchain."},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "system has unsupported display driver / cuda driver combination"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {710, "CUDA_ERROR_ASSERT", "device-side assert triggered"},
    {715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "an illegal instruction was encountered"},
    {716, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture"},
    {903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "capture was not initiated in this stream"},
    {906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "operation would make the legacy stream depend on a capturing blocking stream"},
    {907, "CUDA_ERROR_CAPTURED_EVENT", "operation not permitted on an event last recorded in a capturing stream"},
    {908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "attempt to terminate a thread-local capture sequence from another thread"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

EMU_API CUresult cuGetErrorName(int error, const char **text) {
  *text = nullptr;
  for (auto &e : errors)
    if (e.code == error) *text = e.name;
  return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EMU_API CUresult cuGetErrorString(int error, const char **text) {
  *text = nullptr;
  for (auto &e : errors)
    if (e.code == error) *text = e.text;
  return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Device and context.

EMU_API CUresult cuInit(unsigned flags) {
  FAULT;
  Guard g(emu_lock);
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  initialised = true;
  return CUDA_SUCCESS;
}

EMU_API CUresult cuDriverGetVersion(int *version) {
  FAULT;
  const char *s = getenv("CUDAEMU_DRIVER");
  *version = s && *s ? atoi(s) : 13000;
  return CUDA_SUCCESS;
}

EMU_API CUresult cuDeviceGetCount(int *n) {
  FAULT;
  if (!initialised) return CUDA_ERROR_NOT_INITIALIZED;
  *n = device_count();
  return CUDA_SUCCESS;
}

EMU_API CUresult cuDeviceGet(int *device, int ordinal) {
  FAULT;
  if (!initialised) return CUDA_ERROR_NOT_INITIALIZED;
  if (no_device(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

EMU_API CUresult cuDeviceGetName(char *name, int length, int device) {
  FAULT;
  if (no_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  snprintf(name, length, "Emulated CUDA device");
  return CUDA_SUCCESS;
}

EMU_API CUresult cuDeviceGetUuid_v2(unsigned char *uuid, int device) {
  FAULT;
  if (no_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  memset(uuid, 0, 16);
  uuid[15] = visible_devices()[device];
  return CUDA_SUCCESS;
}

EMU_API CUresult cuDeviceTotalMem_v2(size_t *bytes, int device) {
  FAULT;
  if (no_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = memory_limit();
  return CUDA_SUCCESS;
}

EMU_API CUresult cuDeviceGetAttribute(int *value, int attribute, int device) {
  FAULT;
  if (no_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  // Numbers of enum CUdevice_attribute_enum; values of an H100 but for the multiprocessors.
  static const std::map<int, int> values = {
      {1, 1024},        // MAX_THREADS_PER_BLOCK
      {2, 1024},        // MAX_BLOCK_DIM_X
      {3, 1024},        // MAX_BLOCK_DIM_Y
      {4, 64},          // MAX_BLOCK_DIM_Z
      {5, 2147483647},  // MAX_GRID_DIM_X
      {6, 65535},       // MAX_GRID_DIM_Y
      {7, 65535},       // MAX_GRID_DIM_Z
      {8, 48 << 10},    // MAX_SHARED_MEMORY_PER_BLOCK
      {9, 64 << 10},    // TOTAL_CONSTANT_MEMORY
      {10, 32},         // WARP_SIZE
      {12, 65536},      // MAX_REGISTERS_PER_BLOCK
      {13, 1980000},    // CLOCK_RATE, kHz
      {16, 2},          // MULTIPROCESSOR_COUNT
      {18, 0},          // INTEGRATED
      {31, 1},          // CONCURRENT_KERNELS
      {32, 0},          // ECC_ENABLED
      {33, 0},          // PCI_BUS_ID
      {34, 0},          // PCI_DEVICE_ID
      {36, 2619000},    // MEMORY_CLOCK_RATE, kHz
      {37, 5120},       // GLOBAL_MEMORY_BUS_WIDTH
      {38, 50 << 20},   // L2_CACHE_SIZE
      {39, 2048},       // MAX_THREADS_PER_MULTIPROCESSOR
      {40, 1},          // ASYNC_ENGINE_COUNT
      {41, 1},          // UNIFIED_ADDRESSING
      {50, 0},          // PCI_DOMAIN_ID
      {75, 9},          // COMPUTE_CAPABILITY_MAJOR
      {76, 0},          // COMPUTE_CAPABILITY_MINOR
      {81, 228 << 10},  // MAX_SHARED_MEMORY_PER_MULTIPROCESSOR
      {82, 65536},      // MAX_REGISTERS_PER_MULTIPROCESSOR
      {95, 0},          // COOPERATIVE_LAUNCH
      {97, 227 << 10},  // MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
      {106, 32},        // MAX_BLOCKS_PER_MULTIPROCESSOR
      {111, 1024},      // RESERVED_SHARED_MEMORY_PER_BLOCK
      {115, 0},         // MEMORY_POOLS_SUPPORTED
  };
  auto it = values.find(attribute);
  if (it == values.end()) return CUDA_ERROR_INVALID_VALUE;
  *value = it->second;
  if (const char *s = attribute == 75 || attribute == 76 ? getenv("CUDAEMU_CAPABILITY") : nullptr)
    *value = attribute == 75 ? atoi(s) / 10 : atoi(s) % 10;
  return CUDA_SUCCESS;
}

EMU_API CUresult cuDevicePrimaryCtxRetain(void **c, int device) {
  FAULT;
  Guard g(emu_lock);
  if (!initialised) return CUDA_ERROR_NOT_INITIALIZED;
  if (no_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  retained++;
  *c = &context_objects[device];
  return CUDA_SUCCESS;
}

EMU_API CUresult cuDevicePrimaryCtxRelease_v2(int device) {
  FAULT;
  Guard g(emu_lock);
  if (no_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (!retained) return CUDA_ERROR_INVALID_CONTEXT;
  if (--retained) return CUDA_SUCCESS;
  late.clear();
  memory_free_all();
  while (!modules.empty()) unload((Module *)*modules.begin());
  for (void *s : streams) delete (Stream *)s;
  for (void *e : events) delete (Event *)e;
  streams.clear();
  events.clear();
  broken = CUDA_SUCCESS;
  return CUDA_SUCCESS;
}

EMU_API CUresult cuCtxSetCurrent(void *c) {
  FAULT;
  if (!initialised) return CUDA_ERROR_NOT_INITIALIZED;
  if (c && (c < context_objects || c >= context_objects + device_count())) return CUDA_ERROR_INVALID_CONTEXT;
  current = c;
  return CUDA_SUCCESS;
}

EMU_API CUresult cuCtxGetCurrent(void **c) {
  FAULT;
  *c = current;
  return CUDA_SUCCESS;
}

EMU_API CUresult cuCtxSynchronize() {
  FAULT;
  Guard g(emu_lock);
  return synchronise("cuCtxSynchronize", false);
}

// Memory.

EMU_API CUresult cuMemGetInfo_v2(size_t *free, size_t *total) {
  FAULT;
  Guard g(emu_lock);
  if (CUresult e = ready()) return e;
  *total = memory_limit();
  *free = *total > memory_used() ? *total - memory_used() : 0;
  return CUDA_SUCCESS;
}

EMU_API CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t bytes) {
  FAULT;
  Guard g(emu_lock);
  if (CUresult e = ready()) return e;
  if (CUresult e = not_in_capture("cuMemAlloc", true)) return e;
  return memory_alloc(p, bytes);
}

EMU_API CUresult cuMemFree_v2(CUdeviceptr p) {
  FAULT;
  Guard g(emu_lock);
  if (CUresult e = ready()) return e;
  if (CUresult e = not_in_capture("cuMemFree", true)) return e;
  if (CUresult e = flush()) return e;
  CUresult e = memory_free(p);
  if (e == CUDA_ERROR_ILLEGAL_ADDRESS) broken = e;
  return e;
}

EMU_API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, void *stream) {
  FAULT;
  Guard g(emu_lock);
  if (!to && bytes) return CUDA_ERROR_INVALID_VALUE;
  if (put_off() && from && !capturing(stream) && !memory_is_pinned(from, bytes)) {
    // Pageable memory has been read when the call returns.
    if (CUresult e = ready()) return e;
    if (!memory_check(to, bytes, "cuMemcpyHtoDAsync")) return CUDA_ERROR_INVALID_VALUE;
    auto kept = std::make_shared<std::vector<char>>((const char *)from, (const char *)from + bytes);
    return enqueue(stream, OP_MEMCPY, [=]() -> CUresult {
      memcpy((void *)to, kept->data(), bytes);
      return CUDA_SUCCESS;
    });
  }
  return copy(stream, "cuMemcpyHtoDAsync", (void *)to, from, bytes, to, 0);
}

EMU_API CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, void *stream) {
  FAULT;
  Guard g(emu_lock);
  if (!from && bytes) return CUDA_ERROR_INVALID_VALUE;
  CUresult e = copy(stream, "cuMemcpyDtoHAsync", to, (const void *)from, bytes, 0, from);
  // To pageable memory the call returns when the copy is done.
  if (!e && to && !capturing(stream) && !memory_is_pinned(to, bytes)) return flush();
  return e;
}

EMU_API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, void *stream) {
  FAULT;
  Guard g(emu_lock);
  if ((!to || !from) && bytes) return CUDA_ERROR_INVALID_VALUE;
  return copy(stream, "cuMemcpyDtoDAsync", (void *)to, (const void *)from, bytes, to, from);
}

EMU_API CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes) {
  FAULT;
  Guard g(emu_lock);
  if (!to && bytes) return CUDA_ERROR_INVALID_VALUE;
  CUresult e = copy(nullptr, "cuMemcpyHtoD", (void *)to, from, bytes, to, 0);
  return e ? e : flush();
}

EMU_API CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes) {
  FAULT;
  Guard g(emu_lock);
  if (!from && bytes) return CUDA_ERROR_INVALID_VALUE;
  CUresult e = copy(nullptr, "cuMemcpyDtoH", to, (const void *)from, bytes, 0, from);
  return e ? e : flush();
}

EMU_API CUresult cuMemsetD8Async(CUdeviceptr p, unsigned char value, size_t count, void *stream) {
  FAULT;
  Guard g(emu_lock);
  return fill(stream, "cuMemsetD8Async", p, count, value, 1);
}

EMU_API CUresult cuMemsetD32Async(CUdeviceptr p, unsigned value, size_t count, void *stream) {
  FAULT;
  Guard g(emu_lock);
  return fill(stream, "cuMemsetD32Async", p, count, value, 4);
}

// Streams.

EMU_API CUresult cuStreamCreate(void **stream, unsigned flags) {
  FAULT;
  Guard g(emu_lock);
  if (CUresult e = ready()) return e;
  if (flags > 1) return CUDA_ERROR_INVALID_VALUE;
  Stream *s = new Stream;
  s->blocking = !(flags & 1); // CU_STREAM_NON_BLOCKING
  streams.insert(s);
  *stream = s;
  return CUDA_SUCCESS;
}

EMU_API CUresult cuStreamDestroy_v2(void *stream) {
  FAULT;
  Guard g(emu_lock);
  if (!streams.count(stream)) return CUDA_ERROR_INVALID_HANDLE;
  flush();
  streams.erase(stream);
  delete (Stream *)stream;
  return CUDA_SUCCESS;
}

EMU_API CUresult cuStreamSynchronize(void *stream) {
  FAULT;
  Guard g(emu_lock);
  if (!is_stream(stream)) return CUDA_ERROR_INVALID_HANDLE;
  return synchronise("cuStreamSynchronize", !capturing(stream));
}

EMU_API CUresult cuStreamQuery(void *stream) {
  FAULT;
  Guard g(emu_lock);
  if (!is_stream(stream)) return CUDA_ERROR_INVALID_HANDLE;
  if (CUresult e = ready()) return e;
  if (CUresult e = not_in_capture("cuStreamQuery", false)) return e;
  return flush();
}

EMU_API CUresult cuStreamBeginCapture_v2(void *stream, int mode) {
  FAULT;
  Guard g(emu_lock);
  if (CUresult e = ready()) return e;
  if (is_default(stream)) {
    say("cuStreamBeginCapture of the default stream");
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  if (!streams.count(stream)) return CUDA_ERROR_INVALID_HANDLE;
  Stream *s = (Stream *)stream;
  if (s->capture) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (mode < 0 || mode > 2) return CUDA_ERROR_INVALID_VALUE;
  s->capture = new Graph;
  s->invalidated = false;
  s->mode = (CaptureMode)mode;
  s->thread = this_thread();
  return CUDA_SUCCESS;
}

EMU_API CUresult cuStreamEndCapture(void *stream, void **graph) {
  FAULT;
  Guard g(emu_lock);
  if (!streams.count(stream)) return CUDA_ERROR_INVALID_HANDLE;
  Stream *s = (Stream *)stream;
  if (!s->capture) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  if (s->mode != RELAXED && s->thread != this_thread()) return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  Graph *made = s->capture;
  s->capture = nullptr;
  *graph = nullptr;
  if (s->invalidated) {
    delete made;
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  }
  graphs.insert(made);
  *graph = made;
  return broken;
}

EMU_API CUresult cuStreamIsCapturing(void *stream, int *status) {
  FAULT;
  Guard g(emu_lock);
  if (!is_stream(stream)) return CUDA_ERROR_INVALID_HANDLE;
  Stream *s = capturing(stream);
  *status = !s ? 0 : s->invalidated ? 2 : 1;
  return CUDA_SUCCESS;
}

// Graphs.

EMU_API CUresult cuGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long) {
  FAULT;
  Guard g(emu_lock);
  if (!graphs.count(graph)) return CUDA_ERROR_INVALID_VALUE;
  if (broken) return broken;
  Graph *e = new Graph(*(Graph *)graph);
  execs.insert(e);
  *exec = e;
  return CUDA_SUCCESS;
}

EMU_API CUresult cuGraphUpload(void *exec, void *stream) {
  FAULT;
  Guard g(emu_lock);
  if (!execs.count(exec) || !is_stream(stream)) return CUDA_ERROR_INVALID_HANDLE;
  return ready();
}

EMU_API CUresult cuGraphLaunch(void *exec, void *stream) {
  FAULT;
  Guard g(emu_lock);
  if (CUresult e = ready()) return e;
  if (!execs.count(exec)) return CUDA_ERROR_INVALID_VALUE;
  for (auto &op : ((Graph *)exec)->ops)
    if (CUresult e = enqueue(stream, op->type, op->run)) return e == broken ? CUDA_SUCCESS : e;
  return CUDA_SUCCESS;
}

EMU_API CUresult cuGraphGetNodes(void *graph, void **nodes, size_t *count) {
  FAULT;
  Guard g(emu_lock);
  if (!graphs.count(graph) || !count) return CUDA_ERROR_INVALID_VALUE;
  auto &ops = ((Graph *)graph)->ops;
  if (!nodes) {
    *count = ops.size();
    return CUDA_SUCCESS;
  }
  for (size_t i = 0; i < *count; i++) nodes[i] = i < ops.size() ? ops[i].get() : nullptr;
  if (*count > ops.size()) *count = ops.size();
  return CUDA_SUCCESS;
}

EMU_API CUresult cuGraphNodeGetType(void *node, int *type) {
  FAULT;
  *type = ((Op *)node)->type;
  return CUDA_SUCCESS;
}

EMU_API CUresult cuGraphExecDestroy(void *exec) {
  FAULT;
  Guard g(emu_lock);
  if (!execs.count(exec)) return CUDA_ERROR_INVALID_VALUE;
  flush();
  execs.erase(exec);
  delete (Graph *)exec;
  return CUDA_SUCCESS;
}

EMU_API CUresult cuGraphDestroy(void *graph) {
  FAULT;
  Guard g(emu_lock);
  if (!graphs.count(graph)) return CUDA_ERROR_INVALID_VALUE;
  graphs.erase(graph);
  delete (Graph *)graph;
  return CUDA_SUCCESS;
}

// Events.

EMU_API CUresult cuEventCreate(void **event, unsigned flags) {
  FAULT;
  Guard g(emu_lock);
  if (CUresult e = ready()) return e;
  Event *v = new Event;
  v->timing = !(flags & 2); // CU_EVENT_DISABLE_TIMING
  events.insert(v);
  *event = v;
  return CUDA_SUCCESS;
}

// Work is done in the order in which it is enqueued, whatever the stream: nothing is to be waited for.
EMU_API CUresult cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
  FAULT;
  Guard g(emu_lock);
  if (CUresult e = ready()) return e;
  if (!events.count(event) || !is_stream(stream) || flags) return CUDA_ERROR_INVALID_HANDLE;
  if (capturing(stream)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return CUDA_SUCCESS;
}

EMU_API CUresult cuEventRecord(void *event, void *stream) {
  FAULT;
  Guard g(emu_lock);
  if (CUresult e = ready()) return e;
  if (!events.count(event) || !is_stream(stream)) return CUDA_ERROR_INVALID_HANDLE;
  Event *v = (Event *)event;
  v->captured = capturing(stream) != nullptr;
  if (v->captured) return CUDA_SUCCESS;
  return enqueue(stream, OP_HOST, [event]() -> CUresult {
    if (events.count(event)) {
      ((Event *)event)->recorded = true;
      ((Event *)event)->time = std::chrono::steady_clock::now();
    }
    return CUDA_SUCCESS;
  });
}

EMU_API CUresult cuEventSynchronize(void *event) {
  FAULT;
  Guard g(emu_lock);
  if (!events.count(event)) return CUDA_ERROR_INVALID_HANDLE;
  if (((Event *)event)->captured) return CUDA_ERROR_CAPTURED_EVENT;
  return synchronise("cuEventSynchronize", true);
}

EMU_API CUresult cuEventQuery(void *event) { return cuEventSynchronize(event); }

EMU_API CUresult cuEventElapsedTime_v2(float *ms, void *from, void *to) {
  FAULT;
  Guard g(emu_lock);
  if (!events.count(from) || !events.count(to)) return CUDA_ERROR_INVALID_HANDLE;
  Event *a = (Event *)from, *b = (Event *)to;
  if (broken) return broken;
  if (!a->timing || !b->timing) return CUDA_ERROR_INVALID_HANDLE;
  if (!late.empty()) return CUDA_ERROR_NOT_READY;
  if (!a->recorded || !b->recorded) return CUDA_ERROR_INVALID_HANDLE;
  *ms = std::chrono::duration<float, std::milli>(b->time - a->time).count();
  return CUDA_SUCCESS;
}

EMU_API CUresult cuEventElapsedTime(float *ms, void *from, void *to) { return cuEventElapsedTime_v2(ms, from, to); }

EMU_API CUresult cuEventDestroy_v2(void *event) {
  FAULT;
  Guard g(emu_lock);
  if (!events.count(event)) return CUDA_ERROR_INVALID_HANDLE;
  events.erase(event);
  delete (Event *)event;
  return CUDA_SUCCESS;
}

// Modules. An image is "CUDAEMU" and a version, its length, and a shared object (nvrtc.cpp writes it).

EMU_API CUresult cuModuleLoadData(void **module, const void *image) {
  FAULT;
  Guard g(emu_lock);
  if (CUresult e = ready()) return e;
  if (CUresult e = not_in_capture("cuModuleLoadData", true)) return e;
  if (!image || memcmp(image, "CUDAEMU", 7)) {
    say("cuModuleLoadData: this is not an image of the emulator but perhaps one for a real device");
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  uint64_t bytes;
  memcpy(&bytes, (const char *)image + 8, 8);
  if (((const char *)image)[7] != '0' + EMU_INTERFACE || bytes > (1u << 30)) {
    say("cuModuleLoadData: this image was made by another version of the emulator");
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  int file = memfd_create("cudaemu-module", MFD_CLOEXEC);
  const char *p = (const char *)image + 16;
  for (size_t done = 0; done < bytes;) {
    ssize_t n = write(file, p + done, bytes - done);
    if (n <= 0) {
      say("cuModuleLoadData: cannot write the image to memory");
      close(file);
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    done += n;
  }
  void *library = dlopen(module_path(file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    say("cuModuleLoadData: %s", dlerror());
    close(file);
    return CUDA_ERROR_INVALID_IMAGE;
  }
  Module *m = new Module{};
  m->library = library;
  m->file = file;
  m->thread = (Dim3 *)dlsym(library, "threadIdx");
  m->block = (Dim3 *)dlsym(library, "blockIdx");
  m->block_dim = (Dim3 *)dlsym(library, "blockDim");
  m->grid_dim = (Dim3 *)dlsym(library, "gridDim");
  m->touch_shared = (void *(*)())dlsym(library, "emu_touch_shared");
  *(EmuHost **)dlsym(library, "emu_host") = &emu_host_table;
  // The size of its __shared__ variables is that of its segment of thread-local ones.
  struct link_map *map = nullptr;
  dlinfo(library, RTLD_DI_LINKMAP, &map);
  struct Search { uintptr_t base; size_t bytes; } search = {map ? map->l_addr : 0, 0};
  dl_iterate_phdr(
      [](struct dl_phdr_info *info, size_t, void *data) {
        Search *s = (Search *)data;
        if (info->dlpi_addr != s->base) return 0;
        for (int i = 0; i < info->dlpi_phnum; i++)
          if (info->dlpi_phdr[i].p_type == PT_TLS) s->bytes = info->dlpi_phdr[i].p_memsz;
        return 1;
      },
      &search);
  m->shared_bytes = search.bytes;
  modules.insert(m);
  *module = m;
  return CUDA_SUCCESS;
}

EMU_API CUresult cuModuleUnload(void *module) {
  FAULT;
  Guard g(emu_lock);
  if (!modules.count(module)) return CUDA_ERROR_INVALID_HANDLE;
  flush();
  unload((Module *)module);
  return CUDA_SUCCESS;
}

EMU_API CUresult cuModuleGetFunction(void **function, void *module, const char *name) {
  FAULT;
  Guard g(emu_lock);
  if (!modules.count(module)) return CUDA_ERROR_INVALID_HANDLE;
  Module *m = (Module *)module;
  Kernel *&k = m->kernels[name];
  if (!k) {
    std::string n = name;
    auto launch = (void (*)(void **))dlsym(m->library, ("emu_launch_" + n).c_str());
    auto sizes = (int (*)(unsigned *))dlsym(m->library, ("emu_sizes_" + n).c_str());
    auto bounds = (int (*)())dlsym(m->library, ("emu_bounds_" + n).c_str());
    if (!launch || !sizes || !bounds) {
      say("cuModuleGetFunction: the module has no kernel %s", name);
      m->kernels.erase(name);
      return CUDA_ERROR_NOT_FOUND;
    }
    k = new Kernel;
    k->name = n;
    k->launch = launch;
    unsigned of[256];
    int count = sizes(of);
    for (int i = 0; i < count; i++) {
      k->sizes.push_back(of[i] & 0x7fffffffu);
      k->pointers.push_back(of[i] >> 31);
    }
    k->max_threads = bounds();
    k->module = m;
    functions.insert(k);
  }
  *function = k;
  return CUDA_SUCCESS;
}

EMU_API CUresult cuFuncSetAttribute(void *function, int attribute, int value) {
  FAULT;
  Guard g(emu_lock);
  if (!functions.count(function)) return CUDA_ERROR_INVALID_HANDLE;
  Kernel *k = (Kernel *)function;
  if (attribute == 9) return CUDA_SUCCESS; // PREFERRED_SHARED_MEMORY_CARVEOUT
  if (attribute != 8 || value < 0 || value > 227 << 10) return CUDA_ERROR_INVALID_VALUE;
  k->dynamic_limit = value;
  return CUDA_SUCCESS;
}

EMU_API CUresult cuFuncGetAttribute(int *value, int attribute, void *function) {
  FAULT;
  Guard g(emu_lock);
  if (!functions.count(function)) return CUDA_ERROR_INVALID_HANDLE;
  Kernel *k = (Kernel *)function;
  switch (attribute) {
  case 0: *value = k->max_threads; break;   // MAX_THREADS_PER_BLOCK
  case 1: *value = 0; break;                // SHARED_SIZE_BYTES: not known for one kernel
  case 2: case 3: case 7: *value = 0; break; // CONST_SIZE, LOCAL_SIZE, CACHE_MODE_CA
  case 4: *value = 32; break;               // NUM_REGS
  case 5: case 6: *value = 90; break;       // PTX_VERSION, BINARY_VERSION
  case 8: *value = k->dynamic_limit; break; // MAX_DYNAMIC_SHARED_SIZE_BYTES
  default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

EMU_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function, int threads, size_t dynamic) {
  FAULT;
  Guard g(emu_lock);
  if (!functions.count(function) || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
  size_t by_shared = (227 << 10) / (dynamic + 1024);
  size_t n = 2048 / threads;
  if (by_shared < n) n = by_shared;
  *blocks = n < 32 ? (int)n : 32;
  return CUDA_SUCCESS;
}

EMU_API CUresult cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                unsigned dynamic, void *stream, void **params, void **extra) {
  FAULT;
  Guard g(emu_lock);
  if (CUresult e = ready()) return e;
  if (!functions.count(function)) return CUDA_ERROR_INVALID_HANDLE;
  Kernel *k = (Kernel *)function;
  const char *name = k->name.c_str();
  if (extra) {
    say("launch of %s: only kernelParams are supported, not extra", name);
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  if (!gx || !gy || !gz || gx > 0x7fffffffu || gy > 65535 || gz > 65535) {
    say("launch of %s: the grid (%u, %u, %u) is not allowed", name, gx, gy, gz);
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!bx || !by || !bz || bx > 1024 || by > 1024 || bz > 64 || (uint64_t)bx * by * bz > 1024) {
    say("launch of %s: the block (%u, %u, %u) is not allowed", name, bx, by, bz);
    return CUDA_ERROR_INVALID_VALUE;
  }
  if ((int)(bx * by * bz) > k->max_threads) {
    say("launch of %s: %u threads in a block, but __launch_bounds__ says %d", name, bx * by * bz, k->max_threads);
    return CUDA_ERROR_INVALID_VALUE;
  }
  if ((int)dynamic > k->dynamic_limit) {
    say("launch of %s: %u bytes of dynamic shared memory, allowed are %d (cuFuncSetAttribute can raise them)", name, dynamic,
        k->dynamic_limit);
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!k->sizes.empty() && !params) {
    say("launch of %s: no parameters given, it takes %zu", name, k->sizes.size());
    return CUDA_ERROR_INVALID_VALUE;
  }
  // Copies of the parameters: the caller's may change before a graph is launched.
  auto values = std::make_shared<std::vector<std::vector<char>>>();
  for (size_t i = 0; i < k->sizes.size(); i++) {
    if (!params[i]) {
      say("launch of %s: parameter %zu is missing", name, i);
      return CUDA_ERROR_INVALID_VALUE;
    }
    values->emplace_back((char *)params[i], (char *)params[i] + k->sizes[i]);
  }
  Dim3 grid = {gx, gy, gz}, block = {bx, by, bz};
  return enqueue(stream, OP_KERNEL, [=]() -> CUresult {
    if (!functions.count(k)) {
      say("a kernel of an unloaded module is launched");
      return CUDA_ERROR_INVALID_HANDLE;
    }
    std::vector<void *> pointers;
    for (auto &v : *values) {
      if (k->pointers[pointers.size()] && !memory_is_reachable(*(CUdeviceptr *)v.data())) {
        CUdeviceptr p = *(CUdeviceptr *)v.data();
        say("kernel %s: parameter %zu is the address %#llx; %s", k->name.c_str(), pointers.size(), (unsigned long long)p,
            memory_near(p).c_str());
        return CUDA_ERROR_ILLEGAL_ADDRESS;
      }
      pointers.push_back(v.data());
    }
    if (int e = fault("kernel")) return (CUresult)e;
    return run_kernel(*k, grid, block, dynamic, pointers.data());
  });
}
