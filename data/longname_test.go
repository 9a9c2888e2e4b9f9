package data

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/geoalign/geoalign/internal/budget/budgettest"
)

// TestLongNames: a name of any length is shown in part, by errors, bad samples and findings, and so are captions.
func TestLongNames(t *testing.T) {
	long, dir := strings.Repeat("\x1b", 5_000_000), t.TempDir()
	b, err := json.Marshal([]map[string]any{{"image": long, "caption": strings.Repeat("long words ", 1_000_000)}, {"image": long + "2", "caption": strings.Repeat("long words ", 1_000_000)}})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "a.json"), b, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	ds := listed(t, dir, "a.json")
	short := func(what, text string) {
		if len(text) > 3000 || !strings.Contains(text, " bytes] ... ") {
			t.Errorf("%s has %d bytes: %.1000q", what, len(text), text)
		}
	}
	for _, kind := range []string{"none", "disk"} {
		c, err := NewCache(CacheConfig{Kind: kind, Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		ds.UseCache(c)
		done := budgettest.Within(t, 0)
		_, err = ds.Image(0)
		done()
		if !errors.Is(err, syscall.ENAMETOOLONG) {
			t.Fatalf("%.1000v", err)
		}
		short("the error of a name", err.Error())
	}
	found, err := Check(context.Background(), ds, CheckConfig{Images: true, MaxWords: 5})
	if err != nil || len(found) < 3 {
		t.Fatalf("%d findings, %v", len(found), err)
	}
	for _, f := range found {
		for _, e := range f.Examples {
			short(f.Kind, e)
		}
	}
	tr, err := NewTrain(ds, TrainConfig{Seed: 1, Transform: trainSmall, Text: someText(12)})
	if err != nil {
		t.Fatal(err)
	}
	_, err = newLoader(t, tr, LoaderConfig{BatchSize: 1, Workers: 1}).Next(context.Background())
	if many := new(BadShareError); !errors.As(err, &many) || len(err.Error()) > 10_000 {
		t.Errorf("%.1000v", err)
	}
}
