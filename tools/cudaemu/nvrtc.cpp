// NVRTC (functions of nvrtc.h): kernels are compiled by g++ into a shared object, which stands for the cubin.
//
// The source is preprocessed with emu.h before it; every function marked by __global__ gets three functions that the
// launcher needs; the result is compiled. Results are kept in a folder (CUDAEMU_CACHE) under a hash of all that goes in.
#include "state.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <csignal>
#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const char kernel_header[] =
#include "emu.h"
    ;

namespace {

// Values of nvrtc.h.
enum Result { SUCCESS = 0, CREATION = 2, INVALID_INPUT = 3, INVALID_PROGRAM = 4, COMPILATION = 6, INTERNAL = 11 };

struct Program {
  std::string source, name, log, image;
  std::vector<std::pair<std::string, std::string>> headers; // name, text
};

typedef std::vector<std::string> Words;

const Words fixed_options = {
    "-x", "c++", "-O1", "-g1", "-w", "-std=c++17", "-shared", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off",
    "-fno-math-errno", "-fno-strict-aliasing", "-fwrapv", "-fno-exceptions", "-fno-rtti", "-fno-stack-protector",
    "-fno-asynchronous-unwind-tables", "-fno-gnu-unique", "-nostdlib", "-Wl,-Bsymbolic", "-fsanitize=alignment,bounds",
    "-fsanitize-undefined-trap-on-error",
#if __GNUC__ >= 12 && !defined(__clang__)
    "-ftrivial-auto-var-init=pattern", // a variable that is not set has a value that shows
#endif
};

// With this machine's instructions for fmaf and vectors.
Words options_of_machine() {
  Words o = fixed_options;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) o.insert(o.end(), {"-mavx2", "-mfma"});
#endif
  return o;
}
const Words compile_options = options_of_machine();

const char *compiler() {
  const char *s = getenv("CUDAEMU_CXX");
  return s && *s ? s : "g++";
}

uint64_t hash(uint64_t h, const std::string &s) {
  for (unsigned char c : s) h = (h ^ c) * 1099511628211ull;
  return (h ^ s.size()) * 1099511628211ull;
}

bool read_file(const std::string &path, std::string &text) {
  FILE *f = fopen(path.c_str(), "rb");
  if (!f) return false;
  text.clear();
  char buffer[65536];
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, f)) > 0;) text.append(buffer, n);
  bool ok = !ferror(f);
  fclose(f);
  return ok;
}

bool write_file(const std::string &path, const std::string &text) {
  FILE *f = fopen(path.c_str(), "wb");
  if (!f) return false;
  bool ok = fwrite(text.data(), 1, text.size(), f) == text.size();
  return fclose(f) == 0 && ok;
}

// Makes the folders that a path goes through.
void make_folders(const std::string &path) {
  for (size_t i = 1; (i = path.find('/', i)) != std::string::npos; i++) mkdir(path.substr(0, i).c_str(), 0700);
}

// Runs a program with its output and errors in files; its exit status, or -1.
int run(const Words &words, const std::string &output, const std::string &log) {
  std::vector<char *> argv;
  for (auto &w : words) argv.push_back((char *)w.c_str());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_addopen(&files, 2, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t pid;
  int e = posix_spawnp(&pid, argv[0], &files, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (e) return -1;
  int status;
  while (waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool letter(char c) { return isalnum((unsigned char)c) || c == '_'; }

// Reads tokens of preprocessed text: skips white space and line markers.
struct Reader {
  const std::string &s;
  size_t i;
  void skip() {
    while (i < s.size()) {
      if (isspace((unsigned char)s[i])) {
        i++;
      } else if (s[i] == '#') {
        while (i < s.size() && s[i] != '\n') i++;
      } else {
        break;
      }
    }
  }
  std::string word() {
    skip();
    size_t begin = i;
    while (i < s.size() && letter(s[i])) i++;
    return s.substr(begin, i - begin);
  }
  // The text between the parentheses that open here; leaves the reader behind them.
  std::string parentheses() {
    skip();
    size_t begin = i;
    int depth = 0;
    for (; i < s.size(); i++) {
      if (s[i] == '(') depth++;
      if (s[i] == ')' && --depth == 0) {
        i++;
        return s.substr(begin + 1, i - begin - 2);
      }
    }
    return "";
  }
};

struct Found { std::string name, bounds; };

// The kernels of a preprocessed source. emu.h makes __global__ and __launch_bounds__ attributes of which names remain:
//   extern "C" __attribute__((visibility("default"), emu_global)) void __attribute__((emu_bounds(256))) name(...)
std::vector<Found> find_kernels(const std::string &text) {
  std::vector<Found> found;
  for (size_t at = 0; (at = text.find("emu_global", at)) != std::string::npos;) {
    at += strlen("emu_global");
    Reader r{text, at};
    r.skip();
    while (r.i < text.size() && text[r.i] == ')') r.i++, r.skip();
    Found k;
    for (;;) {
      std::string w = r.word();
      if (w == "__attribute__") {
        std::string inside = r.parentheses();
        size_t b = inside.find("emu_bounds");
        if (b != std::string::npos) {
          Reader q{inside, b + strlen("emu_bounds")};
          k.bounds = q.parentheses();
        }
        continue;
      }
      r.skip();
      if (w.empty()) break;
      if (r.i < text.size() && text[r.i] == '(') {
        k.name = w;
        break;
      }
    }
    bool known = k.name.empty();
    for (auto &f : found)
      if (f.name == k.name) {
        known = true;
        if (f.bounds.empty()) f.bounds = k.bounds;
      }
    if (!known) found.push_back(k);
  }
  return found;
}

std::string launchers(const std::string &text) {
  std::string s = "\n# 1 \"launchers\"\n";
  for (auto &k : find_kernels(text)) {
    s += "extern \"C\" EMU_E void emu_launch_" + k.name + "(void **p) { emu_call(" + k.name + ", p); }\n";
    s += "extern \"C\" EMU_E int emu_sizes_" + k.name + "(unsigned *s) { return emu_sizes(" + k.name + ", s); }\n";
    s += "extern \"C\" EMU_E int emu_bounds_" + k.name + "() { return emu_first(" + k.bounds + "); }\n";
  }
  const std::string shown = "__attribute__((visibility(\"default\")))";
  for (size_t i; (i = s.find("EMU_E ")) != std::string::npos;) s.replace(i, 5, shown);
  return s;
}

// -D and -U of the caller; all other options are nvcc's.
Words definitions(int n, const char *const *options) {
  Words d;
  for (int i = 0; i < n; i++) {
    std::string o = options[i];
    if (o.rfind("--define-macro=", 0) == 0) d.push_back("-D" + o.substr(15));
    else if (o.rfind("--undefine-macro=", 0) == 0) d.push_back("-U" + o.substr(17));
    else if ((o == "-D" || o == "--define-macro") && i + 1 < n) d.push_back(std::string("-D") + options[++i]);
    else if ((o == "-U" || o == "--undefine-macro") && i + 1 < n) d.push_back(std::string("-U") + options[++i]);
    else if (o.rfind("-D", 0) == 0 || o.rfind("-U", 0) == 0) d.push_back(o);
  }
  return d;
}

std::string plain_name(const std::string &name) {
  size_t i = name.find_last_of('/');
  return i == std::string::npos ? name : name.substr(i + 1);
}

// Compiles in a fresh folder; log and library are the results.
Result compile(Program &p, const Words &defines, const std::string &folder, std::string &library) {
  std::string source = folder + "/" + (p.name.empty() ? "default_program" : plain_name(p.name));
  bool ok = write_file(folder + "/cudaemu_kernel.h", kernel_header) && write_file(source, p.source);
  for (auto &h : p.headers) {
    std::string path = folder + "/" + h.first;
    make_folders(path);
    ok = ok && write_file(path, h.second);
  }
  if (!ok) {
    p.log = "cudaemu: cannot write to " + folder;
    return INTERNAL;
  }
  std::string log = folder + "/.log", text;
  std::string names = "-ffile-prefix-map=" + folder + "/=";
  Words words = {compiler(), "-E", "-x", "c++", "-w", "-std=c++17", names, "-I", folder};
  words.insert(words.end(), defines.begin(), defines.end());
  words.insert(words.end(), {"-include", folder + "/cudaemu_kernel.h", source});
  int status = run(words, folder + "/.ii", log);
  if (status == 0) {
    if (!read_file(folder + "/.ii", text) || !write_file(folder + "/.all.ii", text + launchers(text))) return INTERNAL;
    words = {compiler()};
    words.insert(words.end(), compile_options.begin(), compile_options.end());
    words.insert(words.end(), {names, "-fpreprocessed", folder + "/.all.ii", "-o", folder + "/.so", "-lm", "-lc", "-lgcc"});
    status = run(words, "/dev/null", log);
  }
  read_file(log, p.log);
  for (size_t i; (i = p.log.find(folder + "/")) != std::string::npos;) p.log.erase(i, folder.size() + 1);
  if (status < 0) {
    p.log = std::string("cudaemu: cannot run ") + compiler() + " (CUDAEMU_CXX names another compiler)";
    return INTERNAL;
  }
  if (status) return COMPILATION;
  return read_file(folder + "/.so", library) ? SUCCESS : INTERNAL;
}

std::string cache_folder() {
  if (const char *s = getenv("CUDAEMU_CACHE"))
    if (*s) return s;
  const char *t = getenv("TMPDIR");
  return std::string(t && *t ? t : "/tmp") + "/cudaemu-" + std::to_string(getuid());
}

} // namespace

EMU_API const char *nvrtcGetErrorString(int r) {
  switch (r) {
  case 0: return "NVRTC_SUCCESS";
  case 1: return "NVRTC_ERROR_OUT_OF_MEMORY";
  case 2: return "NVRTC_ERROR_PROGRAM_CREATION_FAILURE";
  case 3: return "NVRTC_ERROR_INVALID_INPUT";
  case 4: return "NVRTC_ERROR_INVALID_PROGRAM";
  case 5: return "NVRTC_ERROR_INVALID_OPTION";
  case 6: return "NVRTC_ERROR_COMPILATION";
  case 11: return "NVRTC_ERROR_INTERNAL_ERROR";
  default: return "NVRTC_ERROR unknown";
  }
}

EMU_API int nvrtcVersion(int *major, int *minor) {
  FAULT;
  if (!major || !minor) return INVALID_INPUT;
  // The minor version stands for emu.h and the options, so that a caller that keeps images does not take old ones.
  uint64_t h = hash(14695981039346656037ull, kernel_header);
  for (auto &o : compile_options) h = hash(h, o);
  *major = 13;
  *minor = (int)(h % 1000000);
  return SUCCESS;
}

EMU_API int nvrtcCreateProgram(void **program, const char *source, const char *name, int n, const char *const *headers,
                               const char *const *names) {
  FAULT;
  if (!program || !source || n < 0 || (n && (!headers || !names))) return INVALID_INPUT;
  Program *p = new Program;
  p->source = source;
  if (name) p->name = name;
  for (int i = 0; i < n; i++) p->headers.push_back({names[i], headers[i]});
  *program = p;
  return SUCCESS;
}

EMU_API int nvrtcDestroyProgram(void **program) {
  FAULT;
  if (!program || !*program) return INVALID_PROGRAM;
  delete (Program *)*program;
  *program = nullptr;
  return SUCCESS;
}

EMU_API int nvrtcCompileProgram(void *program, int n, const char *const *options) {
  FAULT;
  if (!program) return INVALID_PROGRAM;
  Program &p = *(Program *)program;
  Words defines = definitions(n, options);
  uint64_t h[2] = {14695981039346656037ull, 0x9e3779b97f4a7c15ull};
  for (uint64_t &x : h) {
    for (auto &s : {std::string(kernel_header), std::string(compiler()), p.name, p.source}) x = hash(x, s);
    for (auto &s : compile_options) x = hash(x, s);
    for (auto &s : defines) x = hash(x, s);
    for (auto &q : p.headers) x = hash(hash(x, q.first), q.second);
  }
  char key[40];
  snprintf(key, sizeof key, "%016llx%016llx", (unsigned long long)h[0], (unsigned long long)h[1]);
  std::string cache = cache_folder(), kept = cache + "/" + key + ".so", library;
  make_folders(kept);
  p.log.clear();
  p.image.clear();
  if (!read_file(kept, library)) {
    std::string folder = cache + "/compile-XXXXXX";
    if (!mkdtemp(&folder[0])) {
      p.log = "cudaemu: cannot make a folder in " + cache + " (CUDAEMU_CACHE names another place)";
      return INTERNAL;
    }
    Result r = compile(p, defines, folder, library);
    if (r == SUCCESS && !write_file(folder + "/.so", library)) r = INTERNAL;
    if (r == SUCCESS) rename((folder + "/.so").c_str(), kept.c_str());
    run({"rm", "-rf", folder}, "/dev/null", "/dev/null");
    if (r != SUCCESS) return r;
  }
  uint64_t bytes = library.size();
  p.image = "CUDAEMU" + std::string(1, '0' + EMU_INTERFACE) + std::string((const char *)&bytes, 8) + library;
  return SUCCESS;
}

EMU_API int nvrtcGetProgramLogSize(void *program, size_t *bytes) {
  FAULT;
  if (!program) return INVALID_PROGRAM;
  if (!bytes) return INVALID_INPUT;
  *bytes = ((Program *)program)->log.size() + 1;
  return SUCCESS;
}

EMU_API int nvrtcGetProgramLog(void *program, char *log) {
  FAULT;
  if (!program) return INVALID_PROGRAM;
  if (!log) return INVALID_INPUT;
  strcpy(log, ((Program *)program)->log.c_str());
  return SUCCESS;
}

EMU_API int nvrtcGetCUBINSize(void *program, size_t *bytes) {
  FAULT;
  if (!program) return INVALID_PROGRAM;
  if (!bytes) return INVALID_INPUT;
  *bytes = ((Program *)program)->image.size();
  return SUCCESS;
}

EMU_API int nvrtcGetCUBIN(void *program, char *image) {
  FAULT;
  if (!program || ((Program *)program)->image.empty()) return INVALID_PROGRAM;
  if (!image) return INVALID_INPUT;
  memcpy(image, ((Program *)program)->image.data(), ((Program *)program)->image.size());
  return SUCCESS;
}
