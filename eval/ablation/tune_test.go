package ablation

import (
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

const tuneMatrix = `
base = "a.toml"
metrics = ["eval/retrieval/first/r_mean", "loss"]
seeds = [1, 2]
tune = {seeds = [101, 102], set = ["eval.split=val"]}
across = {key = "data.pairs.paired", values = [50, 100]}
[[run]]
name = "contrast"
set = ["train.batch_size=9"]
trials = [["optimizer.lr=1"], ["optimizer.lr=2"]]
[[run]]
name = "cca"
trials = [["model.align.cca.power=1"], ["model.align.cca.power=2"]]
[[run]]
name = "plain"
`

// Every trial is a run with the settings of tuning last; each run takes its best at each value.
func TestTune(t *testing.T) {
	m := check.Get(Parse("m.toml", []byte(tuneMatrix)))(t)
	trials := m.Tuning()
	var got []string
	for _, r := range trials.Runs {
		got = append(got, r.Name+": "+strings.Join(r.Set, " "))
	}
	want := "contrast, paired=50, trial 2: data.pairs.paired=50 train.batch_size=9 optimizer.lr=2 eval.split=val"
	if len(got) != 8 || got[1] != want || len(trials.Seeds) != 2 || trials.Metrics[0] != m.Metrics[0] {
		t.Fatalf("%s", strings.Join(got, "\n"))
	}
	columns, _ := trials.Columns()
	r := Results{Columns: columns}
	for i, v := range [][2]float64{{1, 2}, {3, 1}, {5, 5}, {5, 5}, {9, 9}, {8, 1}, {1, 2}, {2, 3}} {
		row := Row{Name: trials.Runs[i].Name}
		for s := range v {
			row.Trials = append(row.Trials, Trial{Seed: int64(101 + s), State: Done, Values: Values{m.Metrics[0]: v[s]}})
		}
		r.Rows = append(r.Rows, row)
	}
	r.Rows[6].Trials[1].State = Missing // the choice of cca at 100 waits
	m.Choose(&r)
	chosen := ""
	for _, run := range m.Runs {
		chosen += run.Name + " " + string(rune('0'+run.Chosen)) + " " + run.Set[len(run.Set)-1] + "\n"
	}
	if chosen != `contrast, paired=50 2 optimizer.lr=2
cca, paired=50 1 model.align.cca.power=1
plain, paired=50 0 data.pairs.paired=50
contrast, paired=100 1 optimizer.lr=1
cca, paired=100 0 model.align.cca.power=1
plain, paired=100 0 data.pairs.paired=100
` {
		t.Errorf("chosen:\n%s", chosen)
	}
	m = check.Get(Parse("m.toml", []byte(strings.Replace(tuneMatrix, "tune = {", `tune = {metric = "loss", `, 1))))(t)
	columns, _ = m.Tuning().Columns()
	r = Results{Columns: columns}
	for i, run := range m.Tuning().Runs {
		r.Rows = append(r.Rows, Row{Name: run.Name, Trials: []Trial{{State: Done, Values: Values{"loss": 9 - float64(i)}}}})
	}
	if m.Choose(&r); m.Runs[0].Chosen != 2 || m.Runs[1].Chosen != 2 {
		t.Errorf("the smaller loss is better: %+v", m.Runs[:2])
	}
	if none := check.Get(Parse("m.toml", []byte(acrossMatrix)))(t); none.Tuning() != nil {
		t.Error("a matrix without trials is tuned")
	}
}

func TestTuneRefuses(t *testing.T) {
	for change, want := range map[string]string{
		`seeds = [101, 102]|seeds = [2, 102]`:                            "must not be among the seeds of the runs",
		`tune = {seeds = [101, 102], set|tune = {set`:                    "must name the seeds of the trials",
		`name = "plain"|name = "plain"` + "\ntrials = [[\"loss=1\"]]":    `must have as many trials as "contrast`,
		`name = "cca"|name = "cca"` + "\nstart = \"contrast\"":           "such a run is not tuned",
		`set = ["eval.split=val"]|set = [], metric = "lr"`:               "better when higher or lower",
		`set = ["eval.split=val"]|split = "val"`:                         "unknown key",
		`tune = {seeds = [101, 102], set = ["eval.split=val"]}|seed = 1`: "unknown key",
	} {
		old, new, _ := strings.Cut(change, "|")
		text := strings.Replace(tuneMatrix, old, new, 1)
		if _, err := Parse("m.toml", []byte(text)); text == tuneMatrix || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", change, err)
		}
	}
	text := strings.ReplaceAll(acrossMatrix, "correct =", "tune = {seeds = [7]}\ncorrect =")
	if _, err := Parse("m.toml", []byte(text)); err == nil || !strings.Contains(err.Error(), "no run has trials") {
		t.Error(err)
	}
}
