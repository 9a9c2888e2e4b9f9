package ablate

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/geoalign/geoalign/eval/ablation"
	"github.com/geoalign/geoalign/internal/check"
)

func TestStepTime(t *testing.T) {
	row := func(step int, rate float64) string {
		return fmt.Sprintf("{\"step\":%d,\"samples_per_second\":%g}\n", step, rate)
	}
	dir := t.TempDir()
	for _, c := range []struct {
		text string
		want float64
	}{
		{row(1, 1) + row(10, 2) + row(30, 100) + row(40, 50), 120}, // (80 + 160) / 2
		{row(1, 1) + row(10, 80), 100},
		{row(1, 4), 2000},
	} {
		check.OK(t, os.WriteFile(filepath.Join(dir, "metrics.jsonl"), []byte(c.text), 0o666))
		j := &job{dir: dir}
		j.cfg.Train.BatchSize, j.cfg.Train.AccumulateSteps = 4, 2
		if err := j.outcome([]ablation.Column{{Metric: ablation.StepMS}}); err != nil || j.trial.Values[ablation.StepMS] != c.want {
			t.Errorf("%q: %v, %v", c.text, j.trial.Values, err)
		}
	}
}
