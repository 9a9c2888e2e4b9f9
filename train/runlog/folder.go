package runlog

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/geoalign/geoalign/internal/process"
)

// Names inside a run folder.
const (
	ConfigFile      = "config.toml"
	EnvironmentFile = "environment.json"
	MetricsFile     = "metrics.jsonl"
	ReportFile      = "report.html"
	CheckpointsDir  = "checkpoints"
)

// Prepare makes the run folder dir and writes the resolved configuration and the
// environment into it, before the first step.
func Prepare(dir string, configTOML []byte, env Environment) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("runlog: %w: choose another folder with --out", err)
	}
	raw, err := json.MarshalIndent(env, "", "  ")
	if err != nil {
		return fmt.Errorf("runlog: environment: %w", err)
	}
	err = WriteFile(filepath.Join(dir, EnvironmentFile), append(raw, '\n'))
	if err == nil {
		err = WriteFile(filepath.Join(dir, ConfigFile), configTOML)
	}
	if err != nil {
		err = fmt.Errorf("%w: free space there or choose another folder with --out", err)
	}
	return err
}

// WriteFile writes the file at path atomically: a reader, or a run that resumes
// after a kill, sees the old content or the new, never a part.
func WriteFile(path string, content []byte) error {
	return WriteFrom(path, func(w io.Writer) error { _, err := w.Write(content); return err })
}

// WriteFrom is WriteFile of what fill writes.
func WriteFrom(path string, fill func(w io.Writer) error) error {
	if err := writeAtomic(path, fill); err != nil {
		return fmt.Errorf("runlog: write %s: %w", path, err)
	}
	return nil
}

func writeAtomic(path string, fill func(w io.Writer) error) (err error) {
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() { // a device would be replaced
		return errors.New("there is something that is no file")
	}
	defer process.Hold()()
	temp := filepath.Join(filepath.Dir(path), ".tmp-"+filepath.Base(path))
	f, err := os.Create(temp)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(temp))
		}
	}()
	b := bufio.NewWriter(f)
	for _, do := range []func() error{func() error { return fill(b) }, b.Flush, f.Sync} {
		if err = do(); err != nil {
			f.Close() // what failed first says why
			return err
		}
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(temp, path)
}
