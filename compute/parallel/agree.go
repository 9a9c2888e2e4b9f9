package parallel

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Ranks that do work of their own between exchanges may fail alone, and the others would wait
// for them. So the rule is: before ranks exchange anything stands an Agree on the errors so
// far. A rank that has failed goes straight to the next Agree that it comes to, wherever
// that is in its program, and meets the others there.

// Failure is what ended the work of all ranks: errors of some of them, which all were told.
type Failure struct {
	Texts []string // of the error of each rank, empty where there was none
	own   error
}

// Error tells what all ranks met as one error, and of others which ranks did.
func (f *Failure) Error() string {
	if f.Common() {
		return f.Texts[0]
	}
	var lines []string
	for r, text := range f.Texts {
		if text == "" || slices.Contains(f.Texts[:r], text) {
			continue
		}
		who := ""
		for other := r; other < len(f.Texts); other++ {
			if f.Texts[other] == text {
				who += fmt.Sprintf(", %d", other)
			}
		}
		name := "rank "
		if strings.Count(who, ",") > 1 {
			name = "ranks "
		}
		lines = append(lines, name+who[2:]+": "+text)
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the error of this rank, nil where it had none.
func (f *Failure) Unwrap() error { return f.own }

// Common says whether all ranks met the same.
func (f *Failure) Common() bool {
	return !slices.ContainsFunc(f.Texts, func(text string) bool { return text != f.Texts[0] })
}

// Rank is the first rank that has failed.
func (f *Failure) Rank() int {
	return slices.IndexFunc(f.Texts, func(text string) bool { return text != "" })
}

// Agree returns nil where err is nil on all ranks, and else on all ranks a *Failure. That of an
// earlier Agree is returned as it is. Of one process it returns err. An error of the exchange
// itself is no *Failure: what other ranks do is then unknown.
func Agree(g Group, err error) error {
	if g.Size() == 1 {
		return err
	}
	if told := (*Failure)(nil); errors.As(err, &told) { // on all ranks
		return err
	}
	var own []byte
	if err != nil {
		own = []byte("!" + err.Error()) // the text may be empty
	}
	all, failed := g.GatherBytes(own)
	if failed != nil {
		return errors.Join(err, failed)
	}
	f := &Failure{own: err}
	any := false
	for _, text := range all {
		t := ""
		if len(text) > 0 {
			any, t = true, string(text[1:])
			if t == "" {
				t = "an error without words"
			}
		}
		f.Texts = append(f.Texts, t)
	}
	if !any {
		return nil
	}
	return f
}

// Told returns what rank 0 gives, on all ranks.
func Told(g Group, x []byte) ([]byte, error) {
	if g.Size() == 1 {
		return x, nil
	}
	if g.Rank() != 0 {
		x = nil
	}
	all, err := g.GatherBytes(x)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// ByFirst has rank 0 do something quick, and agrees on its error.
func ByFirst(g Group, do func() error) error {
	var err error
	if g.Rank() == 0 {
		err = do()
	}
	return Agree(g, err)
}

// patience is how long a rank that works leaves the others without a word, which would take it for
// lost.
const patience = time.Second

// Alone has rank 0 do work that is not a rank's share, however long it takes, while the others
// wait, and agrees on its error. The work must not use the group.
func Alone(g Group, work func() error) error { return turn(g, 0, work) }

// First has rank 0 do work, and then all others at once: so that what it leaves in files serves those
// that see them. The work must not use the group.
func First(g Group, work func() error) error {
	if err := Alone(g, work); err != nil || g.Size() == 1 {
		return err
	}
	var err error
	if g.Rank() != 0 {
		err = work()
	}
	return Agree(g, err)
}

// Turns has one rank after the other do work, of which two at a time would be in each other's way.
// The work must not use the group.
func Turns(g Group, work func() error) error {
	for r := range g.Size() {
		if err := turn(g, r, work); err != nil {
			return err
		}
	}
	return nil
}

// turn has a rank do work while the others wait.
func turn(g Group, rank int, work func() error) error {
	if g.Size() == 1 {
		return work()
	}
	if err := Agree(g, nil); err != nil { // of a rank that failed before
		return err
	}
	if g.Rank() == rank {
		return Agree(g, busy(g, work))
	}
	for {
		all, err := g.GatherBytes(nil)
		switch {
		case err != nil:
			return err
		case len(all[rank]) == 0:
			return Agree(g, nil)
		}
	}
}

// busy does work and tells the others so again and again until it is done.
func busy(g Group, work func() error) error {
	done := make(chan error, 1)
	go func() { done <- work() }()
	tick := time.NewTicker(patience)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			_, failed := g.GatherBytes(nil)
			return errors.Join(err, failed)
		case <-tick.C:
			if _, err := g.GatherBytes([]byte{1}); err != nil {
				return errors.Join(<-done, err)
			}
		}
	}
}
