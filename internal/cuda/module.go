package cuda

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"unsafe"

	"github.com/geoalign/geoalign/internal/dynlib"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/usercache"
)

//go:embed common.cuh
var common string

// Source is CUDA C++ of some kernels. common.cuh comes before it.
type Source struct {
	Name string // for messages
	Text string
}

// NewSource returns the source that files of kernels are one after the other.
func NewSource(from embed.FS, name string, files ...string) *Source {
	var text strings.Builder
	for _, f := range files {
		b, err := from.ReadFile(f)
		if err != nil {
			panic(err) // a name that is not embedded
		}
		text.Write(b)
		text.WriteByte('\n')
	}
	return &Source{Name: name, Text: text.String()}
}

// Macro is a definition that a source is compiled with.
type Macro struct{ Name, Value string }

// Type defines a macro as the type of an operand's values: float, bf16 or int.
func Type(name string, o exec.Operand) Macro {
	switch o.Type {
	case exec.BFloat16:
		return Macro{name, "bf16"}
	case exec.Int32:
		return Macro{name, "int"}
	}
	return Macro{name, "float"}
}

// Is defines a macro as 1 or 0.
func Is(name string, on bool) Macro {
	if on {
		return Macro{name, "1"}
	}
	return Macro{name, "0"}
}

// Value defines a macro as a whole number.
func Value(name string, v int) Macro { return Macro{name, fmt.Sprint(v)} }

// compilerFunctions are those of NVRTC that are called (nvrtc.h).
var compilerFunctions = []string{
	"nvrtcVersion", "nvrtcCreateProgram", "nvrtcCompileProgram", "nvrtcGetProgramLogSize", "nvrtcGetProgramLog",
	"nvrtcGetCUBINSize", "nvrtcGetCUBIN", "nvrtcGetErrorString", "nvrtcDestroyProgram",
}

// module is a source compiled with some macros.
type module struct {
	source *Source
	image  func() ([]byte, error) // waits for the compiler
	anew   func() ([]byte, error) // compiles again, whatever the cache holds
	once   sync.Once
	handle uintptr
	err    error
}

// compiling limits how many sources are compiled at a time.
var compiling = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)))

// module returns the module of a source with macros and has it compiled beside the caller.
func (d *Device) module(s *Source, macros []Macro) *module {
	key := s.Name
	for _, m := range macros {
		key += " " + m.Name + "=" + m.Value
	}
	if m, ok := d.modules.Load(key); ok {
		return m.(*module)
	}
	m := &module{source: s, anew: func() ([]byte, error) { return d.compile(s, macros, true) }}
	done := make(chan struct{})
	var image []byte
	var err error
	m.image = func() ([]byte, error) { <-done; return image, err }
	if other, ok := d.modules.LoadOrStore(key, m); ok {
		return other.(*module)
	}
	go func() {
		compiling <- struct{}{}
		image, err = d.compile(s, macros, false)
		<-compiling
		close(done)
	}()
	return m
}

// load waits for the compiler and takes the code to the device.
func (m *module) load(d *Device) (uintptr, error) {
	m.once.Do(func() {
		image, err := m.image()
		if err != nil {
			m.err = err
			return
		}
		take := func() error {
			err := d.driver.do("cuModuleLoadData", uintptr(unsafe.Pointer(&m.handle)),
				uintptr(unsafe.Pointer(&image[0])))
			runtime.KeepAlive(image)
			return err
		}
		if m.err = take(); m.err != nil { // the cache may be of another driver
			if image, err = m.anew(); err == nil {
				m.err = take()
			}
		}
		if m.err != nil {
			m.err = fmt.Errorf("code of %s: %w", m.source.Name, m.err)
		}
	})
	return m.handle, m.err
}

// compile returns the machine code of a source, from the user's cache folder if it is there and is not to be made anew.
func (d *Device) compile(s *Source, macros []Macro, anew bool) ([]byte, error) {
	options := []string{
		fmt.Sprintf("--gpu-architecture=sm_%d%d", d.info.Major, d.info.Minor), "--std=c++17", "--fmad=true",
		"-lineinfo",
	}
	for _, m := range macros {
		options = append(options, "-D"+m.Name+"="+m.Value)
	}
	text := common + "\n#line 1 \"" + s.Name + ".cu\"\n" + s.Text
	sum := sha256.Sum256([]byte(strings.Join(options, " ") + "\x00" + d.info.NVRTC + "\x00" + d.info.Name + "\x00" +
		text))
	file := usercache.File(filepath.Join("cuda", hex.EncodeToString(sum[:16])+".cubin"))
	if image, err := cached(file); err == nil && !anew {
		return image, nil
	}
	image, err := d.compileText(s.Name, text, options)
	if err == nil {
		keep(file, image) // a cache that cannot be written costs time alone
	}
	return image, err
}

// cached reads machine code with its checksum in front.
func cached(file string) ([]byte, error) {
	if file == "" {
		return nil, errors.New("no cache")
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if len(b) < 32 {
		return nil, errors.New("damaged")
	}
	if sum := sha256.Sum256(b[32:]); string(sum[:]) != string(b[:32]) {
		return nil, errors.New("damaged")
	}
	return b[32:], nil
}

// keep writes machine code to the cache in one step.
func keep(file string, image []byte) {
	if file == "" || os.MkdirAll(filepath.Dir(file), 0o755) != nil {
		return
	}
	sum := sha256.Sum256(image)
	_ = files.Replace(file, append(sum[:], image...)) // a cache that cannot be written costs time alone
}

// compileText compiles with NVRTC.
func (d *Device) compileText(name, text string, options []string) ([]byte, error) {
	c := d.compiler
	program := new(uintptr)
	src, label := append([]byte(text), 0), append([]byte(name+".cu"), 0)
	if s := c.call("nvrtcCreateProgram", uintptr(unsafe.Pointer(program)), uintptr(unsafe.Pointer(&src[0])),
		uintptr(unsafe.Pointer(&label[0])), 0, 0, 0); s != 0 {
		return nil, d.compilerError("nvrtcCreateProgram", s, "")
	}
	defer c.call("nvrtcDestroyProgram", uintptr(unsafe.Pointer(program)))
	texts := make([][]byte, len(options))
	list := make([]uintptr, len(options))
	for i, o := range options {
		texts[i] = append([]byte(o), 0)
		list[i] = uintptr(unsafe.Pointer(&texts[i][0]))
	}
	status := c.call("nvrtcCompileProgram", *program, uintptr(len(list)), uintptr(unsafe.Pointer(&list[0])))
	runtime.KeepAlive(texts)
	size := new(uintptr)
	if status != 0 {
		log := ""
		if c.call("nvrtcGetProgramLogSize", *program, uintptr(unsafe.Pointer(size))) == 0 && *size > 1 {
			b := make([]byte, *size)
			if c.call("nvrtcGetProgramLog", *program, uintptr(unsafe.Pointer(&b[0]))) == 0 {
				log = strings.TrimRight(string(b), "\x00\n")
			}
		}
		return nil, fmt.Errorf("kernels of %s: %w", name, d.compilerError("nvrtcCompileProgram", status, log))
	}
	if s := c.call("nvrtcGetCUBINSize", *program, uintptr(unsafe.Pointer(size))); s != 0 || *size == 0 {
		return nil, d.compilerError("nvrtcGetCUBINSize", s, "")
	}
	image := make([]byte, *size)
	if s := c.call("nvrtcGetCUBIN", *program, uintptr(unsafe.Pointer(&image[0]))); s != 0 {
		return nil, d.compilerError("nvrtcGetCUBIN", s, "")
	}
	return image, nil
}

// compilerError makes an error of a status of NVRTC.
func (d *Device) compilerError(call string, status uintptr, log string) error {
	text := "unknown error"
	if p := dynlib.Call(d.compiler.functions["nvrtcGetErrorString"], status); p != 0 {
		text = dynlib.String(*(*unsafe.Pointer)(unsafe.Pointer(&p)))
	}
	if log != "" {
		text += "\n" + log
	}
	return &Error{Call: call, Status: int(status), Text: text}
}

func floatBits(v float32) uint32 { return math.Float32bits(v) }
