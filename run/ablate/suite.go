package ablate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/eval/ablation"
	"github.com/geoalign/geoalign/internal/files"
	pages "github.com/geoalign/geoalign/report"
	"github.com/geoalign/geoalign/run/console"
	"github.com/geoalign/geoalign/train/runlog"
)

// ResultsFolder is the folder of the result files in that of a suite.
const ResultsFolder = "results"

// Suite is a suite file with its matrices. Out holds a folder for each matrix, the table and the page.
type Suite struct {
	*ablation.Suite
	Out      string
	Matrices []*Ablation
	Results  []*ablation.SuiteResults

	file   string
	claims [][]ablation.Claim
}

// OpenSuite reads a suite file and its matrices. o.Out is the folder of the suite, empty: runs/suite/NAME. With from,
// a folder of result files, nothing is opened that is needed to train, and Results are those.
func OpenSuite(file, from string, o Options) (*Suite, error) {
	parsed, err := readSuite(file)
	if err != nil {
		return nil, err
	}
	s := &Suite{Suite: parsed, Out: o.Out, file: file}
	if s.Out == "" {
		s.Out = filepath.Join("runs", "suite", baseName(file))
	}
	for _, m := range parsed.Matrices {
		if from != "" {
			r, err := readResults(filepath.Join(from, baseName(m.File)+".json"))
			if err != nil {
				return nil, err
			}
			s.Results = append(s.Results, r)
			continue
		}
		under := o
		under.Out = filepath.Join(s.Out, baseName(m.File))
		path := filepath.Join(filepath.Dir(file), m.File)
		a, err := Open(path, under)
		if err != nil {
			return nil, err
		}
		claims, err := a.Matrix.Claimed(file+", "+m.File, m.Claims)
		if err != nil {
			return nil, err
		}
		s.Matrices, s.claims = append(s.Matrices, a), append(s.claims, claims)
	}
	return s, nil
}

func readSuite(file string) (*ablation.Suite, error) {
	text, err := files.Read(file, files.MaxConfig)
	if err != nil {
		return nil, config.Errors{{Msg: err.Error(), Hint: "give an existing suite file with --suite"}}
	}
	return ablation.ParseSuite(file, text)
}

// baseName is the name of a file without folder and ending.
func baseName(file string) string { return strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)) }

// readResults reads a result file.
func readResults(path string) (*ablation.SuiteResults, error) {
	text, err := files.Read(path, files.MaxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, console.Argument("%s is missing: run the suite without --from, which writes it below its %s folder",
			path, ResultsFolder)
	}
	r := &ablation.SuiteResults{}
	if err == nil {
		err = json.Unmarshal(text, r)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// Run makes what is left of every matrix, and the table and page after each. It ends early with the error of ctx.
func (s *Suite) Run(ctx context.Context) error {
	var failed []error
	for _, a := range s.Matrices {
		if err := a.Run(ctx); err != nil {
			return errors.Join(err, s.Save())
		}
		failed = append(failed, a.Verdict())
		if err := s.Save(); err != nil {
			return err
		}
	}
	return errors.Join(failed...)
}

// Save tests the claims with the runs that are done, and writes result files, table and page.
func (s *Suite) Save() error {
	s.Results = nil
	if err := os.MkdirAll(filepath.Join(s.Out, ResultsFolder), 0o777); err != nil {
		return err
	}
	for i, a := range s.Matrices {
		m := s.Suite.Matrices[i]
		r := ablation.NewSuiteResults(baseName(m.File), m.Where, &a.Results, s.claims[i])
		for k := range r.Findings {
			if err := a.overQueries(&r.Findings[k]); err != nil {
				return err
			}
		}
		s.Results = append(s.Results, r)
		text, err := json.Marshal(r)
		if err != nil {
			return err
		}
		path := filepath.Join(s.Out, ResultsFolder, r.Matrix+".json")
		if err := files.Replace(path, append(text, '\n')); err != nil {
			return err
		}
	}
	page, err := s.page()
	if err != nil {
		return err
	}
	return errors.Join(files.Replace(filepath.Join(s.Out, TableFile), []byte(s.Markdown())),
		files.Replace(filepath.Join(s.Out, runlog.ReportFile), page))
}

// overQueries fills the interval over test images: BCa of the difference that each image adds to the metric, as mean
// over the seeds that both runs have.
func (a *Ablation) overQueries(f *ablation.Finding) error {
	metric := f.Metric[strings.LastIndexByte(f.Metric, '/')+1:]
	if !strings.HasPrefix(f.Metric, "eval/retrieval/first/") {
		return nil
	}
	var of [2][]float64 // the run and the baseline
	for _, seed := range a.Results.Seeds {
		x, err := a.perImage(f.Run, f.At, seed, metric)
		if err != nil {
			return err
		}
		y, err := a.perImage(f.Baseline, f.At, seed, metric)
		if err != nil {
			return err
		}
		if len(x) == 0 || len(x) != len(y) || of[0] != nil && len(of[0]) != len(x) {
			continue
		}
		if of[0] == nil {
			of = [2][]float64{make([]float64, len(x)), make([]float64, len(x))}
		}
		for i := range x {
			of[0][i] += x[i] / float64(f.Seeds)
			of[1][i] += y[i] / float64(f.Seeds)
		}
	}
	f.OverQueries(of[0], of[1])
	return nil
}

// perImage returns what every test image adds to a metric of a run, nil where that is not kept.
func (a *Ablation) perImage(run string, at *float64, seed int64, metric string) ([]float64, error) {
	for _, j := range a.jobs {
		r := j.Run
		if j.Seed != seed || r.Method != run && (r.Method != "" || r.Name != run) ||
			at != nil && (r.At == nil || *r.At != *at) {
			continue
		}
		if j.same != nil {
			j = j.same
		}
		if j.record.State != ablation.Done {
			return nil, nil
		}
		q, err := readQueries(j.dir)
		if err != nil || q == nil {
			return nil, err
		}
		return q.PerImage(metric), nil
	}
	return nil, nil
}

// Markdown is the title with the table of all findings.
func (s *Suite) Markdown() string {
	text := ablation.SuiteTable(s.Results)
	if s.Title != "" {
		text = "# " + s.Title + "\n\n" + text
	}
	return text
}

// page is the table as HTML, with a curve across the values of each matrix.
func (s *Suite) page() ([]byte, error) {
	head, rows := ablation.SuiteRows(s.Results)
	table := pages.Table{Head: head}
	for _, r := range rows {
		r[0] = strings.ReplaceAll(r[0], "**", "")
		r[len(r)-1] = strings.Trim(r[len(r)-1], "`")
		if verdict, _, linked := strings.Cut(strings.TrimPrefix(r[6], "["), "]("); linked {
			r[6] = verdict
		}
		table.Rows = append(table.Rows, pages.Texts(r...))
	}
	p := pages.Ablation{Title: s.Title, Tables: []pages.Table{table}}
	for _, a := range s.Matrices {
		p.Facts = append(p.Facts, pages.Fact{Name: baseName(a.file), Value: a.Results.Progress() + " runs done"})
		for _, t := range a.Results.Tables {
			if t.Column != nil {
				p.Across = append(p.Across, pageAcross(t))
			}
		}
	}
	var b bytes.Buffer
	err := pages.WriteAblation(&b, p)
	return b.Bytes(), err
}

// Marks of the rows of a suite in a page of Markdown.
const (
	suiteBegin = "<!-- suite: trainer ablate --suite writes these rows -->\n"
	suiteEnd   = "<!-- end of suite -->\n"
)

// WritePage puts the table between the marks of a page of Markdown.
func (s *Suite) WritePage(path string) error {
	text, err := files.Read(path, files.MaxConfig)
	if err != nil {
		return err
	}
	head, rest, begun := strings.Cut(string(text), suiteBegin)
	_, tail, ended := strings.Cut(rest, suiteEnd)
	if !begun || !ended {
		return console.Argument("%s has no place for the table: write the lines\n%s%sinto it", path, suiteBegin, suiteEnd)
	}
	return files.Replace(path, []byte(head+suiteBegin+"\n"+ablation.SuiteTable(s.Results)+"\n"+suiteEnd+tail))
}

// SuiteFeatures lists the files of features of a suite file.
func SuiteFeatures(file string) ([]ablation.Feature, error) {
	s, err := readSuite(file)
	if err != nil {
		return nil, err
	}
	return s.Features, nil
}

// MissingFeatures are those of the list that are not below root yet.
func MissingFeatures(root string, list []ablation.Feature) (missing []ablation.Feature) {
	for _, f := range list {
		if _, err := os.Stat(filepath.Join(root, f.Out)); err != nil {
			missing = append(missing, f)
		}
	}
	return missing
}
