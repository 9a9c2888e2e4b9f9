package mpi

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"unsafe"

	"github.com/geoalign/geoalign/internal/dynlib"
)

// api is the functions of an MPI library that World calls. After Init they are called on one
// thread. What C writes to and reads from lies in api itself, which is on the heap and stays where
// it is; api allocates nothing in an exchange.
type api struct {
	*dynlib.Library
	constants
	family  Family
	version string // what MPI_Get_library_version says, in one line
	file    string // as the loader found it

	f    [functions]uintptr
	args [10]uintptr
	out  struct {
		p    unsafe.Pointer
		n, m int32
		text [8192]byte // MPI_MAX_LIBRARY_VERSION_STRING of the standard ABI and of MPICH, the largest
	}
}

// The functions of api.
const (
	fVersion = iota
	fInit
	fFinalize
	fAbort
	fRank
	fSize
	fErrhandler
	fErrorString
	fAlloc
	fAllgather
	fAllgatherv
	fAlltoallv
	fTest
	functions
)

var functionNames = [functions]string{
	"MPI_Get_library_version", "MPI_Init_thread", "MPI_Finalize", "MPI_Abort", "MPI_Comm_rank", "MPI_Comm_size",
	"MPI_Comm_set_errhandler", "MPI_Error_string", "MPI_Alloc_mem", "MPI_Iallgather", "MPI_Iallgatherv",
	"MPI_Ialltoallv", "MPI_Test",
}

// request is an MPI_Request: an int32 of MPICH, a pointer of others.
type request struct{ handle uintptr }

// load opens an MPI library and finds out of which family it is. Nothing of MPI is initialised:
// the version may be asked for before (MPI 5, section 11.4.1).
func load(file string) (*api, error) {
	l, err := dynlib.Open(file)
	if err != nil {
		return nil, err
	}
	a := &api{Library: l}
	for i, name := range functionNames {
		if a.f[i] = l.Symbol(name); a.f[i] == 0 {
			l.Close()
			return nil, fmt.Errorf("%s has no function %s: it is not an MPI library of version 3 or later", file, name)
		}
	}
	a.family = a.detect()
	a.constants = constantsOf(a.family, l.Symbol)
	if a.world == 0 || a.bytes == 0 || a.returns == 0 {
		l.Close()
		return nil, fmt.Errorf("%s is neither an MPI library of the standard ABI nor MPICH nor Open MPI", file)
	}
	a.version, a.file = a.libraryVersion(), l.Path(a.f[fInit])
	return a, nil
}

// detect tells the family: a library of the standard ABI says so, Open MPI has variables where
// others have numbers (mpi4py, src/mpi4py/_mpiabi.py).
func (a *api) detect() Family {
	if f := a.Symbol("MPI_Abi_get_version"); f != 0 {
		major, minor := unsafe.Pointer(&a.out.n), unsafe.Pointer(&a.out.m)
		if a.call(f, uintptr(major), uintptr(minor)) == nil && a.out.n > 0 {
			return ABI
		}
	}
	if a.Symbol("ompi_mpi_comm_self") != 0 {
		return OpenMPI
	}
	return MPICH
}

// call calls a function of the library.
func (a *api) call(f uintptr, args ...uintptr) error {
	n := copy(a.args[:], args)
	code := int32(dynlib.Call(f, a.args[:n]...))
	runtime.KeepAlive(a)
	if code == 0 { // MPI_SUCCESS
		return nil
	}
	return a.failure(f, code)
}

// failure is the error that a code of a function stands for.
func (a *api) failure(f uintptr, code int32) error {
	name := "a function"
	for i := range a.f {
		if a.f[i] == f {
			name = functionNames[i]
		}
	}
	a.args[0], a.args[1], a.args[2] = uintptr(code), uintptr(unsafe.Pointer(&a.out.text)),
		uintptr(unsafe.Pointer(&a.out.n))
	if int32(dynlib.Call(a.f[fErrorString], a.args[:3]...)) != 0 {
		return fmt.Errorf("mpi: %s failed (error %d)", name, code)
	}
	return fmt.Errorf("mpi: %s failed (error %d: %s)", name, code, a.said())
}

// said is the text that C wrote, of out.n bytes.
func (a *api) said() string {
	return strings.Trim(string(a.out.text[:min(max(a.out.n, 0), int32(len(a.out.text)))]), "\x00\n ")
}

func (a *api) libraryVersion() string {
	if err := a.call(a.f[fVersion], uintptr(unsafe.Pointer(&a.out.text)),
		uintptr(unsafe.Pointer(&a.out.n))); err != nil {
		return err.Error()
	}
	return versionOf(a.said())
}

// versionOf shortens what a library says of itself, where MPICH tells in further lines how it was
// built and Open MPI by whom: "MPICH 4.0.2", "Open MPI v4.1.4", "Intel(R) MPI Library 2021.18 for Linux* OS".
func versionOf(said string) string {
	line, _, _ := strings.Cut(said, "\n")
	line, _, _ = strings.Cut(line, ", package")
	line = strings.Replace(line, " Version:", "", 1)
	return strings.Join(strings.Fields(line), " ")
}

// init initialises MPI. From here on this thread makes all calls.
func (a *api) init() error {
	err := a.call(a.f[fInit], 0, 0, uintptr(a.funneled), uintptr(unsafe.Pointer(&a.out.n)))
	if err != nil {
		return err
	}
	if provided := a.out.n; provided < a.funneled {
		_ = a.finalize() // the error below is what the user needs
		return fmt.Errorf("mpi: %s (%s) is built without support of threads (level %d, needed %d): "+
			"install one with it, as packages have it, or name it with %s", a.file, a.version, provided, a.funneled,
			Variable)
	}
	// An error of the library comes back as one, instead of ending the process.
	return a.call(a.f[fErrhandler], a.world, a.returns)
}

func (a *api) finalize() error { return a.call(a.f[fFinalize]) }

// abort ends all processes, this one among them. MPI_Abort of MPICH 5 returns where errors do.
func (a *api) abort(code int) {
	_ = a.call(a.f[fAbort], a.world, uintptr(code))
	os.Exit(code)
}

func (a *api) rank() (int, error) { return a.number(fRank) }

func (a *api) size() (int, error) { return a.number(fSize) }

func (a *api) number(f int) (int, error) {
	err := a.call(a.f[f], a.world, uintptr(unsafe.Pointer(&a.out.n)))
	return int(a.out.n), err
}

// alloc returns n bytes of the library's memory, which stay for as long as the process: where the
// network writes into memory itself, it must not be Go's, which gives pages back to the system
// without the library's knowledge.
func (a *api) alloc(n int) ([]byte, error) {
	a.out.p = nil
	if err := a.call(a.f[fAlloc], uintptr(n), a.noInfo, uintptr(unsafe.Pointer(&a.out.p))); err != nil {
		return nil, err
	}
	if a.out.p == nil {
		return nil, errors.New("mpi: MPI_Alloc_mem returned no memory")
	}
	return unsafe.Slice((*byte)(a.out.p), n), nil
}

// allgather begins to put n bytes of every rank, this one's at their place, into all.
func (a *api) allgather(all []byte, n int, r *request) error {
	return a.call(a.f[fAllgather], a.inPlace, 0, a.bytes, base(all), uintptr(n), a.bytes, a.world,
		uintptr(unsafe.Pointer(r)))
}

// allgatherv is allgather of counts[r] bytes of rank r, which come to all[places[r]:].
func (a *api) allgatherv(all []byte, counts, places []int32, r *request) error {
	return a.call(a.f[fAllgatherv], a.inPlace, 0, a.bytes,
		base(all), base(counts), base(places), a.bytes, a.world, uintptr(unsafe.Pointer(r)))
}

// parts are counts and places of bytes by rank.
type parts struct{ counts, places []int32 }

// alltoallv begins to send each rank its part of send, and to receive a part of each.
func (a *api) alltoallv(send []byte, to parts, recv []byte, from parts, r *request) error {
	return a.call(a.f[fAlltoallv], base(send), base(to.counts), base(to.places), a.bytes,
		base(recv), base(from.counts), base(from.places), a.bytes, a.world, uintptr(unsafe.Pointer(r)))
}

// test says whether what was begun is done, and lets the library work on it.
func (a *api) test(r *request) (bool, error) {
	err := a.call(a.f[fTest], uintptr(unsafe.Pointer(r)), uintptr(unsafe.Pointer(&a.out.n)), a.noStatus)
	return a.out.n != 0, err
}

func base[T any](x []T) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(x))) }
