package exec_test

import (
	"context"
	"errors"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/exec"
)

// looks is a context that is done when it is looked at for the nth time.
type looks struct {
	context.Context
	left int
}

func (l *looks) Err() error {
	if l.left--; l.left < 0 {
		return context.Canceled
	}
	return nil
}

// A run whose context ends stops before the next op, and the next run does not notice.
func TestRunEndsWithTheContext(t *testing.T) {
	f := network(t)
	m := f.compile(t, exec.Config{})
	check.OK(t, m.RunAll())
	want := check.Get(m.Scalar(f.outputs[0]))(t)
	for n := range m.Nodes() {
		if err := m.Run(&looks{t.Context(), n}); !errors.Is(err, context.Canceled) {
			t.Fatalf("stopped before op %d: %v", n, err)
		}
	}
	check.OK(t, m.Run(&looks{t.Context(), m.Nodes()}))
	if got, err := m.Scalar(f.outputs[0]); err != nil || got != want {
		t.Errorf("%v, %v after runs that were stopped, want %v", err, got, want)
	}
}
