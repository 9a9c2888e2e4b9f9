// Failures on demand, for tests of what a program does when a device fails.
//
// CUDAEMU_FAIL=NAME:N[:STATUS][,..]: call N of the function of that name answers STATUS (719 if left out) instead of doing its
// work; `NAME:N+` those after it too; `*` counts the calls of all functions. `kernel` are kernels as they run, alone or in a
// graph: the launch succeeds and later calls fail, as on a device. A status from 700 to 719, of an uncorrectable memory error
// (214) or of a device that has gone (46) breaks the context.
// CUDAEMU_FAIL_AFTER=PATH: calls count once there is something at PATH.
// CUDAEMU_TRACE=FILE: the names of the calls that count, a line each.
#include "state.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace {
struct Rule {
  std::string name;
  long at;
  bool onwards;
  int status;
  long calls = 0;
};

std::vector<Rule> rules;

// Brings the rules up to date with the variable, which may change within a process.
void read_rules() {
  static std::string all;
  const char *s = getenv("CUDAEMU_FAIL");
  if (all == (s ? s : "")) return;
  all = s ? s : "";
  rules.clear();
  for (size_t i = 0; i < all.size();) {
    size_t end = all.find(',', i);
    std::string one = all.substr(i, end == std::string::npos ? end : end - i);
    i = end == std::string::npos ? all.size() : end + 1;
    size_t colon = one.find(':');
    char *rest = nullptr;
    Rule r{one.substr(0, colon), colon == std::string::npos ? 1 : strtol(one.c_str() + colon + 1, &rest, 10), false, CUDA_ERROR_LAUNCH_FAILED};
    if (rest && *rest == '+') r.onwards = true, rest++;
    if (rest && *rest == ':') r.status = atoi(rest + 1);
    rules.push_back(r);
  }
}

bool counts() {
  static bool begun;
  const char *after = getenv("CUDAEMU_FAIL_AFTER");
  return begun = begun || !after || access(after, F_OK) == 0;
}
} // namespace

int fault(const char *name) {
  Guard g(emu_lock);
  const char *trace = getenv("CUDAEMU_TRACE");
  read_rules();
  if ((rules.empty() && !trace) || !counts()) return 0;
  if (FILE *f = trace ? fopen(trace, "a") : nullptr) {
    fprintf(f, "%s\n", name);
    fclose(f);
  }
  for (Rule &r : rules) {
    if (r.name != name && (r.name != "*" || !strcmp(name, "kernel"))) continue;
    if (++r.calls == r.at || (r.onwards && r.calls > r.at)) {
      say("%s fails with status %d, as CUDAEMU_FAIL says", name, r.status);
      int s = r.status;
      if (!strncmp(name, "cu", 2) && strncmp(name, "cublas", 6) && ((s >= 700 && s < 720) || s == 46 || s == 214)) break_context(s);
      return s;
    }
  }
  return 0;
}
