package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/files"
)

// mainVariable makes the test binary the program itself: a library that crashes
// must not take the tests with it, and some variables are read at start only.
const mainVariable = "TRAINER_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(mainVariable) != "" {
		if kind := os.Getenv(faultVariable); kind != "" && os.Getpid() != 1 {
			go fault(kind)
		}
		files.SimulateFlock(os.Getenv(flockVariable))
		main()
		return
	}
	code := m.Run()
	if n := followedAdvices.Load(); n > 0 {
		fmt.Printf("%d advices of failed command lines followed\n", n)
	}
	os.Exit(code)
}

// spawn runs the program in a process of its own with further variables.
func spawn(t *testing.T, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	c := exec.Command(os.Args[0], args...)
	c.Env = append(append(os.Environ(), mainVariable+"=1", "XDG_CACHE_HOME="+t.TempDir()), env...)
	var out, errOut bytes.Buffer
	c.Stdout, c.Stderr = &out, &errOut
	if err := c.Run(); err != nil && c.ProcessState == nil {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), out.String(), errOut.String()
}

// A processor without AVX2 trains with plain Go.
func TestTrainWithoutVectorInstructions(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	code, _, stderr := spawn(t, []string{"GEOALIGN_CPU=plain"}, tinyArgs(dir, "--set", "compute.backend=builtin", "--max-steps", "6")...)
	if code != exitDone {
		t.Fatalf("code %d, stderr %s", code, stderr)
	}
	contains(t, stderr, "builtin", "plain")
	finiteLosses(t, dir)
}

// finiteLosses fails unless the log of a run has losses and all are numbers.
func finiteLosses(t *testing.T, dir string) {
	t.Helper()
	text := check.Get(os.ReadFile(filepath.Join(dir, "metrics.jsonl")))(t)
	losses := 0
	for line := range strings.Lines(string(text)) {
		var row map[string]any
		check.OK(t, json.Unmarshal([]byte(line), &row))
		if x, ok := row["loss"].(float64); ok {
			losses++
			if math.IsNaN(x) || math.IsInf(x, 0) || x <= 0 {
				t.Errorf("loss %v in %s", x, line)
			}
		}
	}
	if losses == 0 {
		t.Errorf("no loss in %s", text)
	}
}
