package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/cuda/cudatest"
	"github.com/geoalign/geoalign/internal/dynlib"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// cudaArgs is the command line of a run on the device, of six steps so small that the emulator makes them in a second.
func cudaArgs(out string, more ...string) []string {
	return tinyArgs(out, append([]string{"--quiet", "--max-steps", "6", "--set", "compute.device=cuda", "--set", "train.batch_size=4", "--set", "train.save_every_steps=2",
		"--set", "train.eval_every_steps=3", "--set", "train.log_every_steps=1", "--set", "train.keep_last=20", "--set", "model.image.depth=1", "--set", "model.text.layers=1",
		"--set", "model.text.fusion_layers=1", "--set", "data.scenes.val_samples=4", "--set", "eval.rerank_top=2"}, more...)...)
}

// endAt removes the checkpoints of a run after a step, as if it had ended there.
func endAt(t *testing.T, dir string, step int) {
	t.Helper()
	list := check.Get(filepath.Glob(filepath.Join(dir, "checkpoints", "step-*")))(t)
	for _, p := range list {
		if filepath.Base(p) > checkpointName(step) {
			check.OK(t, os.RemoveAll(p))
		}
	}
	check.OK(t, os.Remove(filepath.Join(dir, "checkpoints", "latest")))
}

// Two runs on the device have the same bits, also where one of them was resumed; micro-batches and other features
// included.
func TestCUDARunsEndTheSame(t *testing.T) {
	cudatest.Use(t)
	for name, set := range map[string][]string{
		"albef":               nil,
		"two micro-batches":   {"train.accumulate_steps=2", "train.batch_size=2"},
		"recomputed, bf16":    {"compute.recompute=true", "compute.precision=bf16"},
		"frozen image tower":  {"model.image.freeze=true"},
		"adapters":            {"model.lora.rank=2", "optimizer.no_decay=[]"},
		"no teacher":          {"momentum.enabled=false", "queue.size=0", "objective.distill.alpha=0", "objective.itc.weight=0"},
		"momentum by rule":    {"momentum.rule=dynamic"},
		"the best is kept":    {"train.keep_best=1"},
		"kernels are checked": {"compute.check_nan=true"},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name != "albef" && name != "two micro-batches" {
				t.Skip("three runs")
			}
			dir := t.TempDir()
			whole, parts := filepath.Join(dir, "whole"), filepath.Join(dir, "parts")
			must(t, exitDone, cudaArgs(whole, sets(set...)...)...)
			must(t, exitDone, cudaArgs(parts, sets(set...)...)...)
			sameRun(t, parts, whole)
			endAt(t, parts, 4)
			must(t, exitDone, cudaArgs(parts, sets(set...)...)...)
			sameRun(t, parts, whole)
		})
	}
}

// A run of the CPU goes on on the device and the other way round, and the resume says what has changed.
func TestCUDAResumeOnAnotherDevice(t *testing.T) {
	cudatest.Use(t)
	for _, devices := range [][2]string{{"cpu", "cuda"}, {"cuda", "cpu"}} {
		dir := filepath.Join(t.TempDir(), "run")
		must(t, exitDone, cudaArgs(dir, sets("compute.device="+devices[0])...)...)
		endAt(t, dir, 4)
		args := slices.DeleteFunc(cudaArgs(dir, sets("compute.device="+devices[1])...), func(s string) bool { return s == "--quiet" })
		_, stderr := must(t, exitDone, args...)
		contains(t, stderr, fmt.Sprintf("changed since the checkpoint: compute.device = %q (was %q)", devices[1], devices[0]),
			"changed since the checkpoint: kernels = ", "the numbers are not those of a run in one piece bit by bit", "going on from step 4")
	}
}

// Inference on the device with a checkpoint of the CPU gives the CPU's numbers to rounding.
func TestCUDAInference(t *testing.T) {
	cudatest.Use(t)
	dir := filepath.Join(t.TempDir(), "run")
	must(t, exitDone, cudaArgs(dir, sets("compute.device=cpu")...)...)
	same := func(what string, a, b []float32) {
		t.Helper()
		if len(a) == 0 || len(a) != len(b) || !(farthest(a, b) < 1e-4) {
			t.Errorf("%s: %d and %d values, %g apart", what, len(a), len(b), farthest(a, b))
		}
	}
	a, b := embedded(t, dir, "--set", "compute.device=cuda"), embedded(t, dir, "--set", "compute.device=cpu")
	same("embed", a, b)
	scores := func(device string) map[string]any {
		stdout, _ := must(t, exitDone, "eval", "--checkpoint", dir, "--json", "--set", "compute.device="+device)
		return parseJSON(t, stdout)
	}
	if got, want := fmt.Sprint(scores("cuda")), fmt.Sprint(scores("cpu")); got != want {
		t.Errorf("eval: %s, on the CPU %s", got, want)
	}
	image := picture(t, 16, 16)
	explanation := func(device string) (heat []float32) {
		e := explainJSON(t, "--checkpoint", dir, "--image", image, "--text", "a red square", "--out", t.TempDir(), "--set", "compute.device="+device)
		for _, s := range e.Scores {
			heat = append(heat, float32(s.Score))
			for _, v := range s.Image.Values {
				heat = append(heat, float32(v))
			}
		}
		return heat
	}
	same("explain", explanation("cuda"), explanation("cpu"))
	tuned := filepath.Join(t.TempDir(), "tuned")
	must(t, exitDone, "finetune", "--checkpoint", dir, "--out", tuned, "--quiet", "--max-steps", "2", "--set", "compute.device=cuda")
}

// A number that is not finite is found on the device too: the op is named, the step left out or gone back from.
func TestCUDANotFinite(t *testing.T) {
	cudatest.Use(t)
	stop := filepath.Join(t.TempDir(), "stop")
	fails(t, exitFailed, cudaArgs(stop, append(explode, "--set", "compute.check_nan=true")...), "stopped before the update", " made ")
	onlyFinite(t, stop)
	skip := filepath.Join(t.TempDir(), "skip")
	fails(t, exitFailed, cudaArgs(skip, append(explode, "--set", "train.on_nan=skip", "--max-steps", "40")...), "11 steps in a row were not finite")
	onlyFinite(t, skip)
	back := filepath.Join(t.TempDir(), "back")
	fails(t, exitFailed, cudaArgs(back, append(explode, "--set", "train.on_nan=rollback", "--set", "train.save_every_steps=1")...), "not finite again after 3 rollbacks")
	onlyFinite(t, back)
}

// broken runs the program on the emulator with further variables. It has to fail with one line of error, which it
// returns.
func broken(t *testing.T, env []string, args ...string) string {
	t.Helper()
	code, stdout, stderr := spawn(t, append([]string{cuda.LibrariesEnv + "=" + cudatest.Emulator(t)}, env...), args...)
	at := strings.Index(stderr, "trainer: ")
	if code != exitFailed || at < 0 {
		t.Fatalf("%v: code %d\nstdout: %s\nstderr: %s", env, code, stdout, stderr)
	}
	line := strings.TrimSuffix(stderr[at:], "\n")
	if strings.Contains(line, "\n") || strings.Contains(stderr, "goroutine") {
		t.Errorf("%v: more than one line of error:\n%s", env, stderr[at:])
	}
	return line
}

// What is missing, too old or full is told before a step is made.
func TestCUDAThatCannotBeUsed(t *testing.T) {
	library := cudatest.Emulator(t)
	text := write(t, "libcuda.so.1", "no library")
	for _, c := range []struct {
		env  string
		set  string
		want []string
	}{
		{cuda.LibrariesEnv + "=" + text, "", []string{"the NVIDIA driver cannot be used", text, "install the driver"}},
		{"CUDAEMU_FAIL=cuInit:1:100", "", []string{"no CUDA-capable device is detected (100)", "nvidia-smi", "CUDA_VISIBLE_DEVICES"}},
		{"CUDAEMU_FAIL=cuInit:1:803", "", []string{"the driver is older than the libraries"}},
		{"CUDAEMU_DRIVER=11040", "", []string{"is for CUDA 11.4", "CUDA 12 or newer is needed"}},
		{"CUDAEMU_CAPABILITY=75", "", []string{"has compute capability 7.5", "8.0 (Ampere) or newer is needed"}},
		{"CUDAEMU_FAIL=cublasLtCreate:1:1", "", []string{"cublasLtCreate: not initialised (1)", "nvidia-smi"}},
		{"CUDAEMU_FAIL=cuModuleLoadData:1+:222", "", []string{"step 0", "code of ", "the driver is older than the libraries"}},
		{"", "compute.device=cuda:3", []string{`compute.device = "cuda:3": cuda: there is no device 3: 1 are visible (CUDA_VISIBLE_DEVICES)`}},
		{"CUDAEMU_MEMORY=1000000", "", []string{" more are needed on Emulated CUDA device", "another process may hold memory"}},
		{"CUDAEMU_MEMORY=34000000", "", []string{"model: training takes at least", "of the device's memory", "are free"}},
		{"CUDAEMU_FAIL=cuMemAlloc_v2:8:2", "", []string{" more are needed on Emulated CUDA device", "train.batch_size"}},
	} {
		if dynlib.Static && strings.HasPrefix(c.env, cuda.LibrariesEnv) {
			continue
		}
		env := []string{cuda.LibrariesEnv + "=" + library}
		if c.env != "" {
			env = append(env, c.env)
		}
		dir := filepath.Join(t.TempDir(), "run")
		args := cudaArgs(dir)
		if c.set != "" {
			args = cudaArgs(dir, "--set", c.set)
		}
		contains(t, broken(t, env, args...), c.want...)
		if list, _ := filepath.Glob(filepath.Join(dir, "checkpoints", "*")); len(list) > 0 {
			t.Errorf("%s leaves %v", c.env, list)
		}
	}
}

// Whatever fails on the device, in a step, an evaluation or a save, the run ends with one error, and each checkpoint
// that is there has the bits of a run that nothing happened to; resumed, it ends with them.
func TestCUDAFailures(t *testing.T) {
	library := []string{cuda.LibrariesEnv + "=" + cudatest.Emulator(t)}
	dir := t.TempDir()
	whole := filepath.Join(dir, "whole")
	if code, _, stderr := spawn(t, library, cudaArgs(whole, "--set", "train.save_every_steps=1")...); code != exitDone {
		t.Fatal(stderr)
	}
	for i, c := range []struct {
		fail string
		// after the checkpoint of this step
		after int
		want  []string
	}{
		{"kernel:20", 0, []string{"step 0", "the device is lost", "--resume auto"}},
		{"kernel:40", 2, []string{"train: step 2", "the device is lost"}},
		{"cuGraphLaunch:1:46", 2, []string{"the device is lost"}},
		{"cuMemcpyDtoHAsync_v2:40:700", 2, []string{"the device is lost"}},
		{"cuMemcpyDtoHAsync_v2:150:700", 2, []string{"the device is lost"}},
		{"cuMemcpyDtoHAsync_v2:100:1", 2, []string{"invalid argument (1)"}}, // alone: what comes after it works
		{"cuMemcpyHtoDAsync_v2:30:1", 2, []string{"invalid argument (1)"}},
		{"cuLaunchKernel:1:1", 2, []string{"invalid argument (1)"}},
		{"cuMemAlloc_v2:1:2", 2, []string{"evaluation after step 3", " more are needed on"}},
		{"cublasLtMatmul:1:13", 2, []string{"execution failed (13)"}},
	} {
		run := filepath.Join(dir, fmt.Sprint(i))
		env := append([]string{"CUDAEMU_FAIL=" + c.fail}, library...)
		if c.after > 0 {
			env = append(env, "CUDAEMU_FAIL_AFTER="+filepath.Join(run, "checkpoints", checkpointName(c.after)))
		}
		contains(t, broken(t, env, cudaArgs(run)...), c.want...)
		sameCheckpoints(t, c.fail, run, whole, c.after)
		if i%4 != 1 {
			continue
		}
		if code, _, stderr := spawn(t, library, cudaArgs(run)...); code != exitDone {
			t.Errorf("%s: to go on: %s", c.fail, stderr)
		}
		sameRun(t, run, whole)
	}
}

// sameCheckpoints compares what a broken run has saved with the same steps of another, and wants the checkpoint of a
// step at least.
func sameCheckpoints(t *testing.T, what, run, whole string, step int) {
	t.Helper()
	folder := filepath.Join(run, "checkpoints")
	found := 0
	for _, name := range namesOf(folder) {
		if name == "latest" {
			continue
		}
		c, err := checkpoint.Load(filepath.Join(folder, name))
		if err != nil {
			t.Errorf("%s: left in the folder: %s: %v", what, name, err)
			continue
		}
		found = max(found, c.Step)
		c.Close()
		a, b := tensorFiles(t, filepath.Join(folder, name)), tensorFiles(t, filepath.Join(whole, "checkpoints", name))
		if !maps.EqualFunc(a, b, bytes.Equal) {
			t.Errorf("%s: %s has other values than without a failure", what, name)
		}
	}
	if found < step {
		t.Errorf("%s: the newest checkpoint is of step %d", what, found)
	}
}

// namesOf lists a folder, which need not be there.
func namesOf(dir string) (list []string) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		panic(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// doctor measures a device as large as it finds it; a dry run says what the steps take of its memory.
func TestCUDAReports(t *testing.T) {
	env := []string{cuda.LibrariesEnv + "=" + cudatest.Emulator(t), "CUDAEMU_MEMORY=48000000"}
	code, stdout, stderr := spawn(t, env, "doctor", "--json", "--threads", "1")
	if code != exitDone {
		t.Fatal(stderr)
	}
	g := parseJSON(t, stdout)["cuda"].(map[string]any)
	if g["found"] != true || g["side"] != 512.0 || !(g["gflops"].(float64) > 0) || !(g["bf16_gflops"].(float64) > 0) {
		t.Errorf("doctor: %v", g)
	}
	env = env[:1]
	code, stdout, stderr = spawn(t, env, loud(cudaArgs(filepath.Join(t.TempDir(), "run"), "--dry-run"))...)
	if code != exitDone {
		t.Fatal(stderr)
	}
	contains(t, stdout, "memory of the device: ", "MB at most in these steps, of 4096.0 MB that this program can have", "Emulated CUDA device")
}
