package checkpoint

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/state"
	"github.com/geoalign/geoalign/train/checkpoint/checkpointtest"
)

// change rewrites a file by its bytes.
func change(t *testing.T, path string, f func(b []byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, f(b), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A changed bit of latest may name another checkpoint that is whole: it is not taken.
func TestDamagedLatest(t *testing.T) {
	dir := t.TempDir()
	save(t, newStore(t, dir, Retention{}), 10, 11, 12, 14, 18)
	path := filepath.Join(dir, latestName)
	whole := check.Get(os.ReadFile(path))(t)
	for i := range 8 * len("step-00000018\n") {
		change(t, path, func([]byte) []byte {
			b := slices.Clone(whole)
			b[i/8] ^= 1 << (i % 8)
			return b
		})
		c := load(t, dir)
		if c.Step != 18 || c.Notice == "" {
			t.Fatalf("bit %d: step %d with the notice %q", i, c.Step, c.Notice)
		}
	}
	change(t, path, func([]byte) []byte { return []byte("step-00000012\n") }) // of an earlier version
	if c := load(t, dir); c.Step != 12 || c.Notice != "" {
		t.Errorf("without a checksum: step %d with the notice %q", c.Step, c.Notice)
	}
}

// Whatever happens to a file of the newest checkpoint, the one before is taken with a
// notice, and the newest refused where it is named.
func TestDamageIsFound(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	flip := func(b []byte) []byte {
		b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
		return b
	}
	type damage func(t *testing.T, step string)
	one := func(name string, f func(b []byte) []byte) damage {
		return func(t *testing.T, step string) { t.Helper(); change(t, filepath.Join(step, name), f) }
	}
	cases := map[string]damage{
		"zeros": one("model.safetensors", func(b []byte) []byte {
			clear(b[len(b)/2:][:32<<10])
			return b
		}),
		"truncated":  one("model.safetensors", func(b []byte) []byte { return b[:len(b)-1] }),
		"longer":     one("vocab.txt", func(b []byte) []byte { return append(b, 0) }),
		"empty":      one(manifestName, func([]byte) []byte { return nil }),
		"null":       one(manifestName, func([]byte) []byte { return []byte("null") }),
		"half state": one(manifestName, func(b []byte) []byte { return b[:len(b)/2] }),
		"swapped": func(t *testing.T, step string) { // queue.safetensors of two steps are of one size
			other := filepath.Join(filepath.Dir(step), folderName(10), "queue.safetensors")
			text := check.Get(os.ReadFile(other))(t)
			change(t, filepath.Join(step, "queue.safetensors"), func([]byte) []byte { return text })
		},
		"folder of another step": func(t *testing.T, step string) {
			check.OK(t, os.RemoveAll(step))
			check.OK(t, os.CopyFS(step, os.DirFS(filepath.Join(filepath.Dir(step), folderName(10)))))
		},
		"no checksum": one(manifestName, func(b []byte) []byte {
			return []byte(strings.Replace(string(b), `"checksum"`, `"other"`, 1))
		}),
	}
	for _, file := range []string{manifestName, "model.safetensors", "queue.safetensors", "vocab.txt"} {
		for range 6 {
			cases["bit of "+file+" "+string(rune('a'+len(cases)))] = one(file, flip)
		}
	}
	for name, damage := range cases {
		dir := t.TempDir()
		save(t, newStore(t, dir, Retention{}), 10, 20)
		step := filepath.Join(dir, folderName(20))
		damage(t, step)
		if err := loadError(step); err == nil || !strings.Contains(err.Error(), "is damaged") {
			t.Errorf("%s: the step folder gives %v", name, err)
		}
		c, err := Load(dir)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if c.Step != 10 || !strings.Contains(c.Notice, "is damaged") || !strings.Contains(c.Notice, "step 10") {
			t.Errorf("%s: step %d, notice %q", name, c.Step, c.Notice)
		}
		c.Close()
		list, err := Verify(dir)
		if err != nil || len(list) != 2 || list[0].Problem != "" || !strings.Contains(list[1].Problem, "is damaged") {
			t.Errorf("%s: verified %+v, %v", name, list, err)
		}
	}
}

// With nothing else to take, damage is an error and not the same as no checkpoint at all,
// over which a run would start anew.
func TestOnlyCheckpointDamaged(t *testing.T) {
	dir := t.TempDir()
	save(t, newStore(t, dir, Retention{}), 10)
	change(t, filepath.Join(dir, folderName(10), "model.safetensors"),
		func(b []byte) []byte { b[len(b)-1]++; return b })
	_, err := Load(dir)
	if err == nil || strings.Contains(err.Error(), ErrNone.Error()+" in") ||
		!strings.Contains(err.Error(), "model.safetensors has checksum ") {
		t.Errorf("got %v", err)
	}
}

// The one before latest is a lower step, not what a run that went back left above it.
func TestDamageAfterGoingBack(t *testing.T) {
	dir := t.TempDir()
	save(t, newStore(t, dir, Retention{}), 20, 90, 25)
	change(t, filepath.Join(dir, folderName(25), "model.safetensors"),
		func(b []byte) []byte { b[len(b)-1]++; return b })
	if c := load(t, dir); c.Step != 20 {
		t.Errorf("got step %d, want 20", c.Step)
	}
	change(t, filepath.Join(dir, folderName(20), "model.safetensors"),
		func(b []byte) []byte { b[len(b)-1]++; return b })
	if c := load(t, dir); c.Step != 90 {
		t.Errorf("got step %d, want 90, the only one left", c.Step)
	}
}

// Open checks the tensors that the caller names, and others when they are read.
func TestOpenChecksWhatIsRead(t *testing.T) {
	dir := t.TempDir()
	save(t, newStore(t, dir, Retention{}), 10, 20)
	change(t, filepath.Join(dir, folderName(20), "queue.safetensors"),
		func(b []byte) []byte { b[len(b)-1]++; return b })
	c := check.Get(Open(dir, "model"))(t)
	defer c.Close()
	if c.Step != 20 || c.Notice != "" {
		t.Errorf("step %d, notice %q", c.Step, c.Notice)
	}
	if err := c.ReadInt64("queue", "ids", []int{2}, make([]int64, 2)); err == nil ||
		!strings.Contains(err.Error(), "queue.safetensors has checksum ") {
		t.Errorf("reading the damaged tensors gives %v", err)
	}
	if c, err := Open(dir, "queue"); err != nil || c.Step != 10 {
		t.Errorf("got %v", err)
	} else {
		c.Close()
	}
}

// An edited state.json is refused in words of the format, also where its checksum was
// made to fit or it is of a time before there were any.
func TestEditedState(t *testing.T) {
	for _, x := range []struct{ old, new, want string }{
		{`"step": 20`, `"step": 21`, "step is 21, want 20 as the folder says"},
		{`"step": 20`, `"step": null`, "step is null, want a whole number"},
		{`"step": 20`, `"step": "20"`, `step is the text "20", want a whole number`},
		{`"step": 20`, `"step": 20.5`, "step is 20.5, want a whole number"},
		{`"step": 20`, `"step": 1e99`, "step is 1e99, want a whole number"},
		{`"step": 20`, `"step": []`, "step is a list, want a whole number"},
		{`"version": 3`, `"version": "3"`, `version is the text "3", want a whole number`},
		{`"version": 3`, `"version": null`, "version is missing"},
		{`"version": 3`, `"version": 2`, "files.model.safetensors is an object, want a whole number"},
		{`"files": {`, `"files": null, "was": {`, "files are missing"},
		{`"files": {`, `"files": 7, "was": {`, "files is 7, want an object"},
		{`"parts": {`, `"parts": null, "was": {`, "parts are missing"},
		{`"parts": {`, `"parts": {"x": null,`, "parts.x is null, want an object"},
		{`"parts": {`, `"parts": {"x": {"version": true},`, "parts.x.version is true, want a whole number"},
		{`"bytes"`, `"size"`, "bytes, want "},
		{`"crc32c"`, `"md5"`, "has no checksum"},
		{`"vocab.txt"`, `"../vocab.txt"`, `file "../vocab.txt" of 6 bytes: the name is not that of another file`},
		{`"step": 20`, `"step": 20,,`, "it is not JSON: invalid character"},
	} {
		dir := t.TempDir()
		save(t, newStore(t, dir, Retention{}), 10, 20)
		step := filepath.Join(dir, folderName(20))
		edited := func(b []byte) []byte {
			if !strings.Contains(string(b), x.old) {
				t.Fatalf("no %s in %s", x.old, b)
			}
			return []byte(strings.Replace(string(b), x.old, x.new, 1))
		}
		change(t, filepath.Join(step, manifestName), edited)
		if err := loadError(step); err == nil || !strings.Contains(err.Error(), "is damaged") {
			t.Errorf("%s: got %v", x.new, err)
		}
		checkpointtest.Reseal(t, step)
		err := loadError(step)
		if err == nil || !strings.Contains(err.Error(), x.want) || strings.Contains(err.Error(), "Go ") {
			t.Errorf("%s: got %v, want an error with %q", x.new, err, x.want)
		}
		if c := load(t, dir); c.Step != 10 {
			t.Errorf("%s: step %d is taken", x.new, c.Step)
		}
	}
}

// Counters are of the kind that their part has: a null is not a zero.
func TestEditedCounters(t *testing.T) {
	type numbers struct {
		Position uint64             `json:"position"`
		Loss     float64            `json:"loss"`
		Name     string             `json:"name"`
		Done     bool               `json:"done"`
		List     []int32            `json:"list"`
		Values   map[string]float64 `json:"values"`
		Inner    *numbers           `json:"inner"`
	}
	n := numbers{Position: 7, Loss: 0.5, Name: "a", Done: true, List: []int32{1, 2}, Values: map[string]float64{"x": 3}}
	for _, x := range []struct{ old, new, want string }{
		{`"position": 7`, `"position": null`, "position is null, want a whole number, 0 or more"},
		{`"position": 7`, `"position": -7`, "position is -7, want a whole number, 0 or more"},
		{`"position": 7`, `"position": 18446744073709551616`, "want a whole number, 0 or more"},
		{`"loss": 0.5`, `"loss": {}`, "loss is an object, want a number"},
		{`"name": "a"`, `"name": 3`, "name is 3, want a text"},
		{`"done": true`, `"done": 1`, "done is 1, want true or false"},
		{`"list": [`, `"list": [4294967296, `, "list[0] is 4294967296, want a whole number"},
		{`"x": 3`, `"x": "3"`, `values.x is the text "3", want a number`},
		{`"inner": null`, `"inner": []`, "inner is a list, want an object"},
		{`"inner": null`, `"inner": null, "odd": 1`, `unknown field "odd"`},
	} {
		c := rewrite(t, saved(t, state.Values{Name: "part", Numbers: &n}), x.old, x.new)
		got := n
		_, err := c.Restore([]state.Part{state.Values{Name: "part", Numbers: &got}})
		if err == nil || !strings.Contains(err.Error(), x.want) || strings.Contains(err.Error(), "Go ") {
			t.Errorf("%s: got %v, want an error with %q", x.new, err, x.want)
		}
	}
}

// Folders that were written before there were checksums are read by their sizes, and stay
// of their version when a metric is recorded.
func TestVersion2(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, dir, Retention{})
	save(t, s, 10)
	step := filepath.Join(dir, folderName(10))
	const text = `{"version": 2, "step": 10, "files": {"model.safetensors": SIZE}, "parts": {"model": {"version": 1}}}`
	st := check.Get(os.Stat(filepath.Join(step, "model.safetensors")))(t)
	change(t, filepath.Join(step, manifestName), func([]byte) []byte {
		return []byte(strings.Replace(text, "SIZE", strconv.FormatInt(st.Size(), 10), 1))
	})
	check.OK(t, s.SetMetric(10, Metric{"m", 2.5}))
	c := load(t, dir)
	if c.Metric == nil || c.Metric.Value != 2.5 || c.manifest.read != 2 ||
		c.manifest.Files["model.safetensors"].Sum != "" {
		t.Errorf("got %+v", c.manifest)
	}
	if err := c.ReadFloat32("model", "temperature", nil, make([]float32, 1)); err != nil {
		t.Error(err)
	}
}

// unsynced is a file that is not waited for, to save more often.
type unsynced struct{ *os.File }

func (unsynced) Sync() error { return nil }

// While one process saves, replaces and prunes as fast as it can, readers always get a whole
// checkpoint, without a notice, and what they opened stays readable.
func TestReadersBesideAWriter(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, dir, Retention{Last: 1})
	s.create = func(path string) (file, error) { f, err := os.Create(path); return unsynced{f}, err }
	save(t, s, 1)
	var all sync.WaitGroup
	done := make(chan struct{})
	reader := func(read func() error) {
		all.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if err := read(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 2 {
		reader(func() error {
			c, err := Load(dir)
			if err != nil {
				return err
			}
			defer c.Close()
			if c.Notice != "" {
				return errors.New(c.Notice)
			}
			time.Sleep(3 * time.Millisecond) // it is pruned meanwhile
			got := make([]float32, 30000)
			if err := c.ReadFloat32("model", "a/weight", []int{3, 10000}, got); err != nil {
				return err
			}
			if !slices.Equal(got, weights(c.Step)) {
				return fmt.Errorf("the weights of step %d are of another", c.Step)
			}
			_, err = c.File("vocab.txt")
			return err
		})
	}
	reader(func() error {
		list, err := Verify(dir)
		for _, v := range list {
			if v.Problem != "" {
				return errors.New(v.Problem)
			}
		}
		return err
	})
	for step := 2; step < 80; step++ {
		save(t, s, step)
		if step%3 == 0 {
			save(t, s, step) // replaced
		}
		check.OK(t, s.SetMetric(step, Metric{Value: float64(step)}))
		check.Get(s.Prune())(t)
	}
	close(done)
	all.Wait()
}

// BenchmarkSave writes 256 MB with and without checksums.
func BenchmarkSave(b *testing.B) {
	x := make([]float32, 64<<20)
	for i := range x {
		x[i] = float32(math.Sin(float64(i)))
	}
	s := take([]state.Part{state.Values{Name: "model",
		Memory: []state.Tensor{{Name: "w", Shape: []int{len(x)}, Data: x}}}})
	for _, sums := range []bool{true, false} {
		name := map[bool]string{true: "checksums", false: "without"}[sums]
		b.Run(name, func(b *testing.B) {
			store := check.Get(NewStore(b.TempDir(), Retention{}))(b)
			store.noSums = !sums
			b.SetBytes(int64(4 * len(x)))
			for b.Loop() {
				check.OK(b, store.Save(1, s))
			}
		})
	}
}
