// What the files of the emulator share: error codes, memory, streams, and the runner of kernels.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#define EMU_API extern "C" __attribute__((visibility("default")))

// Values of cuda.h (CUDA 13), enum cudaError_enum.
enum CUresult {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_INITIALIZED = 3,
  CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_INVALID_IMAGE = 200,
  CUDA_ERROR_INVALID_CONTEXT = 201,
  CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
  CUDA_ERROR_INVALID_HANDLE = 400,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_NOT_READY = 600,
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
  CUDA_ERROR_ASSERT = 710,
  CUDA_ERROR_ILLEGAL_INSTRUCTION = 715,
  CUDA_ERROR_MISALIGNED_ADDRESS = 716,
  CUDA_ERROR_LAUNCH_FAILED = 719,
  CUDA_ERROR_NOT_SUPPORTED = 801,
  CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
  CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
  CUDA_ERROR_STREAM_CAPTURE_UNMATCHED = 903,
  CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
  CUDA_ERROR_CAPTURED_EVENT = 907,
  CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD = 908,
  CUDA_ERROR_UNKNOWN = 999,
};

typedef uint64_t CUdeviceptr;
struct Dim3 { unsigned x, y, z; };

// One lock for all of the emulator: calls come from any thread.
extern std::recursive_mutex emu_lock;
typedef std::lock_guard<std::recursive_mutex> Guard;

// A line on stderr, "cudaemu: ...".
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Failures on demand (fault.cpp): the status that a call of a function shall answer with, 0: it does its work.
int fault(const char *name);
struct Answer { // a status of whichever library
  int value;
  operator int() const { return value; }
  operator CUresult() const { return (CUresult)value; }
};
#define FAULT \
  if (int status = fault(__func__)) return Answer{status}
// Leaves the context broken (driver.cpp).
void break_context(int status);

// Memory (memory.cpp).
CUresult memory_alloc(CUdeviceptr *p, size_t bytes);
CUresult memory_free(CUdeviceptr p);
void memory_free_all();
size_t memory_limit();
size_t memory_used();
// Whether [p, p+bytes) lies in one allocation; says why not, naming `what`.
bool memory_check(CUdeviceptr p, size_t bytes, const char *what);
// Whether all poisoned bytes around allocations are whole.
bool memory_whole();
// A sentence on the allocation nearest to an address, for messages.
std::string memory_near(uintptr_t address);
bool memory_is_pinned(const void *p, size_t bytes);
// Whether a kernel may be given this address: null, in or at the end of an allocation, or pinned memory of the host.
bool memory_is_reachable(CUdeviceptr p);

// Streams (driver.cpp). Types of operations are those of CUgraphNodeType.
enum OpType { OP_KERNEL = 0, OP_MEMCPY = 1, OP_MEMSET = 2, OP_HOST = 3 };
// Runs the operation, keeps it for later, or records it in the stream's capture. An error while it runs breaks the context.
CUresult enqueue(void *stream, OpType type, std::function<CUresult()> run);
// What every call that may enqueue asks first: initialised, context current, not broken.
CUresult ready();

// Kernels (runner.cpp).
struct Kernel {
  std::string name;
  void (*launch)(void **params);
  std::vector<unsigned> sizes;    // of the parameters
  std::vector<bool> pointers;     // which of them are pointers
  int max_threads;                // of __launch_bounds__, or 1024
  int dynamic_limit = 48 << 10;   // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
  struct Module *module;
};
struct Module {
  void *library;
  int file; // memfd of the shared object
  Dim3 *thread, *block, *block_dim, *grid_dim;
  void *(*touch_shared)();
  size_t shared_bytes; // of all __shared__ variables of the module
  std::map<std::string, Kernel *> kernels;
};
extern struct EmuHost emu_host_table;
CUresult run_kernel(const Kernel &k, Dim3 grid, Dim3 block, unsigned dynamic, void **params);
constexpr int EMU_INTERFACE = 1;
