package mpi

import (
	"os"
	"regexp"
	"strconv"
	"testing"
)

// headers are where mpi.h of a family may be.
var headers = map[Family][]string{
	ABI:     {"/usr/include/mpi_abi.h", "/usr/local/include/mpi_abi.h"},
	MPICH:   {"/usr/include/x86_64-linux-gnu/mpich/mpi.h", "/usr/include/aarch64-linux-gnu/mpich/mpi.h", "/usr/include/mpich-x86_64/mpi.h"},
	OpenMPI: {"/usr/lib/x86_64-linux-gnu/openmpi/include/mpi.h", "/usr/lib/aarch64-linux-gnu/openmpi/include/mpi.h", "/usr/include/openmpi-x86_64/mpi.h"},
}

// TestConstants compares the constants with the headers of this machine.
func TestConstants(t *testing.T) {
	none := func(string) uintptr { return 0 }
	for f, files := range headers {
		if f == ABI && os.Getenv("GEOALIGN_MPI_ABI_H") != "" {
			files = []string{os.Getenv("GEOALIGN_MPI_ABI_H")}
		}
		var text []byte
		for _, file := range files {
			if b, err := os.ReadFile(file); err == nil {
				text = b
			}
		}
		if text == nil {
			t.Logf("no header of %v", f)
			continue
		}
		c := constantsOf(f, none)
		want := map[string]uintptr{"MPI_IN_PLACE": c.inPlace, "MPI_STATUS_IGNORE": c.noStatus}
		if f != OpenMPI {
			want["MPI_COMM_WORLD"], want["MPI_BYTE"], want["MPI_ERRORS_RETURN"], want["MPI_INFO_NULL"] = c.world,
				c.bytes, c.returns, c.noInfo
		}
		for name, value := range want {
			got, ok := defined(text, name)
			if !ok || got != value {
				t.Errorf("%v: %s is %#x (%t) in the header, not %#x", f, name, got, ok, value)
			}
		}
	}
}

// defined returns the number that a header defines a name as.
func defined(header []byte, name string) (uintptr, bool) {
	m := regexp.MustCompile(`#define\s+` + name + `\s+\(?\s*\([^)]*\)\s*\(?(-?[0-9a-fx]+)`).FindSubmatch(header)
	if m == nil {
		return 0, false
	}
	v, err := strconv.ParseInt(string(m[1]), 0, 64)
	return uintptr(v), err == nil
}

// TestVersionOf: one line of what a library says of itself.
func TestVersionOf(t *testing.T) {
	for said, want := range map[string]string{
		"MPICH Version:      4.0.2\nMPICH Release date: Thu\nMPICH configure: x": "MPICH 4.0.2",
		"Open MPI v4.1.4, package Debian OpenMPI, ident: 4.1.4":                  "Open MPI v4.1.4",
		"Intel(R) MPI Library 2021.18.1 for Linux* OS":                           "Intel(R) MPI Library 2021.18.1 for Linux* OS",
	} {
		if got := versionOf(said); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestNeighbours: ranks of one machine share its processors unless each has its own.
func TestNeighbours(t *testing.T) {
	all := [][]byte{[]byte("a\nff"), []byte("b\n01"), []byte("a\nff"), []byte("b\n02"), []byte("a\nff")}
	for rank, want := range []local{{0, 3, 2}, {0, 2, 8}, {1, 3, 2}, {1, 2, 8}, {2, 3, 2}} {
		if got := neighbours(all, rank, 8); got != want {
			t.Errorf("rank %d: %+v, want %+v", rank, got, want)
		}
	}
	if got := neighbours(all, 0, 2); got.threads != 1 {
		t.Errorf("%d threads", got.threads)
	}
}
