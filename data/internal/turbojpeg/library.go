package turbojpeg

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/geoalign/geoalign/internal/dynlib"
)

// Variable may name the file of the library.
const Variable = "GEOALIGN_JPEG"

// Install says how to get the library.
const Install = "install libjpeg-turbo (Debian, Ubuntu: apt-get install libturbojpeg0; Fedora: dnf install turbojpeg; " +
	"macOS: brew install jpeg-turbo; conda: conda install libjpeg-turbo) or set " + Variable +
	" to the file of libturbojpeg"

// Library is a libturbojpeg that passed its test. Its methods may be called from several goroutines.
type Library struct {
	Version string // "2" or "3": the interface has no function that says more
	File    string // as the loader found it

	f [functions]uintptr

	mu   sync.Mutex
	idle []*handle
}

// The functions of Library, those of TurboJPEG 2.0, which version 3 has too.
const (
	fInit = iota
	fHeader
	fDecompress
	fErrorCode
	fErrorText
	fDestroy
	functions
)

var functionNames = [functions]string{"tjInitDecompress", "tjDecompressHeader3", "tjDecompress2", "tjGetErrorCode",
	"tjGetErrorStr2", "tjDestroy"}

// trial is how a file is tried: its functions, and a few pictures.
var trial = dynlib.Register(dynlib.Trial{
	Name: "turbojpeg", Env: Variable,
	Files: []string{"libturbojpeg.so.0", "libturbojpeg.so", "libturbojpeg.0.dylib", "libturbojpeg.dylib",
		"/opt/homebrew/opt/jpeg-turbo/lib/libturbojpeg.dylib", "/opt/libjpeg-turbo/lib64/libturbojpeg.so.0"},
	Try:  try,
	Path: func(use any) string { return use.(*Library).File },
})

func try(file string, begin func(step string)) (any, string) {
	lib, warning := dynlib.Trial{Env: Variable}.Load(file, begin)
	if lib == nil {
		return nil, warning
	}
	l := &Library{Version: "2"}
	for i, name := range functionNames {
		f, err := lib.Func(name)
		if err != nil {
			return nil, fmt.Sprintf("%s is not used: %v: it is not libjpeg-turbo's libturbojpeg of version 2 or later",
				file, err)
		}
		l.f[i] = f
	}
	if lib.Symbol("tj3Init") != 0 {
		l.Version = "3"
	}
	l.File = lib.Path(l.f[fDecompress])
	begin("its self-test")
	if err := l.test(); err != nil {
		return nil, fmt.Sprintf("%s is not used: self-test: %v", file, err)
	}
	return l, ""
}

// found keeps what came out for a value of the variable.
var found struct {
	sync.Mutex
	m map[string]outcome
}

type outcome struct {
	library  *Library
	warnings []string
}

// Find returns the library that the variable names, or else the first of the usual ones that can be
// used, and what to warn of. The error says what to install. The library stays loaded.
func Find() (l *Library, warnings []string, err error) {
	if dynlib.Static {
		return nil, nil, dynlib.ErrStatic
	}
	found.Lock()
	defer found.Unlock()
	name := os.Getenv(Variable)
	o, ok := found.m[name]
	if !ok {
		use, warnings := trial.Find()
		o.warnings = warnings
		o.library, _ = use.(*Library)
		if found.m == nil {
			found.m = map[string]outcome{}
		}
		found.m[name] = o
	}
	switch {
	case o.library != nil:
		return o.library, o.warnings, nil
	case len(o.warnings) > 0:
		return nil, o.warnings, errors.New(o.warnings[len(o.warnings)-1])
	}
	return nil, nil, errors.New("no library found")
}
