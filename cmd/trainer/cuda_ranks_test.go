package main

import (
	"context"
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/cuda/cudatest"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// emulated gives what mpirun starts an emulator with so many devices.
func emulated(c *exec.Cmd, library, devices string) {
	c.Env = append(c.Env, cuda.LibrariesEnv+"="+library, "CUDAEMU_DEVICES="+devices)
}

// loud takes --quiet out of a command line.
func loud(args []string) []string {
	return slices.DeleteFunc(args, func(s string) bool { return s == "--quiet" })
}

// cudaRanks runs a command line on n ranks with an emulator of so many devices, which must end with the exit code want.
func cudaRanks(t *testing.T, n int, devices string, want int, args ...string) string {
	t.Helper()
	library := cudatest.Emulator(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, output := mpirun(t, ctx, n, args...)
	emulated(c, library, devices)
	if err := c.Run(); c.ProcessState == nil || c.ProcessState.ExitCode() != want {
		t.Fatalf("%d ranks on %s devices, %q: %v, want exit code %d\n%s", n, devices, args, err, want, output)
	}
	return output.String()
}

// TestCUDARanksTrainLikeOne: two and four ranks, each on a device of its own, have the losses and gradient norms of one
// process on a device, over an evaluation, saves and a change of their number; so have two that share a device.
func TestCUDARanksTrainLikeOne(t *testing.T) {
	library := cudatest.Emulator(t)
	for name, x := range map[string]struct {
		sets, of2 []string
	}{
		"albef":         {nil, nil},
		"shared":        {nil, []string{"--set", "compute.device=cuda:0"}},
		"micro-batches": {[]string{"--set", "train.accumulate_steps=2"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			one, many := filepath.Join(dir, "one"), filepath.Join(dir, "many")
			sets := append([]string{"--set", "compute.threads=1", "--set", "parallel.bucket_mb=1"}, x.sets...)
			if code, _, stderr := spawn(t, []string{cuda.LibrariesEnv + "=" + library}, cudaArgs(one, sets...)...); code != exitDone {
				t.Fatal(stderr)
			}
			devices := "2"
			if x.of2 != nil {
				devices = "1"
			}
			said := cudaRanks(t, 2, devices, exitDone, loud(cudaArgs(many, slices.Concat(sets, x.of2, []string{"--max-steps", "3"})...))...)
			if shares := strings.Contains(said, "warning: ranks 0 and 1 share one GPU"); shares != (x.of2 != nil) {
				t.Errorf("says that devices are shared: %v\n%s", shares, said)
			}
			cudaRanks(t, 4, "4", exitDone, cudaArgs(many, sets...)...)
			got, want := rows(t, many), rows(t, one)
			if len(got) != len(want) || len(want) < 6 {
				t.Fatalf("%d rows, want %d", len(got), len(want))
			}
			for i, w := range want {
				for _, key := range []string{"loss", "grad_norm"} {
					if a, b := got[i].Values[key], w.Values[key]; got[i].Step != w.Step || !(math.Abs(a-b) <= 1e-5*math.Abs(b)) {
						t.Errorf("step %d: %s %v, want %v of step %d", got[i].Step, key, a, b, w.Step)
					}
				}
			}
		})
	}
}

// TestCUDARanksAreTold which device each has, and what is wrong with them in one error.
func TestCUDARanksAreTold(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	contains(t, cudaRanks(t, 2, "3", exitDone, loud(cudaArgs(none, "--dry-run"))...), "rank 0: Emulated CUDA device on ", ", cuda:0, GPU-00000000-0000-0000-0000-000000000000\n",
		"rank 1: Emulated CUDA device on ", ", cuda:1, GPU-00000000-0000-0000-0000-000000000001\n", "2 processes with 2 rows")
	said := cudaRanks(t, 2, "1", exitFailed, cudaArgs(none)...)
	contains(t, said, `trainer: rank 0: compute.device = "cuda": ranks 0 and 1 have the same GPU`, "(this one sees 1;", `compute.device = "cuda:0"`)
	if strings.Count(said, "have the same GPU") != 1 {
		t.Errorf("not one error:\n%s", said)
	}
	said = cudaRanks(t, 2, "2", exitFailed, cudaArgs(none, "--set", "compute.device=cuda:5")...)
	if strings.Count(said, "there is no device 5: 2 are visible") != 1 {
		t.Errorf("not one error:\n%s", said)
	}
	t.Setenv("CUDAEMU_MEMORY", "400000000") // too little for the large product that bench measures
	contains(t, cudaRanks(t, 2, "2", exitDone, "bench", "--config", tiny, "--set", "compute.device=cuda", "--set", "train.batch_size=4", "--steps", "2", "--warmup", "1"),
		"2 processes with 2 rows each", "Emulated CUDA device")
	code, stdout, stderr := spawn(t, []string{cuda.LibrariesEnv + "=" + cudatest.Emulator(t), "CUDAEMU_DEVICES=2", "CUDAEMU_MEMORY=48000000"}, "doctor", "--threads", "1")
	if code != exitDone {
		t.Fatal(stderr)
	}
	contains(t, stdout, "\ncuda       found Emulated", "\ncuda:1     found Emulated")
}

// besideAnother runs a command line on two ranks with a device each, of which the second has further variables.
func besideAnother(t *testing.T, env []string, args ...string) (said string, code int) {
	t.Helper()
	library := cudatest.Emulator(t)
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	c, output := mpirun(t, ctx, 1, args...)
	emulated(c, library, "2")
	own := c.Args[slices.Index(c.Args, "-n")+2:]
	c.Args = slices.Concat(c.Args, []string{":", "-n", "1", "env"}, env, own)
	if err := c.Run(); ctx.Err() != nil || c.ProcessState == nil {
		t.Fatalf("%v: %v\n%s", env, err, output)
	}
	return output.String(), c.ProcessState.ExitCode()
}

// TestCUDAARankFails: where the device of one rank is full, too small or lost, that is one error, all end at once, and
// the newest checkpoint is whole.
func TestCUDAARankFails(t *testing.T) {
	for _, x := range []struct {
		env, want string
		after     int // the checkpoint of this step
	}{
		{"CUDAEMU_FAIL=cuMemcpyDtoHAsync_v2:20:700", "the device is lost", 2},
		{"CUDAEMU_FAIL=cuMemAlloc_v2:1:2", " more are needed on Emulated CUDA device", 2},
		{"CUDAEMU_MEMORY=34000000", "training takes at least", 0},
		{"CUDAEMU_FAIL=cuInit:1:100", "no CUDA-capable device is detected", 0},
	} {
		run := filepath.Join(t.TempDir(), "run")
		env := []string{x.env}
		if x.after > 0 {
			env = append(env, "CUDAEMU_FAIL_AFTER="+filepath.Join(run, "checkpoints", checkpointName(x.after)))
		}
		said, code := besideAnother(t, env, cudaArgs(run)...)
		contains(t, said, "rank 1: ", x.want)
		if code == exitDone || strings.Count(said, x.want) != 1 || strings.Contains(said, "goroutine") {
			t.Errorf("%s: not one error, code %d:\n%s", x.env, code, said)
		}
		if x.after == 0 {
			continue
		}
		list, err := checkpoint.Verify(run)
		if err != nil || len(list) == 0 || list[len(list)-1].Problem != "" {
			t.Errorf("%s: checkpoints %+v: %v", x.env, list, err)
		}
	}
}

// TestCUDARanksSeeTheirOwn: a launcher may show each rank one GPU alone, which must not be that of another rank.
func TestCUDARanksSeeTheirOwn(t *testing.T) {
	args := loud(cudaArgs(filepath.Join(t.TempDir(), "run"), "--dry-run"))
	for shown, want := range map[string]string{
		"1": "cuda:0, GPU-00000000-0000-0000-0000-000000000001\n",
		"0": "ranks 0 and 1 have the same GPU (00000000-0000-0000-0000-000000000000)",
		"":  "rank 1: compute.device = \"cuda\": cuda: there is no device 0: 0 are visible",
	} {
		said, _ := besideAnother(t, []string{"CUDA_VISIBLE_DEVICES=" + shown}, args...)
		contains(t, said, want)
	}
}

// TestCUDARanksDiffer: other GPUs are a warning.
func TestCUDARanksDiffer(t *testing.T) {
	said, code := besideAnother(t, []string{"CUDAEMU_CAPABILITY=80"}, loud(cudaArgs(filepath.Join(t.TempDir(), "run"), "--max-steps", "1"))...)
	if code != exitDone {
		t.Error(said)
	}
	contains(t, said, "warning: rank 1 computes with cuda: Emulated CUDA device (compute capability 8.0, ", "give all the same processors and GPUs")
}
