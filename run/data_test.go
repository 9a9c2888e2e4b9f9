package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/identity"
	"github.com/geoalign/geoalign/run/record"
	"github.com/geoalign/geoalign/train"
	"github.com/geoalign/geoalign/train/checkpoint"
	"github.com/geoalign/geoalign/train/checkpoint/checkpointtest"
	"github.com/geoalign/geoalign/train/runlog"
)

// dataRun is a run on a list of eight pictures below a folder, which can be resumed.
type dataRun struct {
	root, out string
	sets      []string
}

// entry is one of captions.json.
type listEntry struct {
	Image   string   `json:"image"`
	Caption []string `json:"caption"`
}

// newDataRun writes the pictures and the list, and trains two steps.
func newDataRun(t *testing.T) *dataRun {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	r := &dataRun{root: kindsData(t), out: filepath.Join(t.TempDir(), "run")}
	var list []listEntry
	for i := range 10 {
		if i != 5 { // which is damaged
			list = append(list, listEntry{fmt.Sprintf("%02d.png", i), []string{fmt.Sprintf("a picture number %d", i), fmt.Sprintf("the %d one", i)}})
		}
	}
	r.write(t, "list.json", list)
	r.write(t, "val.json", list[:4])
	r.sets = []string{"data.kind=captions", "data.captions.train_files=list.json", "data.captions.val_files=val.json", "train.batch_size=4", "train.save_every_steps=1", "train.keep_last=0"}
	check.Get(r.train(t, 2))(t)
	return r
}

func (r *dataRun) write(t *testing.T, name string, list []listEntry) {
	t.Helper()
	text, err := json.Marshal(list)
	if err == nil {
		err = os.WriteFile(filepath.Join(r.root, name), text, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// edit changes a list.
func (r *dataRun) edit(t *testing.T, name string, change func(list []listEntry) []listEntry) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.root, name))
	var list []listEntry
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.write(t, name, change(list))
}

// train trains up to a step and returns what was said.
func (r *dataRun) train(t *testing.T, steps int, more ...string) (said string, err error) {
	t.Helper()
	var seen recorder
	cfg := settings(t, r.out, slices.Concat([]string{"data.root=" + r.root}, r.sets, []string{fmt.Sprint("train.max_steps=", steps)}, more)...)
	_, err = trainOn(t.Context(), cfg, Options{Reporter: &seen})
	return strings.Join(seen.lines, "\n"), err
}

// TestChangedData: a run whose list is not what it was is not resumed, says what changed and how to go on, and does so when it is told
// to.
func TestChangedData(t *testing.T) {
	for name, c := range map[string]struct {
		list   string
		change func(list []listEntry) []listEntry
		want   string
	}{
		"reversed":    {"list.json", func(l []listEntry) []listEntry { slices.Reverse(l); return l }, "train: the same 9 samples in another order"},
		"one caption": {"list.json", func(l []listEntry) []listEntry { l[3].Caption[1] = "another"; return l }, "train: 1 sample of another content under the name that it had (the first is 03.png) [list.json has"},
		"all captions": {"list.json", func(l []listEntry) []listEntry {
			for i := range l {
				l[i].Caption = []string{"something else"}
			}
			return l
		}, "train: 9 samples of another content under the name that it had (the first is 00.png)"},
		"fewer":   {"list.json", func(l []listEntry) []listEntry { return slices.Delete(l, 2, 4) }, "train: 7 samples, and there were 9; 2 gone (the first was number 3)"},
		"more":    {"list.json", func(l []listEntry) []listEntry { return append(l, listEntry{"10.png", []string{"one more"}}) }, "train: 10 samples, and there were 9; 1 new (the first is 10.png)"},
		"a split": {"val.json", func(l []listEntry) []listEntry { slices.Reverse(l); return l }, "val: the same 4 samples in another order"},
		"an order": {"list.json", func(l []listEntry) []listEntry {
			l[0].Caption[0], l[0].Caption[1] = l[0].Caption[1], l[0].Caption[0]
			return l
		}, "train: 1 sample of another content"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newDataRun(t)
			r.edit(t, c.list, c.change)
			before := check.Get(os.ReadFile(filepath.Join(r.out, runlog.DataFile)))(t)
			_, err := r.train(t, 3)
			var changed *record.ChangedError
			if !errors.As(err, &changed) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%v, want %q", err, c.want)
			}
			if after, err := os.ReadFile(filepath.Join(r.out, runlog.DataFile)); err != nil || !bytes.Equal(before, after) {
				t.Errorf("the record changed: %v", err)
			}
			// The advice of the error.
			_, advice, _ := strings.Cut(err.Error(), "with --set ")
			advice, _, _ = strings.Cut(advice, " ")
			said, err := r.train(t, 3, advice)
			if err != nil || !strings.Contains(said, "changed since the checkpoint: data of "+c.want[:20]) {
				t.Fatalf("with %s: %v\n%s", advice, err, said)
			}
			if said, err := r.train(t, 4); err != nil || strings.Contains(said, "changed since the checkpoint: data") {
				t.Errorf("the same again: %v\n%s", err, said)
			}
		})
	}
}

// TestSameData: what is not a change of the data is none.
func TestSameData(t *testing.T) {
	r := newDataRun(t)
	steps := 2
	same := func(what string) {
		t.Helper()
		steps++
		said, err := r.train(t, steps)
		if err != nil || strings.Contains(said, "data of") || strings.Contains(said, "compared") {
			t.Errorf("%s: %v\n%s", what, err, said)
		}
	}
	same("nothing")
	now := time.Now().Add(-time.Minute)
	for _, name := range []string{"00.png", "list.json"} {
		check.OK(t, os.Chtimes(filepath.Join(r.root, name), now, now))
	}
	same("touched")
	text, err := os.ReadFile(filepath.Join(r.root, "list.json"))
	if err == nil {
		text = bytes.ReplaceAll(text, []byte(`{"image"`), []byte("\n  {\"image\""))
		err = os.WriteFile(filepath.Join(r.root, "list.json"), text, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	same("written otherwise")
	moved := filepath.Join(t.TempDir(), "there")
	check.OK(t, os.CopyFS(moved, os.DirFS(r.root)))
	r.root = moved
	same("moved")
}

// TestSameTable: a table whose rows say the same in other bytes is not a change, though its key is another one.
func TestSameTable(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir, out := kindsData(t), filepath.Join(t.TempDir(), "run")
	train := func(steps int) error {
		_, err := trainOn(t.Context(), settings(t, out, "data.root="+dir, "data.kind=csv", "data.csv.train_files=table.csv", "data.csv.val_files=good.csv", "data.max_bad_share=0.3", "train.batch_size=4", fmt.Sprint("train.max_steps=", steps)), Options{})
		return err
	}
	check.OK(t, train(2))
	path := filepath.Join(dir, "table.csv")
	text, err := os.ReadFile(path)
	if err == nil {
		text = bytes.ReplaceAll(text, []byte(",a picture number 3"), []byte(`,"a picture number 3"`))
		err = os.WriteFile(path, text, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := train(3); err != nil {
		t.Error(err)
	}
}

// swap changes a byte of a file in the middle, and sets its time back.
func swap(t *testing.T, path string, at int) {
	t.Helper()
	st := check.Get(os.Stat(path))(t)
	text := check.Get(os.ReadFile(path))(t)
	text[at] ^= 1
	check.OK(t, os.WriteFile(path, text, 0o666))
	check.OK(t, os.Chtimes(path, st.ModTime(), st.ModTime()))
}

// TestChangedPicture: a picture of another content, with its name, its size and its time as they were, is found beside the steps, and ends the
// run with a checkpoint.
func TestChangedPicture(t *testing.T) {
	r := newDataRun(t)
	was := check.Get(record.Read(r.out))(t)
	if c := was.Splits["train"].Contents; c.Files != 9 || c.Sum == (identity.Sum{}) || c.Bytes == 0 {
		t.Fatalf("%+v", c)
	}
	swap(t, filepath.Join(r.root, "04.png"), 50)
	_, err := r.train(t, 4)
	var changed *record.ChangedError
	if want := "train: 04.png has its "; !errors.As(err, &changed) || !strings.Contains(err.Error(), want) {
		t.Fatalf("%v, want %q", err, want)
	}
	ck := check.Get(checkpoint.Load(r.out))(t)
	state, err := train.ReadState(ck)
	ck.Close()
	if err != nil || state.Step <= 2 {
		t.Errorf("the newest checkpoint is of step %d: %v", state.Step, err)
	}
	if again, err := record.Read(r.out); err != nil || again.Splits["train"].Contents != was.Splits["train"].Contents {
		t.Errorf("the record changed: %v", err)
	}
	said, err := r.train(t, 5, "data.changed="+source.DataAccepted)
	if err != nil || !strings.Contains(said, "changed since the checkpoint: data of train: 04.png") {
		t.Fatalf("accepted: %v\n%s", err, said)
	}
	if said, err := r.train(t, 6); err != nil || strings.Contains(said, "data of") {
		t.Errorf("the same again: %v\n%s", err, said)
	}
}

// TestDataOfEarlierVersions: a run without a record of its data is resumed, with a word, and has one then.
func TestDataOfEarlierVersions(t *testing.T) {
	r := newDataRun(t)
	for _, name := range []string{runlog.DataFile, runlog.SumsFile} {
		check.OK(t, os.Remove(filepath.Join(r.out, name)))
	}
	r.edit(t, "list.json", func(l []listEntry) []listEntry { slices.Reverse(l); return l })
	// The checkpoint knows it still.
	if _, err := r.train(t, 3); err == nil || !strings.Contains(err.Error(), "train: the 9 samples are others, or say something else, or stand in another order (sum ") {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(r.out, runlog.CheckpointsDir, "*", "state.json"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, path := range files {
		forget(t, path)
	}
	said, err := r.train(t, 3)
	if err != nil || strings.Count(said, "could not be compared") != 1 {
		t.Fatalf("%v\n%s", err, said)
	}
	if said, err := r.train(t, 4); err != nil || strings.Contains(said, "compared") {
		t.Errorf("%v\n%s", err, said)
	}
}

// forget makes a checkpoint one that says nothing of its data.
func forget(t *testing.T, state string) {
	t.Helper()
	text := check.Get(os.ReadFile(state))(t)
	less := regexp.MustCompile(`,\s*"samples":\s*"[0-9a-f]{32}",\s*"samples_rule":\s*\d+`).ReplaceAll(text, nil)
	if len(less) == len(text) {
		t.Fatalf("%s says nothing of the samples", state)
	}
	check.OK(t, os.WriteFile(state, less, 0o666))
	checkpointtest.Reseal(t, filepath.Dir(state))
}

// TestVerifyData: all kinds of changes are found by reading the data again, and none where there is none.
func TestVerifyData(t *testing.T) {
	r := newDataRun(t)
	verify := func(sets ...string) string {
		t.Helper()
		list := check.Get(record.Verify(t.Context(), r.out, sets, nil))(t)
		return strings.TrimSpace(record.LinesOf(list))
	}
	if got := verify(); got != "" {
		t.Error(got)
	}
	moved := filepath.Join(t.TempDir(), "there")
	check.OK(t, os.CopyFS(moved, os.DirFS(r.root)))
	swap(t, filepath.Join(moved, "07.png"), 60)
	if got, want := verify("data.root="+moved), "train: 07.png has its "; !strings.HasPrefix(got, want) {
		t.Errorf("%s, want %s", got, want)
	}
	r.edit(t, "val.json", func(l []listEntry) []listEntry { return l[:3] })
	if got, want := verify(), "val: 3 samples, and there were 4; 1 gone (the first was number 4)"; !strings.HasPrefix(got, want) {
		t.Errorf("%s, want %s", got, want)
	}
	if _, err := record.Verify(t.Context(), t.TempDir(), nil, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder: %v", err)
	}
}

// kindFiles are runs of kindRuns whose data are files, each with a change of one byte of a file, or of its name, and what is said of it.
var kindFiles = map[string][]struct {
	file   string
	change func(text []byte) []byte // nil: it has another name
	want   string                   // empty: nothing changed
}{
	"stored features": {
		{"image.npy", func(b []byte) []byte { b[len(b)-9] ^= 1; return b }, "image.npy has another content than it had"},
		{"text.npy", func(b []byte) []byte { b[200] ^= 1; return b }, "text.npy has another content than it had"},
	},
	"shards": {
		{"1.tar", func(b []byte) []byte { b[600] ^= 1; return b }, "1.tar has its "},
		{"1.tar", func(b []byte) []byte {
			return bytes.Replace(b, []byte("a picture number 4"), []byte("a picture number 9"), 1)
		}, "1 sample of another content under the name that it had (the first is 04.png)"},
		{"{0..2}.tar", nil, ""},
	},
	"table, two views":   {{"table.csv", func(b []byte) []byte { return bytes.Replace(b, []byte("number 4"), []byte("number 5"), 1) }, "1 sample of another content under the name that it had (the first is 04.png)"}},
	"triplets":           {{"triplets.csv", func(b []byte) []byte { return bytes.Replace(b, []byte("number 4"), []byte("number 5"), 1) }, " gone (the first was number "}},
	"pairs of sentences": {{"pairs.csv", func(b []byte) []byte { return bytes.Replace(b, []byte("them,1"), []byte("them,0"), 1) }, "train: 1 gone (the first was number 2); 1 new (the first is number 2, "}},
	"identities":         {{"people.csv", func(b []byte) []byte { return bytes.Replace(b, []byte("p2"), []byte("p3"), 1) }, "1 sample of another content"}},
	"regions of files":   {{"", func(b []byte) []byte { b[len(b)-9] ^= 1; return b }, "has another content than it had"}},
}

// TestChangedKinds: a change of one value is found in every kind of files.
func TestChangedKinds(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	runs := kindRuns(t)
	for name, changes := range kindFiles {
		for _, c := range changes {
			t.Run(name+" "+c.file, func(t *testing.T) {
				dir, out := kindsData(t), filepath.Join(t.TempDir(), "run")
				train := func(steps int, more ...string) error {
					cfg, err := config.Load(runs[name].base, slices.Concat([]string{"data.root=" + dir, "run.out=" + out}, runs[name].sets, []string{fmt.Sprint("train.max_steps=", steps), "train.max_epochs=0", "eval.rerank_top=0"}, more))
					if err != nil {
						return err
					}
					_, err = trainOn(t.Context(), cfg, Options{})
					return err
				}
				check.OK(t, train(2))
				var more []string
				path := filepath.Join(dir, c.file)
				if c.file == "" { // of a folder of its own
					path = filepath.Join(valueOf(runs[name].sets, "data.root"), "train_ims.npy")
				}
				if c.change == nil {
					for i := range 3 {
						if err := os.Rename(filepath.Join(dir, fmt.Sprintf("%d.tar", i)), filepath.Join(dir, fmt.Sprintf("part-%d.tar", i))); err != nil {
							t.Fatal(err)
						}
					}
					more = []string{"data.webdataset.train_files=part-{0..2}.tar", "data.webdataset.val_files=part-0.tar"}
				} else {
					text, err := os.ReadFile(path)
					if err == nil {
						err = os.WriteFile(path, c.change(bytes.Clone(text)), 0o666)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				err := train(4, more...)
				if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
					t.Errorf("%v, want %q", err, c.want)
				}
			})
		}
	}
}

// valueOf is the value of a key that settings set.
func valueOf(sets []string, key string) (value string) {
	for _, s := range sets {
		if v, ok := strings.CutPrefix(s, key+"="); ok {
			value = v
		}
	}
	return value
}

// TestEntriesOfKinds: the entries that a split is opened for are those of the stream of a run, for every kind of data.
func TestEntriesOfKinds(t *testing.T) {
	dir := kindsData(t)
	for name, c := range kindRuns(t) {
		cfg, err := config.Load(c.base, slices.Concat([]string{"data.root=" + dir, "run.out=" + filepath.Join(t.TempDir(), "run"), "eval.rerank_top=0"}, c.sets))
		if err != nil {
			t.Fatal(err)
		}
		r, err := openRun(t.Context(), cfg, Options{}, true)
		if err != nil {
			t.Fatal(name, err)
		}
		if len(r.data.Splits) == 0 || r.data.Trained() == (identity.Sum{}) {
			t.Errorf("%s: nothing identifies the data", name)
		}
		for _, s := range r.data.Splits {
			if s.Name == record.SentencesSplit {
				continue
			}
			e, end, err := source.Entries(t.Context(), r.cfg.Source(), s.Name, source.Options{})
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if sum, err := e.Sum(t.Context(), s.Short); err != nil || sum != s.Record.List || e.Len != s.Record.Samples {
				t.Errorf("%s: %s has the sum %v of %d, want %v of %d (%v)", name, s.Name, sum, e.Len, s.Record.List, s.Record.Samples, err)
			}
			if err := end(); err != nil {
				t.Error(err)
			}
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestOtherSplit: who uses a checkpoint is told where a split is not the one that the run was evaluated on.
func TestOtherSplit(t *testing.T) {
	r := newDataRun(t)
	said := func() string {
		t.Helper()
		var log bytes.Buffer
		m := check.Get(Open(r.out, OpenOptions{Log: &log}))(t)
		defer m.Close()
		check.Get(m.Evaluate(t.Context(), "", "", nil))(t)
		set, err := m.Unranked(t.Context(), "val", nil) // as embed does
		if err == nil {
			err = m.Look(t.Context(), "val", set, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		var seen recorder
		cfg := settings(t, filepath.Join(t.TempDir(), "tuned"), slices.Concat([]string{"data.root=" + r.root, "init.checkpoint=" + r.out, "train.max_steps=1"}, r.sets)...)
		check.Get(trainOn(t.Context(), cfg, Options{Reporter: &seen}))(t)
		return log.String() + strings.Join(seen.lines, "\n")
	}
	if all := said(); strings.Contains(all, "not the split") {
		t.Error(all)
	}
	r.edit(t, "val.json", func(l []listEntry) []listEntry { l[1].Caption = l[1].Caption[:1]; return l })
	want := "note: this is not the split that " + r.out + " had under its name: val: 1 sample of another content under the name that it had (the first is 01.png)"
	if all := said(); strings.Count(all, want) != 3 {
		t.Errorf("%s\nwant three times %s", all, want)
	}
}
