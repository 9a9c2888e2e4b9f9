package runlog

import (
	"errors"
	"slices"
	"sort"
	"strings"

	"github.com/geoalign/geoalign/internal/words"
)

// Logger takes the numbers of a step.
type Logger interface {
	// Log writes values, the numbers of step by name. It does not keep values.
	Log(step int, values map[string]float64) error
	Close() error
}

// Rewinder is a Logger that can forget what came after a step, as a run that
// goes back to a checkpoint needs.
type Rewinder interface {
	Rewind(step int) error
}

// Multi returns a Logger that passes everything on to all of loggers. One that
// fails does not keep the others from their work; the errors are joined.
func Multi(loggers ...Logger) Logger { return multi(slices.Clone(loggers)) }

type multi []Logger

var (
	_ Logger   = multi(nil)
	_ Rewinder = multi(nil)
)

func (m multi) Log(step int, values map[string]float64) error {
	var err error
	for _, l := range m {
		err = errors.Join(err, l.Log(step, values))
	}
	return err
}

func (m multi) Rewind(step int) error {
	var err error
	for _, l := range m {
		if r, ok := l.(Rewinder); ok {
			err = errors.Join(err, r.Rewind(step))
		}
	}
	return err
}

func (m multi) Close() error {
	var err error
	for _, l := range m {
		err = errors.Join(err, l.Close())
	}
	return err
}

// leading is the order of the usual names; loss/<part> follows loss, other names
// come after these, evaluations last.
var leading = []string{"epoch", "time", "loss", "lr", "temperature", "grad_norm", "samples_per_second"}

// Keys returns the names of values in the order that logs print them.
func Keys(values map[string]float64) []string {
	keys := make([]string, 0, len(values))
	for k := range values {
		keys = append(keys, k)
	}
	rank := func(k string) int {
		if strings.HasPrefix(k, "eval/") {
			return len(leading) + 1
		}
		head, _, _ := strings.Cut(k, "/")
		if i := slices.Index(leading, head); i >= 0 {
			return i
		}
		return len(leading)
	}
	sort.Slice(keys, func(i, j int) bool {
		if a, b := rank(keys[i]), rank(keys[j]); a != b {
			return a < b
		}
		return words.Natural(keys[i], keys[j]) < 0
	})
	return keys
}
