package ablate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/eval/ablation"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/console"
	"github.com/geoalign/geoalign/run/folder"
	"github.com/geoalign/geoalign/train"
	"github.com/geoalign/geoalign/train/checkpoint"
	"github.com/geoalign/geoalign/train/runlog"
)

// RecordFile is where a run folder keeps what ablate knows about it.
const RecordFile = "ablation.json"

// record is the state of a run in an ablation.
type record struct {
	State    string  `json:"state,omitempty"` // a state of ablation.Trial; empty: never begun
	Error    string  `json:"error,omitempty"`
	Diverged bool    `json:"diverged,omitempty"` // failed because of numbers, as it would again
	Ended    string  `json:"ended,omitempty"`    // when it was done; tells one training from another
	Start    string  `json:"start,omitempty"`    // Ended of the run that it started from
	Steps    int     `json:"steps,omitempty"`
	Seconds  float64 `json:"seconds,omitempty"`      // of training, of all sessions
	Wall     float64 `json:"wall_seconds,omitempty"` // from the beginning to the end, of all sessions
	PeakMB   float64 `json:"peak_mb,omitempty"`
}

// readRecord reads the record of a run folder; without one it is empty.
func readRecord(dir string) (r record, err error) {
	text, err := files.Read(filepath.Join(dir, RecordFile), files.MaxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return r, fmt.Errorf("%s: %w: remove the folder to make the run anew", filepath.Join(dir, RecordFile), err)
	}
	return r, nil
}

func (r record) write(dir string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	return files.Replace(filepath.Join(dir, RecordFile), append(text, '\n'))
}

// settled reports whether a run needs no training.
func (j *job) settled(retry bool) bool {
	r := j.record
	return r.State == ablation.Done || r.State == ablation.Failed && r.Diverged && !retry
}

// checkFolders reads what the run folders hold and refuses those that were made with
// other settings, or from a start that is another one now.
func (a *Ablation) checkFolders() error {
	var changed []string
	for _, j := range a.jobs {
		if j.same != nil || j.untuned() {
			continue
		}
		var err error
		if j.record, err = readRecord(j.dir); err != nil {
			return err
		}
		why, err := j.conflict()
		if err != nil {
			return err
		}
		if why != "" {
			changed = append(changed, fmt.Sprintf("%s: %s", j.dir, why))
		}
	}
	if changed == nil {
		return nil
	}
	const shown = 8
	text := strings.Join(changed[:min(len(changed), shown)], "\n")
	if n := len(changed) - shown; n > 0 {
		text += fmt.Sprintf("\nand %s", words.Count(n, "more folder"))
	}
	return console.Argument(
		"%s do not belong to this matrix:\n%s\nRemove them to make these runs anew, go back to the old settings, or choose another folder with --out", words.Count(len(changed), "run folder"), text)
}

// conflict says why the folder of a job cannot be gone on with; empty: it can.
func (j *job) conflict() (string, error) {
	text, err := files.Read(filepath.Join(j.dir, runlog.ConfigFile), files.MaxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil // never begun
	}
	if err != nil {
		return "", err
	}
	if !folder.HasRun(j.dir) && !j.settled(false) {
		return "", nil // nothing was saved: it begins anew
	}
	old, _, err := config.ParseStored(runlog.ConfigFile, text, nil)
	if err != nil {
		return "its " + strings.Join(strings.Fields(err.Error()), " "), nil
	}
	if j.start != nil && sameStart(old.Init.Checkpoint, j.cfg.Init.Checkpoint) {
		j.cfg.Init.Checkpoint = old.Init.Checkpoint
	}
	var list []string
	for _, d := range config.Differences(old, j.cfg) {
		if !d.Harmless {
			list = append(list, fmt.Sprintf("%s = %s (was %s)", d.Path, config.Show(d.Now), config.Show(d.Was)))
		}
	}
	if list != nil {
		return strings.Join(list, ", "), nil
	}
	if j.start != nil && j.record.Start != "" && j.record.Start != j.start.record.Ended {
		return fmt.Sprintf("it started from %s as that was before it was trained anew", j.start.dir), nil
	}
	return "", nil
}

// sameStart reports whether two paths of a start are the same run of an ablation, whose
// folder may have moved.
func sameStart(a, b string) bool {
	last := func(p string) string {
		return filepath.Join(filepath.Base(filepath.Dir(p)), filepath.Base(p))
	}
	return a != "" && last(a) == last(b)
}

// outcome reads what a finished run found.
func (j *job) outcome(columns []ablation.Column) error {
	rows, err := runlog.ReadMetrics(filepath.Join(j.dir, runlog.MetricsFile))
	if err != nil {
		return err
	}
	j.trial.Steps, j.trial.Notes = j.record.Steps, run.LogCautions(j.dir)
	j.trial.Values = map[string]float64{}
	for _, c := range columns {
		v := math.NaN()
		switch c.Metric {
		case ablation.Seconds:
			v = j.record.Seconds
		case ablation.PeakMB:
			if j.record.PeakMB > 0 {
				v = j.record.PeakMB
			}
		case ablation.StepMS:
			v = stepMS(rows, j.cfg.Train.BatchSize*max(1, j.cfg.Train.AccumulateSteps))
		default:
			for _, r := range rows {
				if x, ok := r.Values[c.Metric]; ok {
					v = x
				}
			}
		}
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			j.trial.Values[c.Metric] = v
		}
	}
	return nil
}

// stepMS is the mean time of a step of samples each, from rates that average over the
// last 20 steps. The first 20 steps, which begin with the building of graphs, count
// only where there are no others.
func stepMS(rows []runlog.Row, samples int) float64 {
	for _, after := range []int{20, 1, 0} {
		sum, n := 0.0, 0
		for _, r := range rows {
			if rate := r.Values["samples_per_second"]; rate > 0 && r.Step > after {
				sum, n = sum+1e3*float64(samples)/rate, n+1
			}
		}
		if n > 0 {
			return sum / float64(n)
		}
	}
	return math.NaN()
}

// ended reads the steps and the time of the newest checkpoint.
func ended(dir string) (steps int, seconds float64, err error) {
	ck, err := checkpoint.Open(dir)
	if err != nil {
		return 0, 0, err
	}
	defer ck.Close()
	s, err := train.ReadState(ck)
	return s.Step, s.Elapsed, err
}
