package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/internal/check"
)

// pictured writes n pictures with captions and their list, without those of leave, whose files are damaged or, where gone,
// not there.
func pictured(t *testing.T, dir, split string, n int, damaged, gone []int, leave bool) string {
	t.Helper()
	bad := map[int]bool{}
	for _, i := range append(damaged, gone...) {
		bad[i] = true
	}
	type entry struct {
		Image   string   `json:"image"`
		Caption []string `json:"caption"`
	}
	var list []entry
	for i := range n {
		name := fmt.Sprintf("%s/%03d.png", split, i)
		path := filepath.Join(dir, name)
		check.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
		m := image.NewRGBA(image.Rect(0, 0, 20, 20))
		for k := range 400 {
			m.Set(k%20, k/20, color.RGBA{uint8(i * 20), uint8(k * i), uint8(k), 255})
		}
		f := check.Get(os.Create(path))(t)
		check.OK(t, errors.Join(png.Encode(f, m), f.Close()))
		if !leave || !bad[i] {
			list = append(list, entry{name, []string{fmt.Sprintf("picture %c of %d", 'a'+i, i%3), fmt.Sprintf("a %c thing", 'a'+i)}})
		}
	}
	for _, i := range damaged {
		check.OK(t, os.Truncate(filepath.Join(dir, fmt.Sprintf("%s/%03d.png", split, i)), 40))
	}
	for _, i := range gone {
		check.OK(t, os.Remove(filepath.Join(dir, fmt.Sprintf("%s/%03d.png", split, i))))
	}
	b := check.Get(json.Marshal(list))(t)
	name := split + ".json"
	check.OK(t, os.WriteFile(filepath.Join(dir, name), b, 0o644))
	return name
}

// An evaluation leaves out pictures that cannot be read, as many as data.max_bad_share allows, and finds the numbers of a list without
// them, on one rank and on several.
func TestEvaluationWithoutUnreadablePictures(t *testing.T) {
	sets := func(leave bool, share string) []string {
		dir := t.TempDir()
		return []string{"data.kind=captions", "data.root=" + dir, "train.batch_size=6", "eval.batch_size=3", "train.max_steps=2", "train.eval_every_steps=1", "data.max_bad_share=" + share,
			"data.captions.train_files=" + pictured(t, dir, "train", 12, nil, nil, false), "data.captions.val_files=" + pictured(t, dir, "val", 13, []int{4, 11}, []int{7}, leave)}
	}
	evaluated := func(dir string) map[string]float64 {
		values := map[string]float64{}
		for name, v := range logOf(t, dir)[1].Values {
			if strings.HasPrefix(name, "eval/") {
				values[name] = v
			}
		}
		return values
	}
	clean := t.TempDir()
	trained(t, settings(t, clean, sets(true, "0")...), Options{})
	want := evaluated(clean)
	if len(want) < 3 {
		t.Fatal(want)
	}
	want["eval/left_out"] = 3
	for _, ranks := range []int{1, 2, 3} {
		dir := t.TempDir()
		out := onRanks(t, ranks, sameFor(settings(t, dir, sets(false, "0.25")...)))
		for r, x := range out {
			if x.err != nil {
				t.Fatalf("rank %d of %d: %v", r, ranks, x.err)
			}
		}
		if got := evaluated(dir); !maps.Equal(got, want) {
			t.Errorf("%d ranks: %v, want %v", ranks, got, want)
		}
		if said := strings.Join(out[0].lines, "\n"); strings.Count(said, "evaluation: 3 of 13 images cannot be read and are left out (data.max_bad_share = 0.25), such as ") != 1 {
			t.Errorf("%d ranks: %s", ranks, said)
		}
	}
	for _, ranks := range []int{1, 2} {
		for share, want := range map[string]string{"0.2": "evaluation: data: 3 of 13 samples are bad, more than data.max_bad_share = 0.2 allows", "0": "1 of 13 image files cannot be read"} {
			for r, x := range onRanks(t, ranks, sameFor(settings(t, t.TempDir(), sets(false, share)...))) {
				if x.err == nil || !strings.Contains(x.err.Error(), want) {
					t.Errorf("rank %d of %d, share %s: %v, want %q", r, ranks, share, x.err, want)
				}
			}
		}
	}
}

// A share of bad rows is judged over all rows.
func TestBadRows(t *testing.T) {
	bad := data.BadRows{3: "x", 7: "y"}
	if err := bad.CheckShare(20, .1); err != nil {
		t.Error(err)
	}
	var share *data.BadShareError
	if err := bad.CheckShare(19, .1); !errors.As(err, &share) || share.Bad != 2 || share.Read != 19 || len(share.Examples) != 2 || share.Examples[0].Counter != 3 {
		t.Errorf("%v", err)
	}
}
