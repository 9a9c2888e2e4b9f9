package setup

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/identity"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// Fact is something that all ranks must have alike. Found on rank 0, it is one error before the first step.
type Fact struct {
	What  string // such as "the program"
	Value string // equal where it is alike
	Shown string // for people; empty: Value
	Hint  string // what to do where it is not
}

// Alike compares the facts of all ranks, which have the same ones in the same order, and returns on all of them an
// error about the first in which a rank differs from rank 0.
func Alike(g parallel.Group, own ...Fact) error {
	if g.Size() == 1 {
		return nil
	}
	text, err := json.Marshal(own)
	if err := parallel.Agree(g, err); err != nil {
		return err
	}
	all, err := g.GatherBytes(text)
	if err != nil {
		return err
	}
	return parallel.Agree(g, differs(all))
}

// differs is alike of what all ranks told.
func differs(all [][]byte) error {
	var first []Fact
	for r, text := range all {
		var facts []Fact
		if err := json.Unmarshal(text, &facts); err != nil {
			return fmt.Errorf("rank %d: %w: start the same program on all ranks", r, err)
		}
		if r == 0 {
			first = facts
		}
		if len(facts) != len(first) {
			return fmt.Errorf("rank %d is another program than rank 0: start the same one on all ranks", r)
		}
		for i, f := range facts {
			if was := first[i]; f.Value != was.Value {
				return fmt.Errorf("rank %d has another %s than rank 0 (%s there, %s here): %s", r, f.What, was.shown(),
					f.shown(), f.Hint)
			}
		}
	}
	return nil
}

// SameProgram makes sure that all ranks are the same program with the same configuration.
func SameProgram(g parallel.Group, cfg config.Config, resume string) error {
	if g.Size() == 1 {
		return nil
	}
	text, err := cfg.Encode()
	if err := parallel.Agree(g, err); err != nil {
		return err
	}
	version, sum := program()
	if err := Alike(g,
		Fact{"program", version + " " + sum, "", "install the same one on every machine"},
		Fact{"--resume", resume, fmt.Sprintf("%q", resume), "start all ranks with the same flags"},
		Fact{"seed", fmt.Sprint(cfg.Run.Seed), "", "start all ranks with the same run.seed"},
	); err != nil {
		return err
	}
	all, err := g.GatherBytes(text)
	if err != nil {
		return err
	}
	for r, other := range all {
		if line, there := firstDifference(string(all[0]), string(other)); line != there {
			return parallel.Agree(g, fmt.Errorf(
				"rank %d has another configuration than rank 0 (%s there, %s here): start all ranks with the same file and flags", r, line, there))
		}
	}
	return nil
}

// firstDifference returns the first lines of TOML texts that differ, each behind its section.
func firstDifference(a, b string) (inA, inB string) {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	section := ""
	for i := range max(len(x), len(y)) {
		p, q := "", ""
		if i < len(x) {
			p = x[i]
		}
		if i < len(y) {
			q = y[i]
		}
		if p != q {
			return section + strings.TrimSpace(p), section + strings.TrimSpace(q)
		}
		if t := strings.TrimSpace(p); strings.HasPrefix(t, "[") {
			section = t + " "
		}
	}
	return "", ""
}

// sameCheckpoint makes sure that all ranks go on from the same checkpoint, and not from one of the same name.
func sameCheckpoint(g parallel.Group, ck *checkpoint.Checkpoint) error {
	if g.Size() == 1 {
		return nil
	}
	return Alike(g, Fact{"checkpoint " + ck.Path, fmt.Sprint(ck.Step, ck.Sum()), "checksum " + ck.Sum(),
		"copy that of rank 0 to the same path on every machine"})
}

// NewFact returns a fact; shown may be empty.
func NewFact(what, value, shown, hint string) Fact { return Fact{what, value, shown, hint} }

func (f Fact) shown() string {
	if f.Shown != "" {
		return f.Shown
	}
	return f.Value
}

// program identifies the running program: its version and the checksum of its file, empty where that cannot be read.
var program = sync.OnceValues(func() (version, sum string) {
	if info, ok := debug.ReadBuildInfo(); ok {
		version = strings.TrimSpace(info.Main.Path + " " + info.Main.Version)
	}
	if path, err := os.Executable(); err == nil {
		if s, err := identity.Of(context.Background(), path); err == nil {
			sum = s.String()
		}
	}
	return version, sum
})

// SharedCheckpoint has rank 0 find a checkpoint, and all others open the one that it found.
func SharedCheckpoint(g parallel.Group, find func() (*checkpoint.Checkpoint, error),
	open func(path string) (*checkpoint.Checkpoint, error)) (ck *checkpoint.Checkpoint, err error) {
	if g.Size() == 1 {
		return find()
	}
	defer func() {
		if err != nil && ck != nil {
			ck.Close()
			ck = nil
		}
	}()
	path := ""
	if err := parallel.ByFirst(g, func() (err error) {
		if ck, err = find(); err == nil {
			path = ck.Path
		}
		return err
	}); err != nil {
		return ck, err
	}
	text, err := parallel.Told(g, []byte(path))
	if err != nil {
		return ck, err
	}
	if ck == nil {
		if ck, err = open(string(text)); err != nil {
			ck, err = nil, fmt.Errorf("the checkpoint of rank 0 cannot be read here: %w\n(all ranks read it: keep the run folder where every machine sees it, or copy the step folder to the same path on each)", err)
		}
	}
	if err := parallel.Agree(g, err); err != nil {
		return ck, err
	}
	return ck, sameCheckpoint(g, ck)
}
