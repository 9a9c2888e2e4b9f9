package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
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

// ownConfig returns the configuration that a checkpoint was made with.
func ownConfig(ck *checkpoint.Checkpoint) (config.Config, error) {
	old, _, err := train.OpenConfig(ck)
	if err != nil {
		return old, fmt.Errorf("the checkpoint's own configuration: %w", err)
	}
	return old, nil
}

// sameKeys returns an error that lists the keys by which cfg cannot use ck.
func sameKeys(ck *checkpoint.Checkpoint, cfg config.Config, use config.Fixed) error {
	old, err := ownConfig(ck)
	if err != nil {
		return err
	}
	return conflicts(old, cfg, use, fmt.Sprintf("the checkpoint %s was made", ck.Path), "use its value, or another checkpoint")
}

// conflicts returns an error that lists why a checkpoint made with old cannot be used with
// cfg. Each problem begins with was and ends with hint.
func conflicts(old, cfg config.Config, use config.Fixed, was, hint string) error {
	var errs config.Errors
	for _, c := range config.Conflicts(old, cfg, use) {
		errs = append(errs, &config.Error{Path: c.Path, Value: c.Now, Msg: was + " with " + c.With, Hint: hint})
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
	for _, d := range config.Differences(old, cfg) {
		if d.Fixed == config.Free && !d.Silent {
			fmt.Fprintf(note, "changed since the checkpoint: %s = %v (was %v)\n", d.Path, show(d.Now), show(d.Was))
		}
	}
	return conflicts(old, cfg, config.FixedRun, fmt.Sprintf("the run in %s was started", from.Path),
		"go on with that value, choose another folder with --out, or start anew with --resume never")
}

// show formats a value of a configuration.
func show(v any) string { return config.Show(v) }
