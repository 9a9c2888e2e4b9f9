//go:build (linux || darwin) && (amd64 || arm64) && !static

package mpi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/check"
)

// The test program starts itself under every mpirun that it finds. A rank is told by a variable
// what it is to do.

// scenarioVariable names what a rank does instead of running tests.
const scenarioVariable = "GEOALIGN_MPI_SCENARIO"

// timeoutVariable is how long a rank waits.
const timeoutVariable = "GEOALIGN_MPI_TIMEOUT"

// scenarios are what ranks do. An error ends all of them.
var scenarios = map[string]func(w *World) error{}

func TestMain(m *testing.M) {
	name := os.Getenv(scenarioVariable)
	if name == "" {
		os.Exit(m.Run())
	}
	timeout, err := time.ParseDuration(os.Getenv(timeoutVariable))
	if err != nil {
		timeout = time.Minute
	}
	round := 0
	if name == "exchanges" {
		round = smallRound
	}
	w, err := Connect(Options{Timeout: timeout, round: round})
	if err == nil && w == nil {
		err = errors.New("this process is on its own")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	if err := scenarios[name](w); err != nil {
		w.Abort(err)
	}
	if err := w.Close(); err != nil {
		w.Abort(err)
	}
	Exit(0)
}

// mpiruns lists the launchers of this machine: those named in GEOALIGN_MPIRUN, as a list of files,
// or those on the path.
func mpiruns(tb testing.TB) []string {
	var out []string
	seen := map[string]bool{}
	names := filepath.SplitList(os.Getenv("GEOALIGN_MPIRUN"))
	if len(names) == 0 {
		names = []string{"mpirun", "mpirun.openmpi", "mpirun.mpich"}
	}
	for _, name := range names {
		file, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if real, err := filepath.EvalSymlinks(file); err == nil && !seen[real] {
			seen[real] = true
			out = append(out, file)
		}
	}
	if len(out) == 0 {
		tb.Skip("no mpirun: apt-get install openmpi-bin or mpich")
	}
	return out
}

// outcome is what became of the ranks.
type outcome struct {
	output string // of all ranks
	err    error  // of mpirun
	took   time.Duration
}

// ranks runs a scenario on n ranks.
func ranks(tb testing.TB, mpirun string, n int, scenario string, environment ...string) outcome {
	tb.Helper()
	self := check.Get(os.Executable())(tb)
	var args []string
	if openMPI(tb, mpirun) {
		args = append(args, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none")
	}
	args = append(args, "-n", strconv.Itoa(n), self)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, mpirun, args...)
	// Of programs that start at the same time, Open MPI has one fail to make the folder that all have by default.
	session := check.Get(os.MkdirTemp("", "mpi"))(tb)
	defer os.RemoveAll(session)
	c.Env = append(append(os.Environ(), scenarioVariable+"="+scenario, "OMPI_MCA_orte_tmpdir_base="+session), environment...)
	var both bytes.Buffer
	c.Stdout, c.Stderr = &both, &both
	c.WaitDelay = time.Second
	start := time.Now()
	err := c.Run()
	if ctx.Err() != nil {
		tb.Errorf("%s did not end", mpirun)
	}
	return outcome{both.String(), err, time.Since(start)}
}

// openMPI reports whether mpirun is of Open MPI.
func openMPI(tb testing.TB, mpirun string) bool {
	out, err := exec.Command(mpirun, "--version").CombinedOutput()
	if err != nil {
		tb.Skipf("%s --version: %v: %s", mpirun, err, out)
	}
	return bytes.Contains(out, []byte("Open MPI")) || bytes.Contains(out, []byte("OpenRTE")) ||
		bytes.Contains(out, []byte("PRRTE"))
}

// everywhere runs f for each mpirun and for 2 and 3 ranks.
func everywhere(t *testing.T, f func(t *testing.T, mpirun string, n int)) {
	for _, mpirun := range mpiruns(t) {
		for _, n := range []int{2, 3} {
			t.Run(fmt.Sprintf("%s-%d", filepath.Base(mpirun), n), func(t *testing.T) { f(t, mpirun, n) })
		}
	}
}
