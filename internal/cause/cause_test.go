package cause

import (
	"errors"
	"fmt"
	"io"
	"testing"
)

func TestJoin(t *testing.T) {
	lost, other := errors.New("lost"), errors.New("other")
	step, save := fmt.Errorf("step 3: %w", lost), fmt.Errorf("save: disk: %w", lost)
	for _, c := range []struct {
		errs []error
		want string
	}{
		{nil, "<nil>"},
		{[]error{nil, nil}, "<nil>"},
		{[]error{nil, step, nil, save, lost}, "step 3: lost"},
		{[]error{step, other}, "step 3: lost\nother"},
		{[]error{errors.Join(other, step), save}, "other\nstep 3: lost"},
		{[]error{step, errors.Join(lost)}, "step 3: lost"},
		{[]error{step, errors.Join(save, nil, other)}, "step 3: lost\nother"},
		{[]error{step, fmt.Errorf("close: %w", errors.Join(lost, lost))}, "step 3: lost"},
		{[]error{step, fmt.Errorf("close: %w", errors.Join(lost, other))}, "step 3: lost\nclose: lost\nother"},
		{[]error{fmt.Errorf("went back: %w (after: %w)", other, step), lost}, "went back: other (after: step 3: lost)"},
		{[]error{step, errors.New("lost")}, "step 3: lost\nlost"}, // of the same words alone
	} {
		if got := fmt.Sprint(Join(c.errs...)); got != c.want {
			t.Errorf("%v: got %q, want %q", c.errs, got, c.want)
		}
	}
	if err := Join(fmt.Errorf("a: %w", io.EOF), other); !errors.Is(err, io.EOF) || !errors.Is(err, other) {
		t.Errorf("%v hides what it joins", err)
	}
}
