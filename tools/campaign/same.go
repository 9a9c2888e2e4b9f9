package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"

	"github.com/geoalign/geoalign/train/checkpoint"
	"github.com/geoalign/geoalign/train/runlog"
)

// sameRun compares two finished runs: every file of their last checkpoints byte by byte, but for
// the times in state.json, and every row of their logs, but for the times there.
func sameRun(got, want string) error {
	a, err := checkpoint.Load(got)
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := checkpoint.Load(want)
	if err != nil {
		return err
	}
	defer b.Close()
	var errs []error
	if a.Step != b.Step {
		errs = append(errs, fmt.Errorf("ended at step %d, want %d", a.Step, b.Step))
	}
	files, err := os.ReadDir(b.Path)
	if err != nil {
		return err
	}
	others, err := os.ReadDir(a.Path)
	if err != nil {
		return err
	}
	if len(files) != len(others) {
		errs = append(errs, fmt.Errorf("%d files in %s, want %d", len(others), a.Path, len(files)))
	}
	for _, f := range files {
		if err := sameFile(filepath.Join(a.Path, f.Name()), filepath.Join(b.Path, f.Name())); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, sameLog(got, want))...)
}

// sameFile compares two files of checkpoints.
func sameFile(got, want string) error {
	a, err1 := os.ReadFile(got)
	b, err2 := os.ReadFile(want)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if filepath.Base(want) != "state.json" {
		if !bytes.Equal(a, b) {
			return fmt.Errorf("%s differs from %s", got, want)
		}
		return nil
	}
	x, err1 := timeless(a)
	y, err2 := timeless(b)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if !reflect.DeepEqual(x, y) {
		return fmt.Errorf("%s differs from %s:\n%v\n%v", got, want, x, y)
	}
	return nil
}

// timeless decodes a state.json and removes the times, and the checksum, which covers them.
func timeless(text []byte) (v map[string]any, err error) {
	if err := json.Unmarshal(text, &v); err != nil {
		return nil, err
	}
	delete(v, "checksum")
	var walk func(v any)
	walk = func(v any) {
		m, _ := v.(map[string]any)
		for k, x := range m {
			if k == "elapsed_seconds" || runlog.Timed(k) {
				delete(m, k)
			} else {
				walk(x)
			}
		}
	}
	walk(v)
	return v, nil
}

// sameLog compares metrics.jsonl of two runs.
func sameLog(got, want string) error {
	a, err1 := runlog.ReadMetrics(filepath.Join(got, runlog.MetricsFile))
	b, err2 := runlog.ReadMetrics(filepath.Join(want, runlog.MetricsFile))
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if len(a) != len(b) {
		return fmt.Errorf("%d rows in %s of %s, want %d", len(a), runlog.MetricsFile, got, len(b))
	}
	timed := func(k string, _ float64) bool { return runlog.Timed(k) }
	for i := range b {
		maps.DeleteFunc(a[i].Values, timed)
		maps.DeleteFunc(b[i].Values, timed)
		if a[i].Step != b[i].Step || !maps.Equal(a[i].Values, b[i].Values) {
			return fmt.Errorf("row %d of %s is %v, want %v", i, got, a[i], b[i])
		}
	}
	return nil
}
