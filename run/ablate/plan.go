package ablate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/eval/ablation"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/console"
)

// Options say what is made of a matrix file, and where.
type Options struct {
	Out   string    // folder of the runs and of the table; empty: runs/ablation/NAME of the file
	Seeds []int64   // instead of the file's; nil: the file's
	Set   []string  // overrides of every run, after those of the file
	Only  []string  // patterns of the names of runs to make, with those they start from; nil: all
	Retry bool      // try runs again whose numbers were not finite
	Log   io.Writer // messages; nil: none
	// Reporter returns what shows a run; nil: lines on Log.
	Reporter func() console.Reporter
}

// Ablation is a matrix of runs with the folders that they have.
type Ablation struct {
	Matrix  *ablation.Matrix
	Base    string           // configuration of every run
	Out     string           // folder of the runs and of the table
	Results ablation.Results // of the runs that are done

	o      Options
	note   io.Writer
	file   string
	jobs   []*job    // every run with every seed, starts first
	tuning *Ablation // the trials that settings are chosen from, made before; nil: there are none
}

// Open reads a matrix file, resolves the configuration of every run and reads what the
// folders of the runs hold. Folders that were made with other settings are refused.
func Open(file string, o Options) (*Ablation, error) {
	a, err := read(file, o)
	if err != nil {
		return nil, err
	}
	if err := a.checkFolders(); err != nil {
		return nil, err
	}
	return a, a.tabulate()
}

// read reads the matrix file and resolves the configuration of every run.
func read(file string, o Options) (*Ablation, error) {
	text, err := files.Read(file, files.MaxConfig)
	if err != nil {
		return nil, config.Errors{{Msg: err.Error(), Hint: "give an existing matrix file with --config"}}
	}
	m, err := ablation.Parse(file, text)
	if err != nil {
		return nil, err
	}
	if o.Seeds != nil {
		m.Seeds = o.Seeds
		if e := m.TuneOverlap(); e != nil {
			e.Where = "--seeds"
			return nil, config.Errors{e}
		}
	}
	base := m.Base
	if !filepath.IsAbs(base) {
		base = filepath.Join(filepath.Dir(file), base)
	}
	if _, err := os.Stat(base); err != nil {
		return nil, config.Errors{{Path: "base", Value: m.Base, Msg: err.Error(),
			Hint: "the path is relative to the matrix file", Where: file}}
	}
	if o.Out == "" {
		name := filepath.Base(file)
		o.Out = filepath.Join("runs", "ablation", strings.TrimSuffix(name, filepath.Ext(name)))
	}
	var tuning *Ablation
	if t := m.Tuning(); t != nil {
		under := o
		under.Out, under.Only = filepath.Join(o.Out, TuningFolder), nil
		if tuning, err = build(t, base, under); err != nil {
			return nil, err
		}
		if err := errors.Join(tuning.checkFolders(), tuning.tabulate()); err != nil {
			return nil, err
		}
		m.Choose(&tuning.Results)
	}
	a, err := build(m, base, o)
	if err != nil {
		return nil, err
	}
	a.file, a.tuning = file, tuning
	a.chooseTrials()
	return a, nil
}

// build resolves the configuration of every run of a matrix.
func build(m *ablation.Matrix, base string, o Options) (*Ablation, error) {
	a := &Ablation{Matrix: m, Base: base, Out: o.Out, o: o, note: o.Log}
	if a.note == nil {
		a.note = io.Discard
	}
	if a.o.Reporter == nil {
		a.o.Reporter = func() console.Reporter { return console.Lines(o.Log) }
	}
	if err := a.resolve(o.Set); err != nil {
		return nil, err
	}
	if err := a.choose(o.Only); err != nil {
		return nil, &console.ArgumentError{Err: err}
	}
	return a, nil
}

// job is a run with one seed.
type job struct {
	ablation.Job
	cfg   config.Config
	dir   string
	start *job // whose checkpoint it starts from; nil: none
	same  *job // earlier one with the same configuration, which stands for it; nil: none
	made  bool // belongs to those that --only asks for

	record record
	trial  ablation.Trial
	wall   time.Duration // that the run took in this process
}

// untuned says that the trials which choose the settings are not done.
func (j *job) untuned() bool { return j.Run.Trials != nil && j.Run.Chosen == 0 }

func (j *job) String() string { return fmt.Sprintf("%s, seed %d", j.Run.Name, j.Seed) }

// resolve makes the jobs. The error lists the problems of every run's configuration, a
// problem of several runs once.
func (a *Ablation) resolve(sets []string) error {
	plan, err := a.Matrix.Plan(nil)
	if err != nil {
		return err
	}
	var problems problemList
	by := map[ablation.Job]*job{} // with the run's pointer and the seed
	find := func(name string, seed int64) *job {
		for i := range a.Matrix.Runs {
			if r := &a.Matrix.Runs[i]; r.Name == name {
				return by[ablation.Job{Run: r, Seed: seed}]
			}
		}
		return nil
	}
	content := map[string]*job{}
	for _, p := range plan {
		j := &job{Job: p, dir: filepath.Join(a.Out, p.Run.Name, fmt.Sprintf("seed-%d", p.Seed))}
		by[p] = j
		a.jobs = append(a.jobs, j)
		if j.start = find(p.Run.Start, p.Seed); j.start != nil && j.start.same != nil {
			j.start = j.start.same
		}
		if err := j.load(a, sets); err != nil {
			problems.add(p.Run.Name, err)
			continue
		}
		plain := j.cfg
		plain.Run.Name, plain.Run.Out = "", ""
		text, err := plain.Encode()
		if err != nil {
			return err
		}
		switch first := content[string(text)]; {
		case j.untuned(): // its settings may become others
		case first != nil:
			j.same = first
		default:
			content[string(text)] = j
		}
	}
	return problems.orNil(len(a.Matrix.Runs))
}

// load resolves the configuration of a job.
func (j *job) load(a *Ablation, sets []string) (err error) {
	all := slices.Concat(a.Matrix.Set, j.Run.Set, sets)
	for _, s := range all {
		switch key, _, _ := strings.Cut(s, "="); strings.TrimSpace(key) {
		case "run.seed", "run.name", "run.out":
			return config.Errors{{Path: strings.TrimSpace(key), Msg: "belongs to the ablation",
				Hint: "use seeds, the run's name and --out", Where: "--set " + s}}
		case "init.checkpoint":
			if j.start != nil {
				return config.Errors{{Path: "init.checkpoint", Msg: "is what start stands for",
					Hint: "leave out one of them", Where: "--set " + s}}
			}
		}
	}
	all = append(all, config.Override("run.name", j.Run.Name), config.Override("run.out", j.dir),
		fmt.Sprintf("run.seed=%d", j.Seed))
	if j.start != nil {
		all = append(all, config.Override("init.checkpoint", j.start.dir), "init.image.path=''", "init.text.path=''")
	}
	if j.cfg, err = config.Load(a.Base, all); err != nil {
		return err
	}
	if j.cfg, err = run.Resolve(j.cfg); err != nil {
		return err
	}
	if j.start == nil {
		return nil
	}
	var errs config.Errors
	for _, c := range config.Conflicts(j.start.cfg, j.cfg, config.FixedMeaning) { // as the run requires
		errs = append(errs, &config.Error{Path: c.Path, Value: c.Now,
			Msg:  fmt.Sprintf("the run that it starts from, %s, has %v", j.start.Run.Name, c.With),
			Hint: "use its value"})
	}
	return errs.OrNil()
}

// choose marks the jobs that only asks for, with what stands for them.
func (a *Ablation) choose(only []string) error {
	plan, err := a.Matrix.Plan(only)
	if err != nil {
		return err
	}
	for _, j := range a.jobs {
		if slices.Contains(plan, j.Job) {
			j.made = true
		}
	}
	for _, j := range slices.Backward(a.jobs) { // starts and twins come earlier
		if !j.made {
			continue
		}
		for _, k := range []*job{j.same, j.start} {
			if k != nil {
				k.made = true
			}
		}
		if j.same != nil {
			j.made = false
		}
	}
	return nil
}

// CheckInputs looks for every file and folder that the runs which are still to be made name. The
// error lists what is missing with the runs that name it.
func (a *Ablation) CheckInputs() error {
	var problems problemList
	made := map[string]bool{}
	for _, j := range a.jobs {
		if !j.made || j.settled(a.o.Retry) {
			continue
		}
		made[j.Run.Name] = true
		cfg := j.cfg
		if j.start != nil {
			cfg.Init.Checkpoint = "" // a run of the matrix makes it
		}
		if err := run.CheckInputs(cfg); err != nil {
			problems.add(j.Run.Name, err)
		}
	}
	return problems.orNil(len(made))
}

// Jobs counts the runs that are asked for, once for every seed, and of them those that are
// still to be made.
func (a *Ablation) Jobs() (all, left int) {
	for _, j := range a.jobs {
		if j.made {
			all++
			if !j.settled(a.o.Retry) {
				left++
			}
		}
	}
	return all, left
}

// problemList collects problems with the runs that have them.
type problemList struct {
	texts []string // in order
	errs  map[string]*config.Error
	runs  map[string][]string
}

func (p *problemList) add(run string, err error) {
	list, ok := err.(config.Errors)
	if !ok {
		list = config.Errors{{Msg: err.Error()}}
	}
	if p.errs == nil {
		p.errs, p.runs = map[string]*config.Error{}, map[string][]string{}
	}
	for _, e := range list {
		text := e.Error()
		if p.errs[text] == nil {
			p.texts, p.errs[text] = append(p.texts, text), e
		}
		if !slices.Contains(p.runs[text], run) { // of another seed
			p.runs[text] = append(p.runs[text], run)
		}
	}
}

// orNil returns the problems, each behind the names of its runs.
func (p *problemList) orNil(runs int) error {
	var errs config.Errors
	for _, text := range p.texts {
		names := p.runs[text]
		who := "run " + strings.Join(names, ", ")
		switch {
		case len(names) == runs && runs > 1:
			who = "every run"
		case len(names) > 4:
			who = fmt.Sprintf("run %s and %d more", strings.Join(names[:3], ", "), len(names)-3)
		}
		e := *p.errs[text]
		e.Where = who
		if w := p.errs[text].Where; w != "" {
			e.Where += ": " + w
		}
		errs = append(errs, &e)
	}
	return errs.OrNil()
}

// resultsJSON is what results.json holds.
func (a *Ablation) resultsJSON() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(a.Results); err != nil {
		return nil, fmt.Errorf("write the result as JSON: %w", err)
	}
	return b.Bytes(), nil
}
