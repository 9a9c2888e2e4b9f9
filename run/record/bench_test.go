package record

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/identity"
)

// BenchmarkDataIdentity is what the identity of Flickr8k costs: of its lists when a run is opened (open is that of
// the lists themselves), and of its files beside the steps, the first time and once they are known.
func BenchmarkDataIdentity(b *testing.B) {
	root := "../../../shared/data/flickr8k"
	if _, err := os.Stat(root); err != nil {
		b.Skip("there is no ", root)
	}
	cfg, err := config.Default().With("data.root="+root, "data.kind=captions", "data.captions.train_files=train.json", "data.captions.val_files=val.json")
	if err != nil {
		b.Fatal(err)
	}
	stream := check.Get(source.Stream(b.Context(), cfg.Source(), source.Options{}))(b)
	lists := func(b *testing.B) *Opened {
		e, ok := data.EntriesOf(stream)
		if !ok {
			b.Fatal("the stream has no entries")
		}
		s := check.Get(OpenSplit(b.Context(), cfg, "train", e, source.Inputs(cfg.Source(), "train")))(b)
		return &Opened{Splits: []*OpenedSplit{s}}
	}
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			check.Get(source.Stream(b.Context(), cfg.Source(), source.Options{}))(b)
		}
	})
	b.Run("lists", func(b *testing.B) {
		for b.Loop() {
			lists(b)
		}
	})
	store := filepath.Join(b.TempDir(), "sums")
	read := func(b *testing.B, path string) {
		p := NewPass(lists(b), nil, nil)
		p.book = identity.OpenBook(path)
		p.rest.hurry()
		check.OK(b, p.run(b.Context()))
		check.OK(b, p.book.Save())
	}
	for name, path := range map[string]string{"files": "", "known files": store} {
		read(b, path)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				read(b, path)
			}
		})
	}
}
