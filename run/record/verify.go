package record

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/identity"
	"github.com/geoalign/geoalign/tasks/sentences"
	"github.com/geoalign/geoalign/train/runlog"
)

// SentencesSplit is the name of the sentences of eval.sentences among the splits of a DataRecord.
const SentencesSplit = "eval.sentences"

// Verify compares the data that the configuration of a run folder names with what the folder has recorded of them,
// and reads all of their files. sets override the configuration, such as data.root=FOLDER where the data have moved.
// A folder without a record is fs.ErrNotExist. progress is told how much of a phase is done, and may be nil.
func Verify(ctx context.Context, dir string, sets []string, progress func(phase string, done, of int)) ([]Difference,
	error) {
	record, err := Read(dir)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, runlog.ConfigFile)
	text, err := files.Read(path, files.MaxConfig)
	if err != nil {
		return nil, err
	}
	cfg, _, err := config.ParseStored(path, text, sets)
	if err != nil {
		return nil, err
	}
	known := &Known{dir, record, readSums(dir)}
	var all []Difference
	for _, name := range slices.Sorted(maps.Keys(record.Splits)) {
		list, err := known.verify(ctx, cfg, name, progress)
		if err != nil {
			return nil, fmt.Errorf("data of %s: %w", name, err)
		}
		all = append(all, list...)
	}
	return all, nil
}

// verify compares a split.
func (k *Known) verify(ctx context.Context, cfg config.Config, name string,
	progress func(phase string, done, of int)) (list []Difference, err error) {
	var e data.Entries
	inputs, end := source.Inputs(cfg.Source(), name), func() error { return nil }
	if name == SentencesSplit {
		var list sentences.Tasks
		if list, err = cfg.Eval.Sentences.Open(cfg.Source()); err == nil {
			e, inputs = list.Entries(), cfg.Eval.Sentences.Inputs(cfg.Source())
		}
	} else {
		e, end, err = source.Entries(ctx, cfg.Source(), name, source.Options{Progress: progress})
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		if bad := end(); err == nil {
			err = bad
		}
	}()
	s, err := OpenSplit(ctx, cfg, name, e, inputs)
	if err != nil {
		return nil, err
	}
	if list, err = k.compare(ctx, s); err != nil || list != nil {
		return list, err
	}
	p := NewPass(&Opened{Splits: []*OpenedSplit{s}}, k, nil)
	p.book = identity.OpenBook("") // all bytes are read
	p.rest.hurry()
	if progress != nil {
		p.told = func(done, of int) { progress("reading the files of "+name, done, of) }
	}
	if err := p.run(ctx); err != nil {
		return nil, err
	}
	list, _, _ = p.State()
	return list, nil
}
