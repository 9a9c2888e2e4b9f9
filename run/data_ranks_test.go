package run

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// trainThere trains on a rank whose machine has other files below data.root: those of root. All have the same configuration.
func trainThere(t *testing.T, cfg config.Config, g parallel.Group, root string) (err error) {
	b := newOpening(cfg, Options{Group: g}, false)
	defer func() { err = errors.Join(err, b.Close()) }()
	for _, stage := range b.stages() {
		if err := parallel.Agree(g, stage(t.Context())); err != nil {
			return err
		}
		if b.dir != "" { // the configurations are compared, and nothing is opened yet
			b.cfg.Data.Root = root
		}
	}
	_, err = b.Train(t.Context())
	return err
}

// TestDataOfRanks: ranks whose lists, features or pictures differ end with an error that says so: lists and features before the first step,
// pictures with a checkpoint.
func TestDataOfRanks(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	lists := []string{"data.vocab=vocab.txt", "data.kind=csv", "data.csv.train_files=table.csv", "data.csv.val_files=good.csv", "data.max_bad_share=0.3", "train.batch_size=4", "train.max_steps=3", "train.save_every_steps=2"}
	features := []string{"data.pairs.image=image.npy", "data.pairs.text=text.npy", "data.pairs.val_samples=10", "data.pairs.test_samples=0", "model.heads.hidden=12", "model.head.dim=8", "train.batch_size=8", "data.max_bad_share=0.3", "train.max_steps=3", "train.max_epochs=0"}
	for name, c := range map[string]struct {
		base, file string
		sets       []string
		change     func(text []byte) []byte
		want       string
		steps      int
	}{
		"a caption": {"testdata/scenes.toml", "table.csv", lists, func(b []byte) []byte {
			return []byte(strings.Replace(string(b), "a picture number 3", "a picture number 8", 1))
		},
			"rank 1 has another list of samples of train than rank 0 (sum ", 0},
		"a picture": {"testdata/scenes.toml", "08.png", lists, func(b []byte) []byte { b[70] ^= 1; return b },
			"train: 08.png holds something else than on rank 0 (and others may too): give all machines the same data", 2},
		"a picture of another size": {"testdata/scenes.toml", "08.png", lists, func(b []byte) []byte { return append(b, 0) },
			"train: 08.png holds something else than on rank 0", 2},
		"a feature": {"../configs/heads.toml", "image.npy", features, func(b []byte) []byte { b[len(b)-5] ^= 1; return b },
			"image.npy than rank 0 (sum ", 0},
	} {
		t.Run(name, func(t *testing.T) {
			roots, out := []string{kindsData(t), ""}, filepath.Join(t.TempDir(), "run")
			roots[1] = filepath.Join(t.TempDir(), "there")
			check.OK(t, os.CopyFS(roots[1], os.DirFS(roots[0])))
			path := filepath.Join(roots[1], c.file)
			text, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path, c.change(text), 0o666)
			}
			if err != nil {
				t.Fatal(err)
			}
			cfg, err := config.Load(c.base, slices.Concat([]string{"run.out=" + out, "data.root=" + roots[0]}, c.sets))
			if err != nil {
				t.Fatal(err)
			}
			for r, err := range atOnce(2, func(g parallel.Group) error { return trainThere(t, cfg, g, roots[g.Rank()]) }) {
				if f := (*parallel.Failure)(nil); !errors.As(err, &f) || !strings.Contains(f.Error(), c.want) {
					t.Errorf("rank %d: %v, want %q", r, err, c.want)
				}
			}
			ck, err := checkpoint.Load(out)
			if c.steps == 0 {
				if err == nil {
					t.Error("there is a checkpoint")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer ck.Close()
			if ck.Step < c.steps {
				t.Errorf("the checkpoint is of step %d", ck.Step)
			}
		})
	}
}
