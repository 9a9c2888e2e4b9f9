package scenes

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/rng"
)

// splitSeed seeds the validation and test splits of every run.
const splitSeed = 20240611

// World is an endless train stream with fixed validation and test splits. Its
// methods may be called from several goroutines.
type World struct {
	cfg       Config
	seed      uint64
	val, test []Scene
	held      map[uint64]bool // keys of the scenes that training must not see
}

// New returns the world of cfg. The seed drives the train stream only. It fails
// when a field is out of range or when the splits would need more than half of
// the scenes that the configuration can tell apart.
func New(cfg Config, seed uint64) (*World, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	w := &World{cfg: cfg, seed: seed, held: map[uint64]bool{}}
	pairs := max(cfg.ValSamples, cfg.TestSamples)
	var room [MaxObjects + 1]float64 // scenes of n objects that may still be held out
	total := 0.0
	for n := cfg.MinObjects; n <= cfg.MaxObjects; n++ {
		room[n] = distinctScenes(cfg, n) / 2
		total += room[n]
	}
	if float64(2*pairs) > total {
		return nil, tooFew(cfg, total)
	}
	// Accepted scenes go to test and val in turn, so that a split of another
	// length begins with the same scenes.
	said := map[string]bool{}
	misses := 0
	for i := uint64(0); len(w.held) < 2*pairs; i++ {
		s := generate(rng.New(splitSeed, "scenes/held-out", i), cfg)
		key, captions := s.Key(), s.Captions()
		fresh := !w.held[key] && room[len(s.Objects)] >= 1
		for _, c := range captions {
			fresh = fresh && !said[c]
		}
		if !fresh {
			if misses++; misses > 100*pairs+10000 {
				return nil, tooFew(cfg, total)
			}
			continue
		}
		if len(w.held)%2 == 0 {
			w.test = append(w.test, s)
		} else {
			w.val = append(w.val, s)
		}
		w.held[key] = true
		room[len(s.Objects)]--
		for _, c := range captions {
			said[c] = true
		}
	}
	w.val, w.test = w.val[:cfg.ValSamples], w.test[:cfg.TestSamples]
	return w, nil
}

func tooFew(cfg Config, room float64) error {
	return fmt.Errorf("scenes: val_samples %d and test_samples %d do not fit into a world of which %.0f scenes may be "+
		"held out: allow more objects, shapes, colours or sizes, or ask for smaller splits", cfg.ValSamples,
		cfg.TestSamples, room)
}

// distinctScenes counts the keys of scenes with n objects: which cells, which
// different looks in them, and a size each.
func distinctScenes(cfg Config, n int) float64 {
	count := 1.0
	for i := range n {
		count *= float64(numPlaces-i) / float64(i+1)                    // choose n cells of 9
		count *= float64(cfg.Shapes*cfg.Colours-i) * float64(cfg.Sizes) // look and size
	}
	return count
}

// Config returns the configuration with defaults filled in.
func (w *World) Config() Config { return w.cfg }

// Train returns scene index of the train stream, which has no end. A scene that
// equals a held-out one in all facts is replaced by another with as many
// objects.
func (w *World) Train(index uint64) Scene {
	r := rng.New(w.seed, rng.Scenes, index)
	s := generate(r, w.cfg)
	for w.held[s.Key()] {
		s = generateCount(r, w.cfg, len(s.Objects))
	}
	return s
}

// NumVal returns the number of validation scenes.
func (w *World) NumVal() int { return len(w.val) }

// NumTest returns the number of test scenes.
func (w *World) NumTest() int { return len(w.test) }

// Val returns validation scene i, 0 <= i < NumVal. Do not modify its objects.
func (w *World) Val(i int) Scene { return w.val[i] }

// Test returns test scene i, 0 <= i < NumTest. Do not modify its objects.
func (w *World) Test(i int) Scene { return w.test[i] }
