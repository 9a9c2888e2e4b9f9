package bench

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/setup"
)

// DataOptions say how the making of samples is measured.
type DataOptions struct {
	Seconds float64 // of each measurement without steps
	Workers []int   // numbers of workers to try; nil: 1, 2, 4 ... up to the processors, and data.workers
	Samples int     // take the first so many again and again; 0: all
	Steps   int     // also train for so many steps on real and on free samples; 0: none
	// Progress is told how far an opening of the data that takes long is; may be nil.
	Progress func(phase string, done, of int)
}

// DataReport says how fast samples are made, and whether a training step waits for them.
type DataReport struct {
	Config     string          `json:"config"`
	Kind       string          `json:"kind"`
	ImageSize  int             `json:"image_size"`
	BatchSize  int             `json:"batch_size"`
	Processors int             `json:"processors"`
	Cache      string          `json:"cache"`
	CacheStats data.CacheStats `json:"cache_stats"` // after the measurement
	Pixels     int             `json:"pixels"`      // of an image in the source, on average
	CacheGB    float64         `json:"cache_gb"`    // that all training images take decoded; 0: unknown
	Samples    int             `json:"samples"`     // made by one worker
	Bad        int             `json:"bad_samples"` // that could not be made
	SampleMS   float64         `json:"sample_ms"`   // with one worker
	Stages     []StageShare    `json:"stages"`
	Loader     []LoaderSpeed   `json:"loader"`
	Step       *StepBeside     `json:"step,omitempty"`
	Verdict    string          `json:"verdict"`
}

// StageShare is the time of a stage.
type StageShare struct {
	Stage string  `json:"stage"`
	MS    float64 `json:"ms"` // of a sample
	Share float64 `json:"share"`
}

// LoaderSpeed is what the loader makes with some workers.
type LoaderSpeed struct {
	Workers int     `json:"workers"`
	Samples float64 `json:"samples_per_second"`
}

// Data measures the training stream of a configuration.
func Data(ctx context.Context, cfg config.Config, o DataOptions) (*DataReport, error) {
	cfg, err := run.Resolve(cfg)
	if err != nil {
		return nil, err
	}
	tok, err := setup.Tokenizer(ctx, cfg, nil, o.Progress)
	if err != nil {
		return nil, err
	}
	stream, err := run.OpenStream(ctx, cfg, tok, source.Options{Progress: o.Progress})
	if err != nil {
		return nil, err
	}
	columns, err := model.Columns(cfg)
	if err != nil {
		return nil, err
	}
	if err := batch.Check(columns, stream.Columns()); err != nil {
		if o.Steps > 0 || cfg.Data.Kind != "regions" {
			return nil, err
		}
		columns = stream.Columns() // whatever tower reads them
	}
	pictures, cache := 0, (*data.Cache)(nil)
	if t, ok := stream.(*data.Train); ok {
		pictures, cache = t.NumImages(), t.Cache()
	}
	if n := max(o.Samples, cfg.Data.OverfitSamples); n > 0 {
		cfg.Data.OverfitSamples = 0
		if stream, err = data.Overfit(stream, n); err != nil {
			return nil, err
		}
		if err := makeAll(ctx, cfg, stream, n); err != nil { // fills the cache
			return nil, err
		}
	}
	r := &DataReport{
		Config: cfg.Run.Name, Kind: cfg.Data.Kind, ImageSize: cfg.Model.Image.Size, BatchSize: cfg.Train.BatchSize,
		Processors: runtime.GOMAXPROCS(0), Cache: cfg.Data.Cache,
	}
	duration := time.Duration(o.Seconds * float64(time.Second))
	if err := r.measureStages(stream, columns, duration, pictures); err != nil {
		return nil, err
	}
	// Every measurement begins where the last one ended, so that each meets the
	// cache as a run would.
	position := uint64(r.Samples + r.Bad)
	for _, w := range o.workerCounts(cfg) {
		speed, end, err := loaderAlone(ctx, cfg, stream, columns, w, position, duration)
		if err != nil {
			return nil, err
		}
		position = end
		r.Loader = append(r.Loader, LoaderSpeed{w, speed})
	}
	r.CacheStats = cache.Stats()
	if o.Steps > 0 {
		if r.Step, err = measureStepBeside(ctx, cfg, stream, columns, tok, o.Steps); err != nil {
			return nil, err
		}
		r.Step.Processor = r.SampleMS / 1e3 * r.Step.Needed / float64(r.Processors)
	}
	r.Verdict = r.verdict(cfg)
	return r, nil
}

// makeAll makes the first n samples once. Bad ones are left for later to count.
func makeAll(ctx context.Context, cfg config.Config, stream data.Stream, n int) error {
	if cfg.Data.Cache == "none" {
		return nil
	}
	column, ok := batch.Find(stream.Columns(), batch.Images)
	if !ok {
		return nil
	}
	row := batch.New(1, column).Row(0) // the images are what counts
	for c := range n {
		if err := ctx.Err(); err != nil {
			return err
		}
		_ = stream.Sample(uint64(c), row)
	}
	return nil
}

// workerCounts are the numbers of workers to try.
func (o DataOptions) workerCounts(cfg config.Config) []int {
	if len(o.Workers) > 0 {
		return o.Workers
	}
	most := runtime.GOMAXPROCS(0)
	var list []int
	for w := 1; w < most; w *= 2 {
		list = append(list, w)
	}
	list = append(list, most)
	if w := cfg.Data.Workers; w > most {
		list = append(list, w)
	}
	return list
}

// measureStages fills in what one worker does.
func (r *DataReport) measureStages(stream data.Stream, columns []batch.Column, atLeast time.Duration,
	pictures int) error {
	data.MeasureStages(stream, columns, 0, 0) // page faults of the first sample
	w, bad := data.MeasureStages(stream, columns, 0, atLeast)
	if w.Samples == 0 {
		return fmt.Errorf("none of the first %d samples can be made: trainer data check lists what is wrong", bad)
	}
	r.Samples, r.Bad = w.Samples, bad
	r.Pixels = int(w.Pixels) / w.Samples
	r.CacheGB = 3 * float64(r.Pixels) * float64(pictures) / 1e9
	n := float64(w.Samples)
	r.SampleMS = w.Total().Seconds() * 1e3 / n
	for s := range images.NumStages {
		if t := w.Time(s); t > 0 {
			r.Stages = append(r.Stages, StageShare{s.String(), t.Seconds() * 1e3 / n,
				t.Seconds() / w.Total().Seconds()})
		}
	}
	return nil
}

// loaderAlone returns how many samples a second the loader makes when nothing else
// runs, and where it stopped.
func loaderAlone(ctx context.Context, cfg config.Config, stream data.Stream, columns []batch.Column, workers int,
	from uint64, atLeast time.Duration) (float64, uint64, error) {
	l, err := data.NewLoader(stream, data.LoaderConfig{
		BatchSize: cfg.Train.BatchSize, Columns: columns,
		Workers: workers, Prefetch: cfg.Data.Prefetch, MaxBadShare: cfg.Data.MaxBadShare, DropLast: cfg.DropsLast(),
		Lengths: cfg.TokenLengths(), Seed: cfg.Run.Seed,
	})
	if err != nil {
		return 0, 0, err
	}
	defer l.Close()
	l.Start(from)
	next := func() error {
		b, err := l.Next(ctx)
		if err == nil {
			l.Recycle(b)
		}
		return err
	}
	if err := next(); err != nil { // the memory of the batches is made
		return 0, 0, err
	}
	begin, n := time.Now(), 0
	for n == 0 || time.Since(begin) < atLeast {
		if err := next(); err != nil {
			return 0, 0, err
		}
		n += cfg.Train.BatchSize
	}
	return float64(n) / time.Since(begin).Seconds(), l.Position(), nil
}
