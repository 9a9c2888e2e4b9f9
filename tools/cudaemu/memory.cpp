// Device memory: host memory between pages that no one may touch, filled with NaN.
//
// An allocation ends, rounded up to CUDA's alignment of 256 bytes, where an inaccessible zone begins: a kernel that reads
// or writes beyond it faults at once. The bytes that rounding leaves on both sides are poisoned and compared later.
#include "state.h"

#include <cstdlib>
#include <cstring>
#include <cstdio>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MFD_CLOEXEC
#define MFD_CLOEXEC 1u
#endif

namespace {
constexpr size_t page = 4096, zone = 16 << 20, alignment = 256, pattern = 16 << 20;
constexpr unsigned char poison = 0xa5;

struct Allocation {
  size_t size;
  unsigned char *map; // with the zones
  size_t inner;       // bytes between the zones
};
std::map<uintptr_t, Allocation> allocations;
std::map<uintptr_t, size_t> pinned;
size_t used;

size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

// Fills with 0xff: large ranges by private mappings of one file of that pattern, so that only touched pages take memory.
bool fill(unsigned char *p, size_t bytes) {
  static int file = -1;
  if (bytes >= pattern && file < 0) {
    int f = memfd_create("cudaemu-pattern", MFD_CLOEXEC);
    std::vector<unsigned char> ones(pattern, 0xff);
    if (f >= 0 && write(f, ones.data(), pattern) == (ssize_t)pattern) file = f;
  }
  while (file >= 0 && bytes >= pattern) {
    if (mmap(p, pattern, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, file, 0) == MAP_FAILED)
      return false;
    p += pattern;
    bytes -= pattern;
  }
  memset(p, 0xff, bytes);
  return true;
}

// Whether bytes are poison; by memcmp, since all allocations are looked at after each wait.
bool poisoned(const unsigned char *p, const unsigned char *end) {
  static const std::string all(page, (char)poison);
  for (; p < end; p += page)
    if (memcmp(p, all.data(), std::min<size_t>(end - p, page))) return false;
  return true;
}

bool whole(uintptr_t base, const Allocation &a) {
  const unsigned char *begin = a.map + zone, *end = begin + a.inner, *p = (const unsigned char *)base;
  if (poisoned(begin, p) && poisoned(p + a.size, end)) return true;
  for (const unsigned char *q = begin; q < p; q++)
    if (*q != poison) {
      say("a kernel wrote %zu bytes before the begin of a device allocation of %zu bytes at %p", size_t(p - q), a.size, p);
      return false;
    }
  for (const unsigned char *q = p + a.size; q < end; q++)
    if (*q != poison) {
      say("a kernel wrote beyond the end of a device allocation of %zu bytes at %p: byte %zu", a.size, p, size_t(q - p));
      return false;
    }
  return true;
}
} // namespace

size_t memory_limit() {
  const char *s = getenv("CUDAEMU_MEMORY");
  size_t n = s ? strtoull(s, nullptr, 0) : 0;
  return n ? n : (size_t)4 << 30;
}

size_t memory_used() { return used; }

CUresult memory_alloc(CUdeviceptr *out, size_t bytes) {
  if (!out || !bytes) return CUDA_ERROR_INVALID_VALUE;
  size_t limit = memory_limit(), rounded = round_up(bytes, alignment), inner = round_up(rounded, page);
  if (bytes > limit || used + rounded > limit) return CUDA_ERROR_OUT_OF_MEMORY;
  void *m = mmap(nullptr, inner + 2 * zone, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (m == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  unsigned char *begin = (unsigned char *)m + zone, *base = begin + inner - rounded;
  if (mprotect(begin, inner, PROT_READ | PROT_WRITE) || !fill(begin, inner)) {
    munmap(m, inner + 2 * zone);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  memset(begin, poison, base - begin);
  memset(base + bytes, poison, rounded - bytes);
  allocations[(uintptr_t)base] = {bytes, (unsigned char *)m, inner};
  used += rounded;
  *out = (CUdeviceptr)base;
  return CUDA_SUCCESS;
}

CUresult memory_free(CUdeviceptr p) {
  if (!p) return CUDA_SUCCESS;
  auto it = allocations.find(p);
  if (it == allocations.end()) {
    say("cuMemFree of %#llx, which is not the begin of a device allocation", (unsigned long long)p);
    return CUDA_ERROR_INVALID_VALUE;
  }
  Allocation a = it->second;
  bool ok = whole(it->first, a);
  allocations.erase(it);
  used -= round_up(a.size, alignment);
  munmap(a.map, a.inner + 2 * zone);
  return ok ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS;
}

void memory_free_all() {
  while (!allocations.empty()) memory_free(allocations.begin()->first);
}

bool memory_whole() {
  bool ok = true;
  for (auto &a : allocations) ok = whole(a.first, a.second) && ok;
  return ok;
}

bool memory_check(CUdeviceptr p, size_t bytes, const char *what) {
  if (!bytes) return true;
  auto it = allocations.upper_bound(p);
  if (it != allocations.begin()) {
    --it;
    size_t offset = p - it->first;
    if (offset < it->second.size) {
      if (bytes <= it->second.size - offset) return true;
      say("%s: %zu bytes at %zu of a device allocation of %zu bytes go beyond its end", what, bytes, offset, it->second.size);
      return false;
    }
  }
  say("%s: %#llx (%zu bytes) is not in device memory; %s", what, (unsigned long long)p, bytes, memory_near(p).c_str());
  return false;
}

std::string memory_near(uintptr_t address) {
  char text[160];
  auto it = allocations.upper_bound(address);
  if (it != allocations.begin()) {
    auto before = std::prev(it);
    size_t beyond = address - before->first - before->second.size;
    if (address - before->first < before->second.size) {
      snprintf(text, sizeof text, "it is byte %zu of a device allocation of %zu bytes", size_t(address - before->first),
               before->second.size);
      return text;
    }
    if (beyond < zone) {
      snprintf(text, sizeof text, "it is %zu bytes beyond the end of a device allocation of %zu bytes", beyond,
               before->second.size);
      return text;
    }
  }
  if (it != allocations.end() && it->first - address < zone) {
    snprintf(text, sizeof text, "it is %zu bytes before a device allocation of %zu bytes", size_t(it->first - address),
             it->second.size);
    return text;
  }
  return "no device allocation is near (never allocated, freed, or memory of the host)";
}

bool memory_is_pinned(const void *p, size_t bytes) {
  auto it = pinned.upper_bound((uintptr_t)p);
  if (it == pinned.begin()) return false;
  --it;
  return (uintptr_t)p + bytes <= it->first + it->second;
}

bool memory_is_reachable(CUdeviceptr p) {
  if (!p || memory_is_pinned((const void *)p, 1)) return true;
  auto it = allocations.upper_bound(p);
  if (it == allocations.begin()) return false;
  --it;
  return p - it->first <= it->second.size;
}

EMU_API CUresult cuMemHostAlloc(void **p, size_t bytes, unsigned flags) {
  FAULT;
  Guard g(emu_lock);
  if (CUresult e = ready()) return e;
  if (!p || !bytes || flags & ~7u) return CUDA_ERROR_INVALID_VALUE;
  void *m = aligned_alloc(page, round_up(bytes, page));
  if (!m) return CUDA_ERROR_OUT_OF_MEMORY;
  memset(m, 0xff, bytes);
  pinned[(uintptr_t)m] = bytes;
  *p = m;
  return CUDA_SUCCESS;
}

EMU_API CUresult cuMemFreeHost(void *p) {
  FAULT;
  Guard g(emu_lock);
  if (!pinned.erase((uintptr_t)p)) return CUDA_ERROR_INVALID_VALUE;
  free(p);
  return CUDA_SUCCESS;
}

// Memory of the caller's becomes pinned; no page may be so twice.
EMU_API CUresult cuMemHostRegister_v2(void *p, size_t bytes, unsigned flags) {
  FAULT;
  Guard g(emu_lock);
  if (CUresult e = ready()) return e;
  if (!p || !bytes || flags & ~15u) return CUDA_ERROR_INVALID_VALUE;
  uintptr_t lo = (uintptr_t)p / page * page, hi = ((uintptr_t)p + bytes + page - 1) / page * page;
  for (auto &x : pinned)
    if (x.first / page * page < hi && lo < x.first + x.second) return CUresult(712); // CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
  pinned[(uintptr_t)p] = bytes;
  return CUDA_SUCCESS;
}

EMU_API CUresult cuMemHostUnregister(void *p) {
  FAULT;
  Guard g(emu_lock);
  if (!pinned.erase((uintptr_t)p)) return CUresult(713); // CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED
  return CUDA_SUCCESS;
}
