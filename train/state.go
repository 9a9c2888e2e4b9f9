package train

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/state"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// configFile is the configuration in a checkpoint.
const configFile = "config.toml"

// TokenizerFile is the tokenizer in a checkpoint, of a system with texts.
const TokenizerFile = "tokenizer.json"

// stateful is a system with more to save than its parameters, such as a queue. What it
// lists is in every checkpoint; nothing else need be told of it.
type stateful interface{ State() []state.Part }

// State returns everything that a checkpoint of the session holds.
func (s *Session) State() []state.Part {
	parts := append([]state.Part{&s.run}, s.model.Params().State()...)
	parts = append(parts, s.optimizer)
	if m, ok := s.model.(stateful); ok {
		parts = append(parts, m.State()...)
	}
	return append(parts, s.loader)
}

// Snapshot returns everything that a resumed run needs after the step of e. Its
// tensors are the session's own memory: save it before the next step. Numbers that
// are not finite are an error, since a run cannot go on from them.
func (s *Session) Snapshot(e *Event) (checkpoint.Snapshot, error) {
	snap, err := snapshot(&s.run, e, s.cfg, s.tokenizer, s.State)
	if names := classesOf(s.model); err == nil && names != nil {
		snap.Files[ClassesFile], err = json.Marshal(names)
	}
	return snap, err
}

// snapshot takes the parts of a run after the step of e, with its configuration and its
// tokenizer, which may be nil. own is the part of the run itself.
func snapshot(own *runPart, e *Event, cfg config.Config, tok *tokenizer.Tokenizer,
	parts func() []state.Part) (checkpoint.Snapshot, error) {
	own.State = State{Step: e.Step, Seed: cfg.Run.Seed, Elapsed: e.Elapsed.Seconds(), Ranks: cfg.Ranks,
		Values: maps.Clone(e.Values)}
	maps.DeleteFunc(own.Values, func(_ string, v float64) bool { return !finite(v) }) // JSON has none
	snap, err := checkpoint.Take(parts())
	if err != nil {
		return snap, err
	}
	resolved, err := cfg.Encode()
	if err != nil {
		return snap, err
	}
	snap.Files = map[string][]byte{configFile: resolved}
	if tok != nil {
		if snap.Files[TokenizerFile], err = tok.JSON(); err != nil {
			return snap, err
		}
	}
	return snap, nil
}

// Restore sets the session to a checkpoint of the same architecture, classes and seed. One that
// does not fit leaves it as it was.
func (s *Session) Restore(c *checkpoint.Checkpoint) (State, error) {
	if err := sameClasses(c, s.model); err != nil {
		return State{}, err
	}
	return s.restore(c, s.State())
}

// Rollback sets the session to a checkpoint but keeps the place in the data, which
// is behind the batch that was not finite.
func (s *Session) Rollback(c *checkpoint.Checkpoint) (State, error) {
	return s.restore(c, slices.DeleteFunc(s.State(), func(p state.Part) bool { return p == state.Part(s.loader) }))
}

func (s *Session) restore(c *checkpoint.Checkpoint, parts []state.Part) (State, error) {
	if err := s.unstage(); err != nil {
		return State{}, err
	}
	out, err := restore(&s.run, c, s.cfg.Run.Seed, parts)
	out.Unread = slices.DeleteFunc(out.Unread, func(name string) bool { return name == s.loader.StateName() })
	return out, err
}

// restore sets parts to a checkpoint, of which own is that of the run itself.
func restore(own *runPart, c *checkpoint.Checkpoint, seed uint64, parts []state.Part) (State, error) {
	own.seed = seed
	unread, err := c.Restore(parts)
	if err != nil {
		return State{}, err
	}
	out := own.State
	out.Unread = unread
	return out, nil
}

// OpenConfig returns the configuration that a checkpoint was trained with, overridden by
// sets, and what config.ParseStored tells of it.
func OpenConfig(c *checkpoint.Checkpoint, sets []string, added ...config.Added) (config.Config, []string, error) {
	text, err := c.File(configFile)
	if err != nil {
		return config.Config{}, nil, err
	}
	return config.ParseStored(filepath.Join(c.Path, configFile), text, sets, added...)
}

// OpenTokenizer returns the tokenizer that a checkpoint was trained with.
func OpenTokenizer(c *checkpoint.Checkpoint) (*tokenizer.Tokenizer, error) {
	text, err := c.File(TokenizerFile)
	if err != nil {
		return nil, err
	}
	t, err := tokenizer.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("train: %s: %w", filepath.Join(c.Path, TokenizerFile), err)
	}
	return t, nil
}
