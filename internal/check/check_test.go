package check

import (
	"errors"
	"fmt"
	"testing"
)

// fake notes what a test would say.
type fake struct {
	testing.TB
	said []any
}

func (*fake) Helper()                     {}
func (f *fake) Fatal(v ...any)            { f.said = append(f.said, v...) }
func (f *fake) Errorf(_ string, v ...any) { f.said = append(f.said, v...) }

// TestChecks gives each function a call that works and one that fails.
func TestChecks(t *testing.T) {
	for _, err := range []error{nil, errors.New("broken")} {
		f := &fake{}
		OK(f, err)
		v := Get(3, err)(f)
		a, b := Get2("x", 4, err)(f)
		Error(f, err, "bro", "ken")
		Fails(0, err)(f, "broken")
		want := "[<nil> bro <nil> ken <nil> broken]"
		if err != nil {
			want = "[broken broken broken broken whole]"
			Error(f, err, "broken", "whole")
		}
		if got := fmt.Sprint(f.said); got != want || v != 3 || a != "x" || b != 4 {
			t.Errorf("error %v: said %s, values %v %v %v", err, got, v, a, b)
		}
	}
}
