package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/eval/ablation"
)

// ablationRun is an ablation under way.
type ablationRun struct {
	matrix *ablation.Matrix
	base   string // configuration of every run
	out    string
	retry  bool
	note   io.Writer

	jobs    []*ablationJob // every run with every seed, starts first
	results ablation.Results
}

// ablationJob is a run with one seed.
type ablationJob struct {
	ablation.Job
	cfg   config.Config
	dir   string
	start *ablationJob // whose checkpoint it starts from; nil: none
	same  *ablationJob // earlier one with the same configuration, which stands for it; nil: none
	made  bool         // belongs to those that --only asks for

	record ablationRecord
	trial  ablation.Trial
	wall   time.Duration // that the run took in this process
}

func (j *ablationJob) String() string { return fmt.Sprintf("%s, seed %d", j.Run.Name, j.Seed) }

// resolve makes the jobs. The error lists the problems of every run's configuration, a
// problem of several runs once.
func (a *ablationRun) resolve(sets []string) error {
	plan, err := a.matrix.Plan(nil)
	if err != nil {
		return err
	}
	var problems problemList
	by := map[ablation.Job]*ablationJob{} // with the run's pointer and the seed
	find := func(name string, seed int64) *ablationJob {
		for i := range a.matrix.Runs {
			if r := &a.matrix.Runs[i]; r.Name == name {
				return by[ablation.Job{Run: r, Seed: seed}]
			}
		}
		return nil
	}
	content := map[string]*ablationJob{}
	for _, p := range plan {
		j := &ablationJob{Job: p, dir: filepath.Join(a.out, p.Run.Name, fmt.Sprintf("seed-%d", p.Seed))}
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
		if first := content[string(text)]; first != nil {
			j.same = first
		} else {
			content[string(text)] = j
		}
	}
	return problems.orNil(len(a.matrix.Runs))
}

// load resolves the configuration of a job.
func (j *ablationJob) load(a *ablationRun, sets []string) (err error) {
	all := slices.Concat(a.matrix.Set, j.Run.Set, sets)
	for _, s := range all {
		switch key, _, _ := strings.Cut(s, "="); strings.TrimSpace(key) {
		case "run.seed", "run.name", "run.out":
			return config.Errors{{Path: strings.TrimSpace(key), Msg: "belongs to the ablation", Hint: "use seeds, the run's name and --out", Where: "--set " + s}}
		case "init.checkpoint":
			if j.start != nil {
				return config.Errors{{Path: "init.checkpoint", Msg: "is what start stands for", Hint: "leave out one of them", Where: "--set " + s}}
			}
		}
	}
	all = append(all, "run.name="+strconv.Quote(j.Run.Name), "run.out="+strconv.Quote(j.dir), fmt.Sprintf("run.seed=%d", j.Seed))
	if j.start != nil {
		all = append(all, "init.checkpoint="+strconv.Quote(j.start.dir))
	}
	if j.cfg, err = config.Load(a.base, all); err != nil {
		return err
	}
	if err := towersOnly(j.cfg); err != nil {
		return err
	}
	if j.start == nil {
		return nil
	}
	var errs config.Errors
	for _, c := range config.Conflicts(j.start.cfg, j.cfg, config.FixedMeaning) { // as initFrom requires
		errs = append(errs, &config.Error{Path: c.Path, Value: c.Now, Msg: fmt.Sprintf("the run that it starts from, %s, has %v", j.start.Run.Name, c.With), Hint: "use its value"})
	}
	if errs != nil {
		return errs
	}
	return nil
}

// choose marks the jobs that only asks for, with what stands for them.
func (a *ablationRun) choose(only []string) error {
	plan, err := a.matrix.Plan(only)
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
		for _, k := range []*ablationJob{j.same, j.start} {
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

// list prints the runs with what they change and what is done of them.
func (a *ablationRun) list(w io.Writer) {
	n, open := 0, 0
	for _, j := range a.jobs {
		if j.made {
			n++
			if !j.settled(a.retry) {
				open++
			}
		}
	}
	fmt.Fprintf(w, "%s into %s, %d to be made; base %s\n", count(n, "run"), a.out, open, a.base)
	if s := a.matrix.Set; len(s) > 0 {
		fmt.Fprintf(w, "every run: %s\n", strings.Join(s, " "))
	}
	for _, row := range a.results.Rows {
		var states []string
		for _, t := range row.Trials {
			states = append(states, fmt.Sprintf("%d %s", t.Seed, t.State))
		}
		var about []string
		for _, s := range []struct{ text, value string }{{"group ", row.Group}, {"starts from ", row.Start}, {"the same as ", row.Same}} {
			if s.value != "" {
				about = append(about, s.text+s.value)
			}
		}
		if row.Hidden {
			about = append(about, "hidden")
		}
		fmt.Fprintf(w, "\n%s", row.Name)
		if about != nil {
			fmt.Fprintf(w, "  (%s)", strings.Join(about, "; "))
		}
		fmt.Fprintf(w, "\n  %s\n  seeds: %s\n", cmp.Or(strings.Join(row.Set, " "), "nothing changed"), strings.Join(states, ", "))
	}
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
	if errs == nil {
		return nil
	}
	return errs
}

// resultsJSON is what results.json holds.
func (a *ablationRun) resultsJSON() ([]byte, error) {
	var b bytes.Buffer
	err := printJSON(&b, a.results)
	return b.Bytes(), err
}
