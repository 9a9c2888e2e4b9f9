package run

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"

	"github.com/geoalign/geoalign/align"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/words"
	pages "github.com/geoalign/geoalign/report"
	"github.com/geoalign/geoalign/run/setup"
	"github.com/geoalign/geoalign/train"
)

// ForecastOptions say how the features of a configuration are compared.
type ForecastOptions struct {
	K int // neighbours; 0: 10
	// pairs that are looked at, evenly spaced over the training images with the first text of each; 0: 1000
	Rows         int
	Permutations int    // shuffles of the pairs; 0: 100
	Out          string // HTML page to draw; empty: none
}

// Forecasted is how alike the features of the training pairs are.
type Forecasted struct {
	Image  string `json:"image"` // file
	Text   string `json:"text"`
	Pairs  int    `json:"pairs"`  // training pairs of the files, each image with one text
	Looked int    `json:"looked"` // of these, whose rows were compared
	K      int    `json:"k"`

	Mutual    ForecastLevel  `json:"mutual_knn"`
	CKA       ForecastLevel  `json:"cka"`
	Agreement ForecastLevel  `json:"agreement"`
	Likeness  align.Likeness `json:"likeness"`
	Advice    string         `json:"advice"`
	Notes     []string       `json:"notes,omitempty"` // why the measures are of little use
	Path      string         `json:"path,omitempty"`  // of the page
}

// ForecastLevel is a measure beside its level under shuffled pairs.
type ForecastLevel struct {
	Value     float64 `json:"value"`
	Null      float64 `json:"shuffled"`
	Deviation float64 `json:"shuffled_deviation"`
	P         float64 `json:"p"`
	Error     float64 `json:"error,omitempty"` // standard error of the value over the choice of pairs, of CKA alone
}

func forecastLevel(l align.Level) ForecastLevel {
	return ForecastLevel{Value: l.Value, Null: l.Null, Deviation: l.Deviation, P: l.P}
}

// Forecast compares the neighbourhoods of the training pairs of stored features before anything
// is fitted. It reads the rows that it looks at and holds three matrices of their pairs a side.
// An image counts once: the captions of one image are near each other, and shuffles that tear them apart are
// not what unlike spaces give. It ends early with the error of ctx.
func Forecast(ctx context.Context, cfg config.Config, o ForecastOptions) (Forecasted, error) {
	var f Forecasted
	p, err := source.OpenPairs(cfg.Source())
	if err != nil {
		return f, err
	}
	defer p.Close()
	pairs, err := train.TrainingImages(p)
	if err != nil {
		return f, err
	}
	e, err := setup.Engine(cfg)
	if err != nil {
		return f, err
	}
	defer e.Close()
	a, err := align.Forecast(e, pairs, align.ForecastOptions{K: o.K, Rows: o.Rows, Permutations: o.Permutations,
		Seed: cfg.Run.Seed})
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return f, err
	}
	f = Forecasted{Image: p.Images().Path(), Text: p.Texts().Path(), Pairs: pairs.Len(), Looked: a.Pairs, K: a.K,
		Mutual: forecastLevel(a.Mutual), CKA: forecastLevel(a.CKA), Agreement: forecastLevel(a.Agreement),
		Likeness: a.Likeness(), Advice: a.Advice()}
	f.CKA.Error, f.Notes = a.CKAError, ColumnCautions(cfg)
	if o.Out == "" {
		return f, nil
	}
	f.Path = o.Out
	var page bytes.Buffer
	if err := pages.WriteForecast(&page, f.page()); err != nil {
		return f, err
	}
	if err := files.Replace(o.Out, page.Bytes()); err != nil {
		return f, fmt.Errorf("%w: choose another file with --out", err)
	}
	return f, nil
}

// Measures lists the measures for people.
func (f Forecasted) Measures() []pages.ForecastMeasure {
	measure := func(name, about string, l ForecastLevel) pages.ForecastMeasure {
		return pages.ForecastMeasure{Name: name, About: about, Value: l.Value, Null: l.Null, Deviation: l.Deviation,
			P: l.P}
	}
	return []pages.ForecastMeasure{
		measure("mutual k-NN", fmt.Sprintf(
			"Share of the %d nearest neighbours of a row that are the same pairs in both spaces.", f.K), f.Mutual),
		measure("CKA", "Centred kernel alignment of linear kernels: 1 where one space is a rotation of the other, 0 by chance.", f.CKA),
		measure("agreement", "Share of the other rows that are farther in one space than the neighbours of the other space are: 0.5 by chance.", f.Agreement),
	}
}

// page is the forecast as a page.
func (f Forecasted) page() pages.Forecast {
	return pages.Forecast{
		Title: filepath.Base(f.Image) + " and " + filepath.Base(f.Text),
		Facts: []pages.Fact{{Name: "image", Value: f.Image}, {Name: "text", Value: f.Text}, {Name: "pairs", Value: words.Thousands(f.Pairs)},
			{Name: "looked at", Value: words.Thousands(f.Looked)}, {Name: "neighbours", Value: fmt.Sprint(f.K)}, {Name: "likeness", Value: string(f.Likeness)}},
		Advice: f.Advice, Measures: f.Measures(),
	}
}
