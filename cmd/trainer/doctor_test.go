package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/mpi"
)

func TestDoctor(t *testing.T) {
	code, stdout, stderr := trainer(t, "doctor", "--json", "--threads", "1")
	m := parseJSON(t, stdout)
	speed := m["gemm"].(map[string]any)["gflops"].(float64)
	if code != exitDone || stderr != "" || speed <= 0 || m["threads"] != 1.0 {
		t.Errorf("code %d, stderr %q, stdout %s", code, stderr, stdout)
	}
	code, stdout, _ = trainer(t, "doctor", "--backend", "builtin")
	if half := m["bf16"].(map[string]any); half["gflops"].(float64) <= 0 || !strings.Contains(half["engine"].(string), "bf16") {
		t.Errorf("bfloat16: %v", half)
	}
	if codes := m["int8"].(map[string]any); codes["gflops"].(float64) <= 0 || !strings.Contains(codes["engine"].(string), "int8") {
		t.Errorf("int8: %v", codes)
	}
	for _, want := range []string{"trainer    ", "system     ", "products   ", "speed      ", "bf16       ", "int8       ", "GFLOP/s", "mpi        "} {
		if code != exitDone || !strings.Contains(stdout, want) {
			t.Errorf("code %d: %q is missing in %s", code, want, stdout)
		}
	}
	if lines := strings.Count(stdout, "\n"); lines > 24 {
		t.Errorf("%d lines are more than a screen:\n%s", lines, stdout)
	}
}

// What is said of MPI is the library, or why there is none and how to get one.
func TestDoctorMPI(t *testing.T) {
	rows := []struct {
		info mpi.Info
		want string
	}{
		{mpi.Info{Found: true, Library: "MPICH 4.0", Family: "MPICH", File: "/lib/libmpich.so.12"}, "mpi        found MPICH 4.0 (interface: MPICH) /lib/libmpich.so.12\n"},
		{mpi.Info{Reason: "no library found: install MPI"}, "mpi        not usable, which only training on several processes needs: no library found: install MPI\n"},
		{mpi.Info{Found: true, Launcher: "srun"}, "           started as one of several by srun\n"},
	}
	for _, r := range rows {
		var b strings.Builder
		diagnosis{MPI: r.info}.print(&b)
		if !strings.Contains(b.String(), r.want) {
			t.Errorf("%q is missing in %s", r.want, b.String())
		}
	}
}

// The JSON of a GPU has names as all other JSON has them.
func TestDoctorGPUInJSON(t *testing.T) {
	text := check.Get(json.Marshal(gpu{Found: true, Info: cuda.Info{Name: "N", Major: 9, CuBLASLt: "12"}}))(t)
	if upper := regexp.MustCompile(`"[^":]*[A-Z][^":]*":`).FindString(string(text)); upper != "" || !strings.Contains(string(text), `"name":"N"`) {
		t.Errorf("%s stands in %s", upper, text)
	}
}
