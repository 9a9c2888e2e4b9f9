package bench

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/geoalign/geoalign/internal/kernel/cpu"
	"github.com/geoalign/geoalign/internal/memory"
)

// Hardware is what a machine is, as far as the system tells it. What it does not tell is empty or 0.
type Hardware struct {
	Model    string   `json:"processor"`           // its name, such as AMD EPYC
	Vendor   string   `json:"vendor,omitempty"`    // as CPUID has it, such as AuthenticAMD
	Family   int      `json:"family,omitempty"`    // numbers of CPUID, which tell apart what has one name
	Number   int      `json:"model,omitempty"`     //
	Stepping int      `json:"stepping,omitempty"`  //
	Level    string   `json:"level,omitempty"`     // of the kernels: avx512, avx2 or plain
	Sets     []string `json:"sets,omitempty"`      // instruction sets that a matrix product can use
	Caches   []string `json:"caches,omitempty"`    // of the first processor, such as L1 Data 48K
	CPUs     int      `json:"cpus"`                // that the process may use
	MemoryMB int64    `json:"memory_mb,omitempty"` // of the machine or the control group, whichever is less
	System   string   `json:"system"`              // operating system and architecture
	Kernel   string   `json:"kernel,omitempty"`    // release of the system's kernel
}

// instructionSets are the flags of /proc/cpuinfo that matter to a matrix product.
var instructionSets = []string{"avx2", "fma", "avx_vnni", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni",
	"avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16"}

// ThisMachine describes the machine that the process runs on.
func ThisMachine() Hardware {
	text, _ := os.ReadFile("/proc/cpuinfo")
	h := processor(string(text))
	if h.Model == "" {
		h.Model = runtime.GOARCH
	}
	h.Level, h.CPUs, h.MemoryMB = cpu.Level(), runtime.NumCPU(), memory.Total()>>20
	h.Caches = caches("/sys/devices/system/cpu/cpu0/cache")
	h.System, h.Kernel = runtime.GOOS+"/"+runtime.GOARCH, line("/proc/sys/kernel/osrelease")
	return h
}

// processor reads the first processor of a text of the form of /proc/cpuinfo.
func processor(text string) (h Hardware) {
	first, _, _ := strings.Cut(text, "\n\n")
	for l := range strings.Lines(first) {
		k, v, _ := strings.Cut(l, ":")
		k, v = strings.TrimSpace(k), strings.TrimSpace(v)
		n, _ := strconv.Atoi(v)
		switch k {
		case "model name":
			h.Model = v
		case "vendor_id":
			h.Vendor = v
		case "cpu family":
			h.Family = n
		case "model":
			h.Number = n
		case "stepping":
			h.Stepping = n
		case "flags":
			for f := range strings.FieldsSeq(v) {
				if slices.Contains(instructionSets, f) {
					h.Sets = append(h.Sets, f)
				}
			}
		}
	}
	return h
}

// caches reads the sizes of the caches below a folder of sysfs.
func caches(dir string) (list []string) {
	index, _ := filepath.Glob(filepath.Join(dir, "index*"))
	for _, d := range index {
		if size := line(filepath.Join(d, "size")); size != "" {
			list = append(list, "L"+line(filepath.Join(d, "level"))+" "+line(filepath.Join(d, "type"))+" "+size)
		}
	}
	return list
}

// line is the content of a file of one line, empty where there is none.
func line(path string) string {
	text, _ := os.ReadFile(path)
	return strings.TrimSpace(string(text))
}

// Same says whether two machines are of one kind: their figures can be compared.
func (h Hardware) Same(o Hardware) bool { return h.kind() == o.kind() }

// kind is what figures depend on most.
func (h Hardware) kind() [6]any {
	return [6]any{h.Model, h.Vendor, h.Family, h.Number, h.Level, h.CPUs}
}
