// Runs a kernel: its blocks one after another on the calling thread, the threads of a block as fibers.
//
// A fiber runs until it waits (a barrier of the block, a collective of a warp) or returns; then the next one that can run
// goes on. After a collective of a warp its lanes come first: 32 stacks fit into the first cache. A thread that returns
// gives its stack to the next new one, so a kernel without barriers needs one stack.
// CUDAEMU_ORDER=reverse or random:SEED changes the order of blocks, and of threads after every barrier and collective.
// A fault (memory, alignment, array bounds) ends the kernel with a message that names kernel, block, thread and source line.
#include "state.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

// The kernels' side is in emu.h.
typedef void (*EmuCombine)(void **lanes, unsigned mask);
struct EmuHost {
  void (*collective)(unsigned mask, void *operand, EmuCombine combine, const char *what);
  int (*barrier)(int kind, int predicate);
  void (*fail)(int code, const char *text);
  unsigned (*active)();
  unsigned (*lane)();
  void *(*dynamic_shared)();
  void (*copy_async)(void *shared, const void *global, int valid);
  void (*copy_commit)();
  void (*copy_wait)(int groups);
  void (*yield)();
};

namespace {

// Switching stacks: saves the registers that a call keeps and goes on where `to` was saved.
#if defined(__x86_64__)
typedef void *Context;
extern "C" void cudaemu_switch(Context *from, Context to) __attribute__((visibility("hidden")));
__asm__(".text\n"
        ".hidden cudaemu_switch\n"
        ".globl cudaemu_switch\n"
        ".type cudaemu_switch,@function\n"
        "cudaemu_switch:\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
        "  ret\n"
        ".size cudaemu_switch,.-cudaemu_switch\n");
void switch_to(Context *from, Context *to) { cudaemu_switch(from, *to); }
void new_context(Context *c, unsigned char *top, void (*entry)()) {
  uintptr_t *sp = (uintptr_t *)((uintptr_t)top & ~(uintptr_t)15);
  *--sp = 0;                // no one to return to; keeps the alignment that a call leaves
  *--sp = (uintptr_t)entry; // where cudaemu_switch returns to
  for (int i = 0; i < 6; i++) *--sp = 0;
  *c = sp;
}
#else
typedef ucontext_t Context;
void switch_to(Context *from, Context *to) { swapcontext(from, to); }
void new_context(Context *c, unsigned char *top, void (*entry)()) {
  getcontext(c);
  c->uc_stack.ss_sp = top - (64 << 10);
  c->uc_stack.ss_size = 64 << 10;
  c->uc_link = nullptr;
  makecontext(c, entry, 0);
}
#endif

constexpr int max_threads = 1024;
// Stacks of 256 KiB and a page that no one may touch below each. Their tops are staggered: else all fibers would use the
// same sets of the caches.
constexpr size_t page = 4096, stack_bytes = (256 << 10) + page;
unsigned char *stacks;
std::vector<int> free_stacks;

enum State { NEW, READY, AT_BARRIER, AT_COLLECTIVE, DONE };
struct Copy { void *to; const void *from; };
struct Fiber {
  Context context;
  Dim3 index;
  State state;
  int stack;
  unsigned mask;
  EmuCombine combine;
  const char *what;
  void *operand;
  std::vector<Copy> copies;     // of cp.async, not yet done
  std::vector<size_t> commits;  // ends of committed groups in copies
};
struct Warp { unsigned alive, waiting; };

Fiber fibers[max_threads];
Warp warps[max_threads / 32];
uint16_t ring[max_threads];
unsigned head, tail; // of the ring of fibers that can run
int threads, alive, current;
int at_barrier, barrier_sum, barrier_result;
Context main_context;

// Of the running kernel.
const Kernel *kernel;
void **kernel_params;
Dim3 block_index;
unsigned char *dynamic_begin;
unsigned char *static_begin; // of its module's __shared__ variables
size_t dynamic_bytes;
CUresult failure;
volatile pid_t running_thread; // the thread of the OS that runs a kernel

enum Order { FORWARD, REVERSE, RANDOM } order;
uint64_t random_state;
uint32_t random_next() {
  random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
  return random_state >> 33;
}
void arrange(uint16_t *list, int n) {
  if (order == REVERSE) std::reverse(list, list + n);
  if (order == RANDOM)
    for (int i = n - 1; i > 0; i--) std::swap(list[i], list[random_next() % (i + 1)]);
}
void set_order() {
  const char *s = getenv("CUDAEMU_ORDER");
  order = FORWARD;
  if (s && !strcmp(s, "reverse")) order = REVERSE;
  if (s && !strncmp(s, "random", 6)) {
    order = RANDOM;
    static uint64_t launches;
    random_state = (s[6] == ':' ? strtoull(s + 7, nullptr, 0) : 1) * 0x9e3779b97f4a7c15ull + launches++;
  }
}

// Puts fibers at the end of the ring, or at its begin.
void make_ready(uint16_t *list, int n, bool first = false) {
  arrange(list, n);
  if (first) head -= n;
  for (int i = 0; i < n; i++) {
    if (fibers[list[i]].state != NEW) fibers[list[i]].state = READY;
    ring[(first ? head + i : tail++) % max_threads] = list[i];
  }
}

std::string place() {
  char text[300];
  Dim3 t = fibers[current].index;
  snprintf(text, sizeof text, "kernel %s, block (%u, %u, %u), thread (%u, %u, %u)", kernel->name.c_str(), block_index.x,
           block_index.y, block_index.z, t.x, t.y, t.z);
  return text;
}

[[noreturn]] void abandon(CUresult code) {
  failure = code;
  Context lost;
  switch_to(&lost, &main_context);
  abort();
}

void host_fail(int code, const char *text) {
  say("%s: %s", place().c_str(), text);
  abandon((CUresult)code);
}

// Source line of an address in a kernel, where addr2line is installed.
std::string source_line(uintptr_t pc) {
  Dl_info at, own;
  if (!dladdr((void *)pc, &at) || !dladdr((void *)kernel->launch, &own) || at.dli_fbase != own.dli_fbase) return "";
  char line[512];
  char command[200];
  snprintf(command, sizeof command, "addr2line -s -e /proc/%d/fd/%d %#lx 2>/dev/null", getpid(), kernel->module->file,
           (unsigned long)(pc - (uintptr_t)at.dli_fbase));
  std::string text;
  if (FILE *p = popen(command, "r")) {
    if (fgets(line, sizeof line, p)) text = line;
    pclose(p);
  }
  text.erase(text.find_last_not_of("\n") + 1);
  size_t note = text.find(" (");
  if (note != std::string::npos) text.erase(note);
  return text.empty() || text[0] == '?' ? "" : " at " + text;
}

// Faults. The handler lets the thread go on in landed(), on the fiber's stack, where messages and switching are allowed.
int fault_signal;
uintptr_t fault_address, fault_pc;
struct sigaction old_actions[32];

[[noreturn]] void landed() {
  std::string line = source_line(fault_pc);
  uintptr_t low = (uintptr_t)stacks, high = low + max_threads * stack_bytes;
  if (fault_signal == SIGILL) {
    say("%s: a misaligned address or an index beyond an array%s", place().c_str(), line.c_str());
    abandon(CUDA_ERROR_MISALIGNED_ADDRESS);
  }
  if (fault_signal == SIGFPE) {
    say("%s: an integer division by zero%s", place().c_str(), line.c_str());
    abandon(CUDA_ERROR_LAUNCH_FAILED);
  }
  if (fault_address >= low && fault_address < high) {
    say("%s: its stack is full%s", place().c_str(), line.c_str());
    abandon(CUDA_ERROR_LAUNCH_FAILED);
  }
  if (dynamic_begin && fault_address - (uintptr_t)dynamic_begin < (512 << 10)) {
    say("%s: access to byte %zu of dynamic shared memory, beyond its end%s", place().c_str(),
        (size_t)(fault_address - (uintptr_t)dynamic_begin), line.c_str());
    abandon(CUDA_ERROR_ILLEGAL_ADDRESS);
  }
  // x86 reports no address for one that is not canonical or for a misaligned vector.
  if (!fault_address)
    say("%s: access to a null, misaligned or undefined pointer%s", place().c_str(), line.c_str());
  else
    say("%s: access to %#lx%s; %s", place().c_str(), (unsigned long)fault_address, line.c_str(),
        memory_near(fault_address).c_str());
  abandon(CUDA_ERROR_ILLEGAL_ADDRESS);
}

void on_fault(int signal, siginfo_t *info, void *context) {
#if defined(__x86_64__)
  if (running_thread && running_thread == (pid_t)syscall(SYS_gettid)) {
    ucontext_t *u = (ucontext_t *)context;
    fault_signal = signal;
    fault_address = (uintptr_t)info->si_addr;
    fault_pc = u->uc_mcontext.gregs[REG_RIP];
    uintptr_t sp = u->uc_mcontext.gregs[REG_RSP] - 256, low = (uintptr_t)stacks;
    // A full stack: land on the upper end of the same stack, whose frames are lost anyway.
    if (fault_address >= low && fault_address < low + max_threads * stack_bytes && sp >= low)
      sp = low + (fault_address - low) / stack_bytes * stack_bytes + stack_bytes - 64;
    u->uc_mcontext.gregs[REG_RSP] = (sp & ~(uintptr_t)15) - 8;
    u->uc_mcontext.gregs[REG_RIP] = (uintptr_t)landed;
    return;
  }
#endif
  struct sigaction &old = old_actions[signal];
  if (old.sa_flags & SA_SIGINFO) return old.sa_sigaction(signal, info, context);
  if (old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN) return old.sa_handler(signal);
  sigaction(signal, &old, nullptr); // it happens again and then does what it would have done
}

void catch_faults() {
  for (int s : {SIGSEGV, SIGBUS, SIGILL, SIGFPE}) {
    struct sigaction now;
    sigaction(s, nullptr, &now);
    if (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_fault) continue;
    old_actions[s] = now;
    struct sigaction mine = {};
    mine.sa_sigaction = on_fault;
    mine.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    mine.sa_mask = now.sa_mask;
    sigaction(s, &mine, nullptr);
  }
}

void deadlock() {
  int n = 0;
  for (int i = 0; i < threads; i++)
    if (fibers[i].state == AT_BARRIER || fibers[i].state == AT_COLLECTIVE) {
      if (n++ < 4) {
        current = i;
        const Fiber &f = fibers[i];
        if (f.state == AT_BARRIER)
          say("%s waits in __syncthreads", place().c_str());
        else
          say("%s waits in %s, mask %#x, of which lanes %#x have come", place().c_str(), f.what, f.mask,
              warps[i / 32].waiting & f.mask);
      }
    }
  say("deadlock of kernel %s: none of its %d threads can go on, %d wait for each other", kernel->name.c_str(), threads, n);
  abandon(CUDA_ERROR_LAUNCH_FAILED);
}

void entry();

void set_current(int next) {
  current = next;
  *kernel->module->thread = fibers[next].index;
}

// The running fiber waits: the next one that can run goes on.
void wait_here() {
  if (head == tail) deadlock();
  int self = current, next = ring[head++ % max_threads];
  set_current(next);
  if (next == self) return;
  Fiber &f = fibers[next];
  if (f.state == NEW) {
    f.stack = free_stacks.back();
    free_stacks.pop_back();
    new_context(&f.context, stacks + (size_t)(f.stack + 1) * stack_bytes - f.stack * 320 % page, entry);
  }
  f.state = READY;
  switch_to(&fibers[self].context, &f.context);
}

// Completes the collective of the warp's lanes that wait with this mask, if all of them have come.
bool complete(int w, unsigned mask, bool with_current) {
  Warp &warp = warps[w];
  unsigned need = mask & warp.alive;
  if ((warp.waiting & need) != need || !need) return false;
  Fiber *lanes = fibers + w * 32;
  const Fiber &first = lanes[__builtin_ctz(need)];
  void *operands[32];
  for (int i = 0; i < 32; i++)
    if (need >> i & 1) {
      if (lanes[i].mask != mask) return false;
      if (lanes[i].combine != first.combine) {
        say("%s: lanes of one warp are at different collectives: %s and %s", place().c_str(), first.what, lanes[i].what);
        abandon(CUDA_ERROR_LAUNCH_FAILED);
      }
      operands[i] = lanes[i].operand;
    }
  first.combine(operands, need);
  warp.waiting &= ~need;
  uint16_t list[32];
  int n = 0;
  for (int i = 0; i < 32; i++)
    if (need >> i & 1 && (w * 32 + i != current || with_current)) list[n++] = w * 32 + i;
  make_ready(list, n, order != RANDOM);
  return true;
}

void release_barrier() {
  uint16_t list[max_threads];
  int n = 0;
  for (int i = 0; i < threads; i++)
    if (fibers[i].state == AT_BARRIER) list[n++] = i;
  barrier_result = barrier_sum;
  at_barrier = barrier_sum = 0;
  make_ready(list, n);
}

int host_barrier(int kind, int predicate) {
  Fiber &f = fibers[current];
  f.state = AT_BARRIER;
  at_barrier++;
  // Sum of the predicates in the lower half, of their negations in the upper half.
  barrier_sum += predicate ? 1 : 1 << 16;
  if (at_barrier == alive) release_barrier();
  wait_here();
  f.state = READY;
  int ones = barrier_result & 0xffff, zeros = barrier_result >> 16;
  return kind == 1 ? ones != 0 : kind == 2 ? zeros == 0 : kind == 3 ? ones : 0;
}

void host_collective(unsigned mask, void *operand, EmuCombine combine, const char *what) {
  int w = current / 32, lane = current % 32;
  Fiber &f = fibers[current];
  if (!(mask >> lane & 1)) {
    say("%s: %s with the mask %#x, in which its own lane %d is missing", place().c_str(), what, mask, lane);
    abandon(CUDA_ERROR_LAUNCH_FAILED);
  }
  f.mask = mask;
  f.operand = operand;
  f.combine = combine;
  f.what = what;
  f.state = AT_COLLECTIVE;
  warps[w].waiting |= 1u << lane;
  complete(w, mask, true);
  wait_here();
  f.state = READY;
}

void host_yield() {
  uint16_t self = current;
  make_ready(&self, 1);
  wait_here();
}

void do_copies(Fiber &f, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (f.copies[i].from)
      memcpy(f.copies[i].to, f.copies[i].from, 16);
    else
      memset(f.copies[i].to, 0, 16);
  f.copies.erase(f.copies.begin(), f.copies.begin() + n);
}

void host_copy_async(void *shared, const void *global, int valid) {
  if ((uintptr_t)shared % 16 || (valid && (uintptr_t)global % 16))
    host_fail(CUDA_ERROR_MISALIGNED_ADDRESS, "cp_async_16: an address is not a multiple of 16");
  uintptr_t p = (uintptr_t)shared;
  if (p - (uintptr_t)static_begin >= kernel->module->shared_bytes && p - (uintptr_t)dynamic_begin >= dynamic_bytes)
    host_fail(CUDA_ERROR_ILLEGAL_ADDRESS, "cp_async_16: the address to copy to is not in shared memory");
  if (valid) { // a fault is found here, where the source line is the right one
    volatile char touch = *(const volatile char *)global;
    (void)touch;
  }
  fibers[current].copies.push_back({shared, valid ? global : nullptr});
}

void host_copy_commit() { fibers[current].commits.push_back(fibers[current].copies.size()); }

void host_copy_wait(int groups) {
  Fiber &f = fibers[current];
  size_t n = f.commits.size();
  if (n <= (size_t)groups) return;
  size_t done = f.commits[n - groups - 1];
  do_copies(f, done);
  f.commits.erase(f.commits.begin(), f.commits.begin() + (n - groups));
  for (size_t &c : f.commits) c -= done;
}

unsigned host_active() { return warps[current / 32].alive; }
unsigned host_lane() { return current % 32; }
void *host_dynamic_shared() { return dynamic_begin; }

// The life of a stack: runs its thread, then new threads while the next in turn is new, else goes on with a waiting one.
void entry() {
  for (;;) {
    kernel->launch(kernel_params);
    Fiber &f = fibers[current];
    if (!f.copies.empty()) do_copies(f, f.copies.size());
    f.commits.clear();
    f.state = DONE;
    alive--;
    Warp &warp = warps[current / 32];
    warp.alive &= ~(1u << current % 32);
    while (warp.waiting) {
      bool any = false;
      for (int i = 0; i < 32 && !any; i++)
        if (warp.waiting >> i & 1) any = complete(current / 32, fibers[current / 32 * 32 + i].mask, false);
      if (!any) break;
    }
    if (at_barrier && at_barrier == alive) release_barrier();
    Context lost;
    if (!alive) {
      free_stacks.push_back(f.stack);
      switch_to(&lost, &main_context);
    }
    if (head == tail) deadlock();
    int next = ring[head++ % max_threads];
    set_current(next);
    Fiber &n = fibers[next];
    if (n.state == NEW) {
      n.stack = f.stack;
      n.state = READY;
      continue;
    }
    n.state = READY;
    free_stacks.push_back(f.stack);
    switch_to(&lost, &n.context);
  }
}

// Dynamic shared memory ends where a page begins that no one may touch.
unsigned char *dynamic_end() {
  static unsigned char *end;
  if (!end) {
    size_t bytes = 256 << 10;
    unsigned char *m = (unsigned char *)mmap(nullptr, bytes + (1 << 20), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                                             -1, 0);
    if (m == MAP_FAILED || mprotect(m, bytes, PROT_READ | PROT_WRITE)) abort();
    end = m + bytes;
  }
  return end;
}

void make_stacks() {
  if (stacks) return;
  stacks = (unsigned char *)mmap(nullptr, max_threads * stack_bytes, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stacks == MAP_FAILED) abort();
  for (int i = 0; i < max_threads; i++) mprotect(stacks + i * stack_bytes, page, PROT_NONE);
}

} // namespace

EmuHost emu_host_table = {host_collective, host_barrier,        host_fail,       host_active,        host_lane,
                          host_dynamic_shared, host_copy_async, host_copy_commit, host_copy_wait, host_yield};

// Runs all blocks; the caller holds the lock and has checked the sizes.
CUresult run_kernel(const Kernel &k, Dim3 grid, Dim3 dim, unsigned dynamic, void **params) {
  make_stacks();
  set_order();
  catch_faults();
  Module &m = *k.module;
  kernel = &k;
  kernel_params = params;
  failure = CUDA_SUCCESS;
  threads = dim.x * dim.y * dim.z;
  dynamic_begin = dynamic_end() - (dynamic + 127) / 128 * 128;
  *m.block_dim = dim;
  *m.grid_dim = grid;
  dynamic_bytes = dynamic;
  // __shared__ variables are thread-local: this thread's copy of the module's.
  void *tls = nullptr;
  m.touch_shared();
  dlinfo(m.library, RTLD_DI_TLS_DATA, &tls);
  static_begin = (unsigned char *)tls;
  free_stacks.clear();
  for (int i = max_threads - 1; i >= 0; i--) free_stacks.push_back(i);
  for (int i = 0; i < max_threads; i++) {
    fibers[i].copies.clear();
    fibers[i].commits.clear();
    fibers[i].index = {i % dim.x, i / dim.x % dim.y, i / dim.x / dim.y};
  }
  uint64_t blocks = (uint64_t)grid.x * grid.y * grid.z;
  running_thread = (pid_t)syscall(SYS_gettid);
  for (uint64_t n = 0; n < blocks && !failure; n++) {
    uint64_t b = order == FORWARD ? n : blocks - 1 - n;
    block_index = {unsigned(b % grid.x), unsigned(b / grid.x % grid.y), unsigned(b / grid.x / grid.y)};
    *m.block = block_index;
    memset(dynamic_begin, 0xff, dynamic_end() - dynamic_begin);
    if (static_begin) memset(static_begin, 0xff, m.shared_bytes);
    alive = threads;
    at_barrier = barrier_sum = 0;
    head = tail = 0;
    uint16_t list[max_threads];
    for (int i = 0; i < threads; i++) {
      fibers[i].state = NEW;
      list[i] = i;
    }
    for (int w = 0; w * 32 < threads; w++) warps[w] = {threads - w * 32 >= 32 ? ~0u : (1u << (threads - w * 32)) - 1, 0};
    make_ready(list, threads);
    int first = ring[head++ % max_threads];
    set_current(first);
    Fiber &f = fibers[first];
    f.state = READY;
    f.stack = free_stacks.back();
    free_stacks.pop_back();
    new_context(&f.context, stacks + (size_t)(f.stack + 1) * stack_bytes - f.stack * 320 % page, entry);
    switch_to(&main_context, &f.context);
  }
  running_thread = 0;
  return failure;
}
