package train

import (
	"context"
	"time"

	"github.com/geoalign/geoalign/train/runlog"
	"github.com/geoalign/geoalign/train/schedule"
)

// rateWindow is the number of steps that samples_per_second averages over.
const rateWindow = 20

// Metrics returns the hook that names a step's numbers for the log: epoch, time,
// loss, loss/<part>, measures by their own name, lr, temperature, grad_norm, samples_per_second, data_wait
// (seconds), lr/image and lr/text of towers with a rate of their own, and skipped = 1 for a step whose update was left
// out, which has no loss. A fit in closed form has no loss, lr, grad_norm and data_wait. perEpoch is the number of
// steps of an epoch (schedule.Span.Epoch), 0 if there are none.
func Metrics(perEpoch float64) Hook {
	var samples [rateWindow]int
	var times [rateWindow]time.Duration
	n := 0
	return Hook{Name: "metrics", Stage: StageMetrics, After: func(_ context.Context, e *Event) error {
		v, r := e.Values, e.Result
		if perEpoch > 0 {
			v["epoch"] = float64(e.Step) / perEpoch
		}
		v["time"] = float64(e.Now.UnixMilli()) / 1000
		if e.Skipped {
			v["skipped"] = 1
			return nil
		}
		if !r.Fit {
			v["loss"], v["lr"], v["grad_norm"], v["data_wait"] = r.Loss, r.LR, r.GradNorm, r.DataWait.Seconds()
		}
		for _, x := range r.TowerLR {
			v[x.Name] = x.Value
		}
		for _, p := range r.Parts {
			name := "loss/" + p.Name
			if p.Measure {
				name = p.Name
			}
			v[name] = p.Value
		}
		if r.Temperature != 0 {
			v["temperature"] = r.Temperature
		}
		samples[n%rateWindow], times[n%rateWindow] = r.Samples, e.StepTime
		n++
		var count int
		var total time.Duration
		for i := range min(n, rateWindow) {
			count, total = count+samples[i], total+times[i]
		}
		if total > 0 {
			v["samples_per_second"] = float64(count) / total.Seconds()
		}
		return nil
	}}
}

// SaveConfig says when and how checkpoints are saved.
type SaveConfig struct {
	EverySteps   int     // 0: not by steps
	EveryMinutes float64 // since the last save; 0: not by time
	Save         func(e *Event) error
}

// Checkpoints returns the hook that saves at the steps that are due, by time,
// at the end of the run, and when it is interrupted; once per step at most.
func Checkpoints(c SaveConfig) Hook {
	saved := -1
	var last time.Duration // Elapsed at the last save
	first := true
	return Hook{Name: "checkpoint", Stage: StageCheckpoint,
		After: func(_ context.Context, e *Event) error {
			if first {
				first, last = false, e.Before
			}
			byTime := c.EveryMinutes > 0 && (e.Elapsed-last).Minutes() >= c.EveryMinutes
			if saved == e.Step || !byTime && !e.final() && !schedule.Due(e.Step, c.EverySteps, e.Total) {
				return nil
			}
			if err := c.Save(e); err != nil {
				return err
			}
			saved, last = e.Step, e.Elapsed
			return nil
		},
		Rewind: func(int) error { saved = -1; return nil },
	}
}

// Evaluations returns the hook that evaluates every so many steps and at the end
// of the run; every 0 switches it off. evaluate returns numbers named
// eval/<task>/<metric>. Its ctx is cancelled when the run is interrupted, and
// its error is then taken as the consequence.
func Evaluations(every int, evaluate func(ctx context.Context, step int) (map[string]float64, error)) Hook {
	return Hook{Name: "evaluation", Stage: StageEval, After: func(ctx context.Context, e *Event) error {
		due := schedule.Due(e.Step, every, e.Total) || every > 0 && e.Last
		if !due || e.Interrupted {
			return nil
		}
		values, err := evaluate(ctx, e.Step)
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return err
		}
		for k, v := range values {
			e.Values[k] = v
		}
		e.Evaluated = true
		return nil
	}}
}

// Logs returns the hook that passes a step's numbers to logger: for the first
// step, every so many steps, at the end, and for steps with an evaluation or
// without an update. The caller closes logger.
func Logs(every int, logger runlog.Logger) Hook {
	logged := -1
	return Hook{Name: "log", Stage: StageLog,
		After: func(_ context.Context, e *Event) error {
			due := e.Step == 1 || e.final() || e.Evaluated || e.Skipped || schedule.Due(e.Step, every, e.Total)
			if !due || logged == e.Step {
				return nil
			}
			logged = e.Step
			return logger.Log(e.Step, e.Values)
		},
		Rewind: func(step int) error {
			logged = -1
			if r, ok := logger.(runlog.Rewinder); ok {
				return r.Rewind(step)
			}
			return nil
		},
	}
}
