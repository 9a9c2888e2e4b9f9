package mpi

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// TestLaunched: a launcher is known by what it tells each process, and by nothing less.
func TestLaunched(t *testing.T) {
	rows := []struct {
		env        string
		name       string // how it begins; "" where there is none
		rank, size int
	}{
		{"", "", 0, 0},
		{"OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4 PMIX_RANK=3", "mpirun of Open MPI", 3, 4},
		{"PMI_RANK=0 PMI_SIZE=2 MPI_LOCALNRANKS=2", "a launcher with PMI ", 0, 2},
		{"MV2_COMM_WORLD_RANK=1 MV2_COMM_WORLD_SIZE=2", "mpirun of MVAPICH2", 1, 2},
		{"PMIX_RANK=1 SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=8", "srun --mpi=pmix", 1, 8},
		{"PMIX_RANK=5", "a launcher with PMIx", 5, 0},
		{"SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=8", "srun", 1, 8},
		// The shell of a job of 8 tasks, and mpirun in it.
		{"SLURM_PROCID=0 SLURM_NTASKS=8", "", 0, 0},
		{"SLURM_PROCID=0 SLURM_NTASKS=8 PMI_RANK=7 PMI_SIZE=8", "a launcher with PMI ", 7, 8},
		{"PMI_SIZE=2", "", 0, 0},
		{"PMI_RANK=x PMI_SIZE=2", "", 0, 0},
		{"PMI_RANK=-1 PMI_SIZE=2", "", 0, 0},
		{"PMI_RANK=0 PMI_SIZE=0", "", 0, 0},
		{"PMI_RANK=0 PMI_SIZE=2 GEOALIGN_MPI=off", "", 0, 0},
	}
	for _, r := range rows {
		env := map[string]string{}
		for _, e := range strings.Fields(r.env) {
			name, value, _ := strings.Cut(e, "=")
			env[name] = value
		}
		l := launched(func(name string) string { return env[name] })
		switch {
		case l == nil && r.name != "", l != nil && r.name == "":
			t.Errorf("%q: %v", r.env, l)
		case l != nil && (!strings.HasPrefix(l.Name, r.name) || l.Rank != r.rank || l.Size != r.size):
			t.Errorf("%q: %+v, want %s, rank %d of %d", r.env, *l, r.name, r.rank, r.size)
		}
	}
}

// TestInstalled: the program that starts the processes tells where its library is and which it is.
func TestInstalled(t *testing.T) {
	prefix, fits, ok := installed("/opt/env/bin/prterun")
	if prefix != "/opt/env" || !ok || !slices.Contains(fits, OpenMPI) {
		t.Errorf("%s, %v, %t", prefix, fits, ok)
	}
	if _, fits, ok := installed("/usr/bin/hydra_pmi_proxy"); !ok || slices.Contains(fits, OpenMPI) {
		t.Errorf("%v, %t", fits, ok)
	}
	if _, _, ok := installed("/bin/bash"); ok {
		t.Error("a shell starts processes")
	}
}

// TestCandidates: what lies beside the launcher comes before what the loader finds, and of the families the
// standard ABI first.
func TestCandidates(t *testing.T) {
	dir := t.TempDir()
	check.OK(t, os.Mkdir(filepath.Join(dir, "lib"), 0o755))
	var files []string
	for _, f := range []Family{ABI, MPICH, OpenMPI} {
		files = append(files, filepath.Join(dir, "lib", f.names()[0]))
		check.OK(t, os.WriteFile(files[len(files)-1], nil, 0o644))
	}
	loader := slices.Concat(ABI.names(), MPICH.names(), OpenMPI.names())
	if got, want := (place{prefix: dir}).candidates(), append(slices.Clone(files), loader...); !slices.Equal(got,
		want) {
		t.Errorf("%v, want %v", got, want)
	}
	got := place{prefix: dir, fits: []Family{OpenMPI}}.candidates()
	if want := append([]string{files[2]}, OpenMPI.names()...); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestFit: a library of another MPI than the launcher's is passed over.
func TestFit(t *testing.T) {
	open, mpich := &api{version: "Open MPI v5.0"}, &api{version: "MPICH 4.0"}
	rows := []struct {
		fits        []Family
		open, mpich bool
	}{
		{nil, true, true}, {[]Family{OpenMPI, ABI}, true, false}, {[]Family{ABI, MPICH}, false, true},
		{[]Family{OpenMPI, ABI, MPICH}, true, true},
	}
	for _, r := range rows {
		p := place{fits: r.fits}
		if got := p.fit(open) == nil; got != r.open {
			t.Errorf("%v: Open MPI fits: %t", r.fits, got)
		}
		if got := p.fit(mpich) == nil; got != r.mpich {
			t.Errorf("%v: MPICH fits: %t", r.fits, got)
		}
	}
}

// TestMissing: a variable that names no library is an error that names it, and Connect of a process that was
// started on its own connects to nothing.
func TestMissing(t *testing.T) {
	t.Setenv(Variable, "/nowhere/libmpi.so")
	check.Fails(here().find())(t, Variable)
	if info := Probe(); info.Found || info.Reason == "" {
		t.Errorf("%+v", info)
	}
	if w, err := Connect(Options{}); w != nil || err != nil {
		t.Errorf("%v, %v", w, err)
	}
	t.Setenv("OMPI_COMM_WORLD_RANK", "0")
	t.Setenv("OMPI_COMM_WORLD_SIZE", "1")
	if w, err := Connect(Options{}); w != nil || err != nil {
		t.Errorf("%v, %v", w, err)
	}
	t.Setenv("OMPI_COMM_WORLD_SIZE", "2")
	for _, r := range []struct {
		o    Options
		want string
	}{
		{Options{}, "started by mpirun of Open MPI as one of several"},
		{Options{Wire: "fp8"}, `"fp8"`},
		{Options{Timeout: -1}, "timeout"},
	} {
		if w, err := Connect(r.o); w != nil || err == nil || !strings.Contains(err.Error(), r.want) {
			t.Errorf("%+v: %v, %v", r.o, w, err)
		}
	}
}
