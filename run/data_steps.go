package run

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/run/record"
	"github.com/geoalign/geoalign/train"
	"github.com/geoalign/geoalign/train/schedule"
)

// watchData begins to read what pictures and features hold, in the background, and returns the hook that looks what
// was found, and ends the run where that is other than before or than on another rank.
func (r *Run) watchData() train.Hook {
	h := train.Hook{Name: "data", Stage: train.StageEval}
	if r.data == nil || len(r.data.Splits) == 0 {
		return h
	}
	var save func([]*record.OpenedSplit) error
	if r.first() {
		var p *record.Pass
		save = func(splits []*record.OpenedSplit) error {
			if found, _, _ := p.State(); len(found) > 0 && r.cfg.Data.Changed != source.DataAccepted {
				return nil // the record stays that of the data before
			}
			return record.Keep(r.dir, r.known, r.accepted, splits)
		}
		known := r.known
		if known != nil {
			known = known.Without(r.accepted)
		}
		p = record.NewPass(r.data, known, save)
		r.data.Pass = p
	} else {
		r.data.Pass = record.NewPass(r.data, nil, nil)
	}
	r.data.Pass.Begin(r.cfg.Data.Root)
	h.After, h.End = r.checkData, r.data.Pass.Close
	return h
}

// graceShare is the part of the time of a run that its end may wait for its data to be read.
const (
	graceShare = 100
	graceLeast = 2 * time.Second
)

// checkData looks what the pass has found. Of several ranks all do so after the same steps.
func (r *Run) checkData(ctx context.Context, e *train.Event) error {
	p := r.data.Pass
	if r.checked || e.Interrupted {
		return nil
	}
	if e.Last {
		p.Finish(ctx, max(graceLeast, e.Elapsed/graceShare))
	}
	if r.group.Size() > 1 {
		t := r.cfg.Train
		if !e.Last && !schedule.Due(e.Step, t.SaveEverySteps, e.Total) &&
			!schedule.Due(e.Step, r.evalEvery(), e.Total) {
			return nil
		}
		return r.compareRanks(p, e.Last)
	}
	found, whole, err := p.State()
	r.checked = whole || err != nil || len(found) > 0
	return r.toldOf(found, whole, err, e.Last)
}

// toldOf is what rank 0 does about what its pass has found.
func (r *Run) toldOf(found []record.Difference, whole bool, err error, last bool) error {
	switch {
	case err != nil:
		r.warn("what the pictures and features of the data hold is not known: %v", err)
	case last && !whole && r.known != nil:
		r.warn("the run ended before the contents of all files of the data were read: they could not be compared with what they were")
	}
	if len(found) > 0 {
		return r.changed(found)
	}
	return nil
}

// passTold is what a rank tells the others of its pass.
type passTold struct {
	Whole bool
	Sums  []string // of the contents of each split
}

// compareRanks compares what the pictures and features of all ranks hold, once all have read them.
func (r *Run) compareRanks(p *record.Pass, last bool) error {
	found, whole, failed := p.State()
	var err error
	if r.first() {
		err = r.toldOf(found, whole, failed, last)
	}
	if err := parallel.Agree(r.group, err); err != nil {
		return err
	}
	own := passTold{Whole: whole}
	if whole {
		for _, s := range p.Splits {
			own.Sums = append(own.Sums, s.Record.Contents.Sum.String()+fmt.Sprint(len(s.Files)))
		}
	}
	text, err := json.Marshal(own)
	if err := parallel.Agree(r.group, err); err != nil {
		return err
	}
	all, err := r.group.GatherBytes(text)
	if err != nil {
		return err
	}
	same, each := true, make([]passTold, len(all))
	for k, text := range all {
		if err := json.Unmarshal(text, &each[k]); err != nil {
			return err // the same on all ranks
		}
		r.checked = k == 0 && each[k].Whole || k > 0 && r.checked && each[k].Whole
		same = same && slices.Equal(each[k].Sums, each[0].Sums)
	}
	switch {
	case !r.checked && last:
		r.report.Say("note: the run ended before all ranks had read the files of their data: what these hold was not compared between ranks")
		return nil
	case !r.checked || same:
		return nil
	}
	return r.firstOtherFile(p)
}

// firstOtherFile is the error of all ranks whose files hold other things than those of rank 0.
func (r *Run) firstOtherFile(p *record.Pass) error {
	var err error
	for _, s := range p.Splits {
		var b []byte
		if r.first() {
			b = s.Packed()
		}
		theirs, terr := parallel.Told(r.group, b)
		if terr != nil {
			return terr
		}
		if err == nil {
			err = record.OtherFile(s, theirs)
		}
	}
	return parallel.Agree(r.group, err)
}
