package runlog

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/geoalign/geoalign/internal/files"
)

// Names inside a run folder.
const (
	ConfigFile      = "config.toml"
	EnvironmentFile = "environment.json"
	MetricsFile     = "metrics.jsonl"
	ReportFile      = "report.html"
	ClassesFile     = "classes.json"
	SentencesFile   = "sentences.json"
	DataFile        = "data.json" // what identifies the data
	SumsFile        = "data.sums" // and sums of each sample and file
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
	err = files.Replace(filepath.Join(dir, EnvironmentFile), append(raw, '\n'))
	if err == nil {
		err = files.Replace(filepath.Join(dir, ConfigFile), configTOML)
	}
	if err != nil {
		err = fmt.Errorf("runlog: %w: free space there or choose another folder with --out", err)
	}
	return err
}
