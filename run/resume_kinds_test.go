package run

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/train/runlog"
)

// kindsData writes 13 pictures with two captions each, of which picture 5 is damaged, as a table, as lists, as shards and as folders of
// classes, and sentences with positives and hard negatives and pairs with labels, into a folder.
func kindsData(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	put := func(name string, b []byte) {
		t.Helper()
		path := filepath.Join(dir, name)
		check.OK(t, os.MkdirAll(filepath.Dir(path), 0o777))
		check.OK(t, os.WriteFile(path, b, 0o666))
	}
	table, people, triplets, pairs := "filepath,title\n", "filepath,person\n", "sent0,sent1,hard_neg\n", "sentence1,sentence2,label\n"
	var shards [3]bytes.Buffer
	for i := range 13 {
		m := image.NewRGBA(image.Rect(0, 0, 20, 24))
		for p := range 20 * 24 {
			m.Set(p%20, p/20, color.RGBA{uint8(19 * i), uint8(3 * p), uint8(200 - 13*i), 255})
		}
		var b bytes.Buffer
		check.OK(t, png.Encode(&b, m))
		picture := b.Bytes()
		if i == 5 {
			picture = picture[:60]
		}
		name := fmt.Sprintf("%02d.png", i)
		put(name, picture)
		first, second := fmt.Sprintf("a picture number %d", i), fmt.Sprintf("the %d one of them", i)
		table += fmt.Sprintf("%s,%s\n%s,%s\n", name, first, name, second)
		people += fmt.Sprintf("%s,p%d\n", name, i%4)
		triplets += fmt.Sprintf("%s,%s,a picture number %d\n", first, second, i+1)
		pairs += fmt.Sprintf("%s,%s,%d\n", first, second, i%2)
		w := tar.NewWriter(&shards[i%3])
		for _, x := range []struct {
			end  string
			body []byte
		}{{".png", picture}, {".json", fmt.Appendf(nil, `{"said": [%q, %q]}`, first, second)}} {
			if err := w.WriteHeader(&tar.Header{Name: fmt.Sprintf("%02d%s", i, x.end), Mode: 0o600, Size: int64(len(x.body))}); err != nil {
				t.Fatal(err)
			}
			check.Get(w.Write(x.body))(t)
		}
		check.OK(t, w.Flush())
	}
	for k := range shards {
		put(fmt.Sprintf("%d.tar", k), append(shards[k].Bytes(), make([]byte, 1024)...))
	}
	put("table.csv", []byte(table))
	put("good.csv", []byte("filepath,title,person\n00.png,a picture number 0,p0\n01.png,the 1 one of them,p1\n04.png,a picture number 4,p0\n09.png,number 9,p1\n"))
	put("people.csv", []byte(people))
	put("triplets.csv", []byte(triplets))
	put("pairs.csv", []byte(pairs))
	put("vocab.txt", []byte("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nyes\nno\nred\nblue\ngreen\nsquare\ncircle\nsmall\nbig\ntop\nleft\nright\nbottom\ncentre\nwhat\nis\nthere\na\nthe\n"))
	for name, width := range map[string]int{"image.npy": 6, "text.npy": 4} {
		check.OK(t, features.Write(filepath.Join(dir, name), func(emit func([]float32) error) error {
			for i := range 50 {
				row := make([]float32, width)
				for k := range row {
					row[k] = float32(math.Sin(float64(5*i + 3*k*k)))
				}
				if i == 7 && width == 6 {
					row[2] = float32(math.NaN())
				}
				if err := emit(row); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	return dir
}

// kindRun is a tiny run on a kind of data.
type kindRun struct {
	base string
	sets []string
	part []string // of the run in parts alone
}

// kindRuns are runs on every kind of data, of those in the folder of kindsData.
func kindRuns(t *testing.T) map[string]kindRun {
	abs := func(path string) string {
		path = check.Get(filepath.Abs(path))(t)
		return path
	}
	const scenes, keys = "testdata/scenes.toml", "testdata/keys.toml"
	csv := []string{"data.kind=csv", "data.csv.train_files=table.csv", "data.csv.val_files=good.csv", "data.max_bad_share=0.3", "train.eval_every_steps=3"}
	shards := []string{"data.kind=webdataset", "data.webdataset.train_files={0..2}.tar", "data.webdataset.val_files=0.tar", "data.webdataset.json_key=said", "data.max_bad_share=0.3", "train.eval_every_steps=3"}
	texts := []string{"model.text.width=16", "model.text.layers=1", "model.text.heads=2", "model.head.dim=16"}
	task := func(kind string, sets ...string) []string {
		return slices.Concat(aloneSets, []string{"data.vocab=vocab.txt", "data.kind=" + kind, "data.examples.source=scenes"}, sets)
	}
	return map[string]kindRun{
		"table, two views":    {keys, append(slices.Clone(csv), "train.accumulate_steps=2", "train.batch_size=4", "data.drop_last=false"), []string{"data.cache=memory"}},
		"table, pairs":        {keys, append(slices.Clone(csv), "objective.itc.positives=pair", "train.batch_size=5", "queue.size=20"), []string{"data.cache=disk"}},
		"shards":              {scenes, append(slices.Clone(shards), "data.webdataset.shuffle=5", "data.flip=true", "data.crop_scale_min=0.5", "data.drop_last=false", "train.batch_size=5"), []string{"data.cache=disk"}},
		"shards in order":     {scenes, append(slices.Clone(shards), "data.webdataset.shuffle=1", "objective.itc.positives=id", "train.accumulate_steps=2", "train.accumulate=features", "train.batch_size=4"), []string{"data.cache=memory"}},
		"parquet":             {scenes, []string{"data.kind=parquet", "data.parquet.train_files=" + abs("../data/testdata/parquet/struct.parquet"), "data.parquet.val_files=" + abs("../data/testdata/parquet/struct.parquet"), "data.parquet.shuffle=3", "train.batch_size=3", "data.drop_last=false", "data.max_bad_share=0.5"}, []string{"data.cache=memory"}},
		"overfit":             {keys, []string{"data.overfit_samples=11", "data.drop_last=false"}, nil},
		"kept towers":         {scenes, append(slices.Clone(csv), "model.image.freeze=true", "model.text.freeze=true", "train.batch_size=4"), []string{"data.cache_features=true"}},
		"triplets":            {"../configs/simcse.toml", append(slices.Clone(texts), "data.kind=sentences", "data.sentences.train_files=triplets.csv", "data.sentences.sentence=sent0", "data.sentences.positive=sent1", "data.sentences.negative=hard_neg", "train.batch_size=4", "train.eval_every_steps=0"), nil},
		"sentences and pairs": {"../configs/mcse.toml", slices.Concat(texts, csv, []string{"model.image.width=16", "model.image.depth=1", "model.image.heads=2", "data.sentences.train_files=triplets.csv", "data.sentences.sentence=sent0", "data.sentences.batches=2", "train.batch_size=4", "eval.beside=[]"}), []string{"data.cache=memory"}},
		"pairs of sentences": {"../configs/simcse.toml", append(slices.Clone(texts), "model.system=sentence_pairs", "objective.simcse.weight=0", "objective.sentence_pairs.weight=1", "objective.sentence_pairs.encoding=joint", "model.text.pool=class",
			"data.kind=sentence_pairs", "data.sentence_pairs.task=mrpc", "data.sentence_pairs.train_files=pairs.csv", "data.sentence_pairs.val_files=pairs.csv", "train.batch_size=4", "data.drop_last=false"), nil},
		"regions of scenes": {scenes, append(slices.Clone(host), "data.regions.source=scenes", "data.regions.width=8", "model.image.regions.drop=0.3", "model.image.regions.encoder=mlp", "model.image.regions.batch_norm=true", "train.accumulate_steps=2"), nil},
		"regions of files":  {scenes, append(regionFiles(t, t.TempDir(), 5), "model.image.pool=esa", "model.image.regions.mask=0.3", "train.batch_size=3", "data.drop_last=false"), nil},
		"stored features": {"../configs/heads.toml", []string{"data.pairs.image=image.npy", "data.pairs.text=text.npy", "data.pairs.val_samples=10", "data.pairs.test_samples=0", "model.heads.hidden=12", "model.heads.dropout=0.2", "model.head.dim=8", "train.batch_size=8", "data.max_bad_share=0.3",
			"objective.geometric.weight=1", "objective.geometric.neighbours=4", "objective.geometric.chunk=8", "momentum.enabled=true", "queue.size=16", "objective.itc.weight=1", "data.drop_last=false"}, nil},
		"identities": {"../configs/reid.toml", []string{"data.kind=csv", "data.csv.train_files=people.csv", "data.csv.val_files=good.csv", "data.csv.caption=", "data.csv.id=person", "data.max_bad_share=0.3", "model.image.size=16", "model.image.width=16", "model.image.depth=1", "model.image.heads=2", "model.head.dim=16", "data.flip=true", "data.crop_scale_min=0.5",
			"train.batch_size=6", "data.identities.images=3", "train.eval_every_steps=3"}, []string{"data.cache=disk"}},
		"small crops":    {"../configs/swav-resnet.toml", []string{"data.kind=csv", "data.csv.train_files=table.csv", "data.max_bad_share=0.3", "model.image.size=16", "data.crops.count=2", "data.crops.size=8", "model.image.resnet.width=4", "objective.swav.prototypes=6", "queue.size=16", "queue.start_steps=2", "objective.swav.freeze_steps=2", "train.batch_size=4", "train.accumulate_steps=2", "train.eval_every_steps=0"}, []string{"data.cache=memory"}},
		"two encoders":   {"../configs/moco-resnet.toml", []string{"data.kind=csv", "data.csv.train_files=table.csv", "data.max_bad_share=0.3", "model.image.size=16", "model.image.resnet.width=4", "queue.size=16", "queue.start_steps=2", "train.batch_size=4", "model.image.resnet.shuffle_groups=2", "train.eval_every_steps=0"}, []string{"data.cache=memory"}},
		"questions":      {keys, task("vqa", "objective.vqa.weight=1", "objective.vqa.tokens=5", "objective.vqa.answers=2", "train.accumulate_steps=2", "train.batch_size=4"), nil},
		"statements":     {keys, task("nlvr", "objective.nlvr.weight=1", "momentum.enabled=false", "objective.distill.alpha=0"), nil},
		"entailment":     {keys, task("entailment", "objective.entailment.weight=1"), nil},
		"expressions":    {keys, append(slices.Clone(aloneSets), "data.vocab=vocab.txt", "data.kind=grounding", "data.examples.source=scenes", "objective.itc.in_batch_weight=1", "objective.itm.weight=1", "data.crop_scale_min=1"), nil},
		"captions":       {keys, append(slices.Clone(captionSets), "data.vocab=vocab.txt"), nil},
		"classes":        {"../configs/classes.toml", []string{"model.image.size=16", "model.image.width=16", "model.image.depth=1", "model.image.heads=2", "model.head.dim=16", "train.batch_size=8", "data.scenes.epoch_samples=20", "objective.classes.mixup=0.4", "data.drop_last=false", "train.accumulate_steps=2"}, nil},
		"dynamic twins":  {keys, []string{"momentum.rule=dynamic", "train.accumulate_steps=2", "objective.geodesic.lag_steps=1"}, nil},
		"tuned":          {keys, []string{"model.lora.rank=2", "model.tuning.ssf=true", "model.tuning.bitfit=true", "objective.geodesic.lag_steps=1", "train.accumulate_steps=3", "train.batch_size=4"}, nil},
		"half precision": {keys, []string{"compute.precision=bf16", "compute.recompute=true", "compute.threads=2"}, nil},
		"negative-aware": {scenes, append(slices.Clone(host), "data.regions.source=scenes", "data.regions.width=8", "model.interaction.kind=naaf", "train.accumulate_steps=2"), nil},
	}
}

// resumesExactly trains a run on some ranks in one piece by one goroutine, and from two of its steps in other folders by eight, with a cache
// and another number of batches made ahead: the end of all has the same bits, and the log the same rows.
func (c kindRun) resumesExactly(t *testing.T, dir string, ranks int) {
	t.Helper()
	root := t.TempDir()
	run := func(out, resume string, more ...string) error {
		cfg, err := config.Load(c.base, slices.Concat([]string{"data.root=" + dir, "data.cache_dir=" + filepath.Join(root, "cache"), "run.out=" + out}, c.sets, []string{"train.max_steps=7", "train.max_epochs=0", "schedule.warmup_steps=3", "schedule.warmup_percent=0", "train.log_every_steps=1",
			"train.save_every_steps=1", "train.keep_last=0", "eval.rerank_top=0"}, more))
		if err != nil {
			return err
		}
		return failureOf(onRanks(t, ranks, func(_ int, o *Options) config.Config {
			o.Resume = resume
			return cfg
		}))
	}
	whole := filepath.Join(root, "whole")
	check.OK(t, run(whole, "", "data.workers=1"))
	step := func(out string, n int) string {
		return filepath.Join(out, runlog.CheckpointsDir, fmt.Sprintf("step-%08d", n))
	}
	for _, from := range []int{1, 4} {
		parts := filepath.Join(root, fmt.Sprint(from))
		if err := run(parts, step(whole, from), append(slices.Clone(c.part), "data.workers=8", "data.prefetch=1")...); err != nil {
			t.Fatalf("from step %d: %v", from, err)
		}
		files, err := filepath.Glob(filepath.Join(step(whole, 7), "*.safetensors"))
		if err != nil || len(files) < 2 {
			t.Fatal(files, err)
		}
		for _, path := range files {
			want, err1 := os.ReadFile(path)
			got, err2 := os.ReadFile(filepath.Join(step(parts, 7), filepath.Base(path)))
			if err1 != nil || err2 != nil || !bytes.Equal(got, want) {
				t.Errorf("from step %d: %s differs (%v, %v)", from, filepath.Base(path), err1, err2)
			}
		}
		if got, want := rowsFrom(t, parts, from), rowsFrom(t, whole, from); !maps.EqualFunc(got, want, maps.Equal[map[string]float64, map[string]float64]) {
			t.Errorf("from step %d: the log has %v, want %v", from, got, want)
		}
	}
}

// failureOf is the first error of ranks.
func failureOf(ranks []*told) error {
	for _, r := range ranks {
		if r.err != nil {
			return r.err
		}
	}
	return nil
}

// TestKindsResumeExactly: runs on any kind of data go on with the same bits: with bad samples, epochs that end within a batch, several
// micro-batches, views, and batches of sentences between those of pairs.
func TestKindsResumeExactly(t *testing.T) {
	dir := kindsData(t)
	for name, c := range kindRuns(t) {
		t.Run(name, func(t *testing.T) { c.resumesExactly(t, dir, 1) })
	}
}

// TestKindsResumeExactlyOnRanks: runs of two processes do as well.
func TestKindsResumeExactlyOnRanks(t *testing.T) {
	if testing.Short() {
		t.Skip("three runs on two ranks of every kind")
	}
	dir := kindsData(t)
	for name, c := range kindRuns(t) {
		if name != "identities" {
			c.sets = append(c.sets, "train.batch_size=8", "train.accumulate=gradients")
		}
		t.Run(name, func(t *testing.T) { c.resumesExactly(t, dir, 2) })
	}
}

// rowsFrom is the log of a run behind a step, without what a clock said.
func rowsFrom(t *testing.T, out string, from int) map[int]map[string]float64 {
	t.Helper()
	list := check.Get(runlog.ReadMetrics(filepath.Join(out, runlog.MetricsFile)))(t)
	rows := map[int]map[string]float64{}
	for _, r := range list {
		if r.Step > from {
			maps.DeleteFunc(r.Values, func(k string, _ float64) bool { return runlog.Timed(k) })
			rows[r.Step] = r.Values
		}
	}
	return rows
}

// TestGrownData: a run that goes on with more data than it had says so, once.
func TestGrownData(t *testing.T) {
	dir, out := kindsData(t), t.TempDir()
	lines := func(steps int, more ...string) []string {
		var seen recorder
		trained(t, settings(t, out, slices.Concat(more, []string{"data.root=" + dir, "data.kind=csv", "data.csv.train_files=table.csv", "data.csv.val_files=good.csv", "data.max_bad_share=0.3", "train.batch_size=4", fmt.Sprint("train.max_steps=", steps)})...), Options{Reporter: &seen})
		return slices.DeleteFunc(seen.lines, func(s string) bool { return !strings.Contains(s, "samples of an epoch") })
	}
	if got := slices.Concat(lines(2), lines(3)); len(got) > 0 {
		t.Errorf("of the same data: %q", got)
	}
	path := filepath.Join(dir, "table.csv")
	text := check.Get(os.ReadFile(path))(t)
	picture := check.Get(os.ReadFile(filepath.Join(dir, "03.png")))(t)
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "new.png"), picture, 0o666), os.WriteFile(path, append(text, "new.png,another\n"...), 0o666)); err != nil {
		t.Fatal(err)
	}
	if got := lines(4, "data.changed=accept"); len(got) != 1 || !strings.Contains(got[0], "samples of an epoch = 14 (was 13)") {
		t.Errorf("of data that has grown: %q", got)
	}
	if got := lines(5); len(got) > 0 {
		t.Errorf("of the same data again: %q", got)
	}
}
