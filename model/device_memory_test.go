package model

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/cuda/cudatest"
	"github.com/geoalign/geoalign/internal/kernel"
)

// TestCUDAClosing: what models take on the device for training and for inference they give back when they are closed,
// and can be used for inference again. What the device takes for all of them, such as memory that steps share, the
// first one takes.
func TestCUDAClosing(t *testing.T) {
	d := cudatest.Open(t)
	frozen := tinyConfig()
	frozen.Model.Image.Freeze = true
	var before int64
	for round, cfg := range []config.Config{tinyConfig(), tinyConfig(), frozen, withLoRA(tinyConfig(), everyBlock...), tinyConfig()} {
		m := deviceModel(t, cfg, "fp32", d)
		b := randomBatch(m, 1)
		step(t, m, b, Control{UseQueue: true})
		x, _ := opened(t, m)
		encode := func() {
			t.Helper()
			for n := 1; n <= 4; n++ { // a computation each
				check.Get2(x.EncodeImages(b.Images[:n*len(b.Images)/4], n))(t)
				check.Get2(x.EncodeTexts(b.Tokens[:n*len(b.Tokens)/4], b.Lengths[:n], n))(t)
			}
		}
		encode()
		if now, _ := d.Allocated(); round > 0 && now <= before {
			t.Errorf("round %d: two models take %d bytes", round, now-before)
		}
		check.OK(t, errors.Join(x.Close(), m.Close()))
		now, _ := d.Allocated()
		if round == 0 {
			before = now
		}
		if now != before {
			t.Errorf("round %d: closed models hold %d bytes", round, now-before)
		}
		if round == 1 {
			encode()
			if err := x.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestCUDARoom: computations for inference of several shapes lie in the same memory, and one gives the same numbers
// whichever ran before it.
func TestCUDARoom(t *testing.T) {
	d := cudatest.Open(t)
	m := deviceModel(t, tinyConfig(), "fp32", d)
	b := randomBatch(m, 1)
	x, _ := opened(t, m)
	t.Cleanup(func() { x.Close() })
	encode := func(n int) string {
		t.Helper()
		_, texts := encodeTexts(t, x, b.Tokens[:n*len(b.Tokens)/4], b.Lengths[:n], n)
		return fmt.Sprint(texts)
	}
	first := map[int]string{}
	for _, n := range []int{4, 1, 3, 2} {
		first[n] = encode(n)
	}
	for _, n := range []int{1, 2, 4, 3, 3, 1} {
		if got := encode(n); got != first[n] {
			t.Errorf("%d texts: %s, at first %s", n, got, first[n])
		}
	}
	if n := len(x.text.encodings.kept); n < 4 {
		t.Errorf("%d computations are kept", n)
	}
	x.Text().Forget()
	for _, n := range []int{2, 4} {
		if got := encode(n); got != first[n] {
			t.Errorf("compiled again: %d texts: %s, at first %s", n, got, first[n])
		}
	}
}

// TestCUDATooLarge: what cannot fit into the device is refused before anything is taken, and results that lie there do
// not count as memory of the machine.
func TestCUDATooLarge(t *testing.T) {
	d := cudatest.Open(t)
	cfg := tinyConfig()
	cfg.Model.Image.Width, cfg.Model.Text.Width = 32<<10, 32<<10
	e := engineOf(t, kernel.Options{Backend: "builtin", Threads: 1})
	e.SetDevice(d)
	t.Cleanup(func() { e.SetDevice(nil) })
	limitMemory(t, 1<<50)
	before, _ := d.Allocated()
	var full *MemoryError
	if _, err := newModel(cfg, e); !errors.As(err, &full) || full.Device != d.Info().Name || !strings.Contains(err.Error(), "of the device's memory") {
		t.Errorf("got %v", err)
	}
	if now, _ := d.Allocated(); now != before {
		t.Errorf("%d bytes are held", now-before)
	}
	small := build(t, tinyConfig(), "auto", 1)
	f := small.Footprint()
	limitMemory(t, f.Total()-f.Buffers/2)
	if _, err := newModel(tinyConfig(), small.engine); !errors.As(err, &full) || full.Device != "" {
		t.Errorf("on the host: %v", err)
	}
	m, err := newModel(tinyConfig(), e)
	if err != nil {
		t.Fatalf("with results on the device: %v", err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}
