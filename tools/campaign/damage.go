package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/train/checkpoint"
	"github.com/geoalign/geoalign/train/runlog"
)

// readers are the commands that read checkpoints, with the tensors that each reads besides
// what is not a tensor; of the others it may take any damage without a word.
var readers = []struct {
	name   string
	groups []string // nil: all
	args   func(c *campaign) []string
}{
	{"train", nil, func(c *campaign) []string { return c.train("--max-steps", "8") }},
	{"eval", []string{"model"}, func(*campaign) []string { return []string{"eval", "--checkpoint", "run"} }},
	{"embed", []string{"model"}, func(*campaign) []string { return []string{"embed", "--checkpoint", "run"} }},
	{"finetune", []string{"model", "momentum"}, func(*campaign) []string {
		return []string{"finetune", "--checkpoint", "run", "--out", "tuned", "--max-steps", "1"}
	}},
}

// kinds are what may happen to the bytes of a file. nil is a file that is gone.
var kinds = []struct {
	name string
	do   func(c *campaign, b []byte) []byte
}{
	{"a bit flipped", func(c *campaign, b []byte) []byte {
		b[c.rand.IntN(len(b))] ^= 1 << c.rand.IntN(8)
		return b
	}},
	{"a byte changed", func(c *campaign, b []byte) []byte {
		b[c.rand.IntN(len(b))] ^= byte(1 + c.rand.IntN(255))
		return b
	}},
	{"cut short", func(c *campaign, b []byte) []byte { return b[:c.rand.IntN(len(b))] }},
	{"zeros in it", func(c *campaign, b []byte) []byte {
		from := c.rand.IntN(len(b))
		clear(b[from:][:1+c.rand.IntN(min(4096, len(b)-from))])
		return b
	}},
	{"longer", func(c *campaign, b []byte) []byte { return append(b, make([]byte, 1+c.rand.IntN(100))...) }},
	{"gone", func(*campaign, []byte) []byte { return nil }},
}

// damage changes files of the newest checkpoint of a run and has a command read it. Each must
// take the checkpoint before and say so; train must then end as if nothing had been.
func (c *campaign) damage() error {
	if _, err := c.done(c.dir, c.train("--quiet", "--max-steps", "8")...); err != nil {
		return err
	}
	whole := os.DirFS(filepath.Join(c.dir, "run"))
	var wrong failures
	counts := map[string]int{}
	for i := range c.n {
		reader := readers[i%len(readers)]
		dir := filepath.Join(c.dir, "damaged")
		if err := os.CopyFS(filepath.Join(dir, "run"), whole); err != nil {
			return err
		}
		what, want, err := c.spoil(filepath.Join(dir, "run", runlog.CheckpointsDir), reader.groups)
		if err != nil {
			return err
		}
		if err := c.found(dir, want); err != nil {
			wrong.add("%s: %v", what, err)
		}
		code, out, err := c.trainer(dir, reader.args(c)...)
		told := fmt.Sprintf("taking the newest complete checkpoint before it, step %d", want.step)
		switch {
		case err != nil:
			wrong.add("%s: %v", what, err)
		case code != 0 || want.told && !strings.Contains(out, told):
			wrong.add("%s: %s ended with %d, without %q:\n%s", what, reader.name, code, told, tail(out))
		case reader.name == "train":
			if err := sameRun(filepath.Join(dir, "run"), filepath.Join(c.dir, "run")); err != nil {
				wrong.add("%s: %v", what, err)
			}
		}
		counts[reader.name]++
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	c.say("%d damages read by %v: %d failures", c.n, counts, wrong.n)
	return wrong.err()
}

// expected is what a reader of a damaged run should take.
type expected struct {
	step int
	told bool // with a notice
}

// spoil damages one file of the newest checkpoint in folder, or latest, and says what it did.
// Only files that a reader of groups reads are damaged.
func (c *campaign) spoil(folder string, groups []string) (what string, want expected, err error) {
	list, err := checkpoint.List(folder)
	if err != nil || len(list) < 2 {
		return "", want, errors.Join(err, fmt.Errorf("%d checkpoints in %s, want 2 or more", len(list), folder))
	}
	newest, before := list[len(list)-1], list[len(list)-2]
	paths := []string{filepath.Join(folder, "latest")}
	names, err := os.ReadDir(newest.Path)
	if err != nil {
		return "", want, err
	}
	for _, e := range names {
		group, tensors := strings.CutSuffix(e.Name(), ".safetensors")
		if !tensors || groups == nil || slices.Contains(groups, group) {
			paths = append(paths, filepath.Join(newest.Path, e.Name()))
		}
	}
	path := paths[c.rand.IntN(len(paths))]
	b, err := os.ReadFile(path)
	if err != nil {
		return "", want, err
	}
	want = expected{before.Step, true}
	if filepath.Base(path) == "latest" { // it only says what is newest
		want = expected{newest.Step, false}
	}
	for {
		kind := kinds[c.rand.IntN(len(kinds))]
		changed := kind.do(c, slices.Clone(b))
		switch {
		case changed == nil:
			err = os.Remove(path)
		case bytes.Equal(changed, b):
			continue // zeros over zeros
		default:
			err = os.WriteFile(path, changed, 0o666)
		}
		return fmt.Sprintf("%s: %s", filepath.Base(path), kind.name), want, err
	}
}

// found loads the checkpoint of a damaged run as a library does.
func (c *campaign) found(dir string, want expected) error {
	ck, err := checkpoint.Load(filepath.Join(dir, "run"))
	if err != nil {
		return err
	}
	defer ck.Close()
	if ck.Step != want.step || want.told && ck.Notice == "" {
		return fmt.Errorf("step %d is taken with the notice %q, want step %d", ck.Step, ck.Notice, want.step)
	}
	return nil
}
