package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/train"
	"github.com/geoalign/geoalign/train/checkpoint"
	"github.com/geoalign/geoalign/train/runlog"
)

// placeRun decides on the run folder and the checkpoint to go on from.
func placeRun(cfg *config.Config, resume string, note io.Writer) (dir string, from *checkpoint.Checkpoint, err error) {
	dir = cfg.Run.Out
	if dir == "" {
		dir = filepath.Join("runs", cfg.Run.Name)
	}
	wrong := ""
	switch st, err := os.Stat(dir); {
	case err == nil && !st.IsDir():
		wrong = "is a file"
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		wrong = err.Error()
	}
	if wrong != "" {
		return "", nil, config.Errors{{Path: "run.out", Value: dir, Msg: wrong, Hint: "choose another folder with --out"}}
	}
	switch resume {
	case "auto":
		from, err = checkpoint.Load(dir)
		if errors.Is(err, checkpoint.ErrNone) {
			from, err = nil, nil
		}
	case "never":
		base := dir
		for n := 2; hasRun(dir); n++ { // an earlier run is never overwritten
			dir = fmt.Sprintf("%s-%d", base, n)
		}
		if dir != base {
			fmt.Fprintf(note, "%s holds an earlier run: this one goes to %s\n", base, dir)
		}
	default:
		if from, err = checkpoint.Load(resume); err != nil {
			return "", nil, fmt.Errorf("--resume %s: %w", resume, err)
		}
		if hasRun(dir) && !within(dir, from.Path) {
			from.Close()
			return "", nil, usageError{fmt.Errorf("%s holds another run than %s: choose another folder with --out", dir, from.Path)}
		}
	}
	if err != nil {
		return "", nil, err
	}
	if from != nil && from.Notice != "" {
		fmt.Fprintln(note, from.Notice)
	}
	cfg.Run.Out = dir
	return dir, from, nil
}

func hasRun(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, runlog.CheckpointsDir))
	return err == nil
}

// within reports whether path lies below dir.
func within(dir, path string) bool {
	a, err1 := filepath.Abs(dir)
	b, err2 := filepath.Abs(path)
	return err1 == nil && err2 == nil && strings.HasPrefix(b, a+string(filepath.Separator))
}

// writable makes the run folder and tries to write there, before the work that a
// run begins with.
func writable(dir string) error {
	err := os.MkdirAll(dir, 0o777)
	if err == nil {
		var f *os.File
		if f, err = os.CreateTemp(dir, ".tmp-probe-"); err == nil {
			err = errors.Join(f.Close(), os.Remove(f.Name()))
		}
	}
	if err != nil {
		return fmt.Errorf("run.out: %w: make the folder writable or choose another with --out", err)
	}
	return nil
}

// Keys that a checkpoint fixes.
var (
	// headKeys change what the same parameters compute.
	headKeys = []string{"model.system", "model.image.heads", "model.text.heads"}
	// modelKeys are the architecture.
	modelKeys = append(slices.Clone(headKeys), "model.image.size", "model.image.patch", "model.image.depth", "model.image.width",
		"model.image.mlp", "model.text.layers", "model.text.fusion_layers", "model.text.width", "model.text.mlp",
		"model.text.positions", "model.head.dim", "model.head.topology", "model.head.token_blocks", "model.head.hidden",
		"objective.itc.log_temperature", "objective.gssf.form", "objective.gssf.blocks", "objective.swav.prototypes")
	// runKeys cannot change within a run.
	runKeys = append(slices.Clone(modelKeys), "run.seed", "queue.size", "momentum.enabled", "init.checkpoint")
	// freeKeys are not worth a word when a run goes on with another value.
	freeKeys = []string{"run.name", "run.out"}
)

// difference is a key with another value in a checkpoint's configuration.
type difference struct {
	path     string
	was, now any
}

// ownConfig returns the configuration that a checkpoint was made with.
func ownConfig(ck *checkpoint.Checkpoint) (config.Config, error) {
	old, err := train.OpenConfig(ck)
	if err != nil {
		return old, fmt.Errorf("the checkpoint's own configuration: %w", err)
	}
	return old, nil
}

// differences compares the configuration of a checkpoint with cfg.
func differences(old, cfg config.Config) (list []difference) {
	old, cfg = explicit(old), explicit(cfg)
	if old.Model.Head.Topology == cfg.Model.Head.Topology { // which 0 blocks follow
		old.Objective.GSSF.Blocks, cfg.Objective.GSSF.Blocks = old.MetricBlocks(), cfg.MetricBlocks()
	}
	for _, p := range config.Paths() {
		was, _ := old.Get(p)
		now, _ := cfg.Get(p)
		if !reflect.DeepEqual(was, now) && fmt.Sprint(was) != fmt.Sprint(now) { // a nil list is an empty one
			list = append(list, difference{p, was, now})
		}
	}
	return list
}

// explicit replaces values that stand for another.
func explicit(c config.Config) config.Config {
	for _, m := range []struct {
		mlp   *int
		width int
	}{{&c.Model.Image.MLP, c.Model.Image.Width}, {&c.Model.Text.MLP, c.Model.Text.Width}} {
		if *m.mlp == 0 {
			*m.mlp = 4 * m.width
		}
	}
	return c
}

// sameKeys returns an error that lists the keys of which ck has another value.
func sameKeys(ck *checkpoint.Checkpoint, cfg config.Config, keys []string) error {
	old, err := ownConfig(ck)
	if err != nil {
		return err
	}
	was := fmt.Sprintf("the checkpoint %s was made", ck.Path)
	var errs config.Errors
	if slices.Contains(keys, "objective.gssf.form") {
		errs = scoreParts(old, cfg, was, "use its value, or another checkpoint")
	}
	for _, d := range differences(old, cfg) {
		if slices.Contains(keys, d.path) {
			errs = append(errs, &config.Error{Path: d.path, Value: d.now, Msg: fmt.Sprintf("%s with %v", was, show(d.was)),
				Hint: "use its value, or another checkpoint"})
		}
	}
	if errs != nil {
		return errs
	}
	return nil
}

// checkResume refuses to go on with what a run cannot change and prints what else
// has changed.
func checkResume(from *checkpoint.Checkpoint, cfg config.Config, note io.Writer) error {
	old, err := ownConfig(from)
	if err != nil {
		return err
	}
	const hint = "go on with that value, choose another folder with --out, or start anew with --resume never"
	was := fmt.Sprintf("the run in %s was started", from.Path)
	errs := slices.Concat(scoreParts(old, cfg, was, hint), queueParts(old, cfg, was, hint))
	for _, d := range differences(old, cfg) {
		switch {
		case slices.Contains(runKeys, d.path):
			errs = append(errs, &config.Error{Path: d.path, Value: d.now, Msg: fmt.Sprintf("%s with %v", was, show(d.was)), Hint: hint})
		case !slices.Contains(freeKeys, d.path):
			fmt.Fprintf(note, "changed since the checkpoint: %s = %v (was %v)\n", d.path, show(d.now), show(d.was))
		}
	}
	if errs != nil {
		return errs
	}
	return nil
}

// show formats a value of a configuration.
func show(v any) string {
	switch v := v.(type) {
	case string, []string:
		return fmt.Sprintf("%q", v)
	case []config.ScoreTerm:
		items := make([]string, len(v))
		for i, t := range v {
			items[i] = t.String()
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	return fmt.Sprint(v)
}
