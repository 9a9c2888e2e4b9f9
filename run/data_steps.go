package run

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/train"
	"github.com/geoalign/geoalign/train/schedule"
)

// keepData writes what identifies the data into the run folder: lists at once, what files hold once all were read. It keeps what was
// known of the files of lists that are the same.
func (r *Run) keepData(splits []*openedSplit) error {
	record := DataRecord{Rule: data.EntriesRule, Splits: map[string]*SplitRecord{}}
	sums := map[string]splitSums{}
	if k := r.known; k != nil && k.folder == r.dir { // splits that are not in use now
		maps.Copy(record.Splits, k.record.Splits)
		maps.Copy(sums, k.sums)
	}
	for _, s := range splits {
		now, its := s.record, splitSums{s.record.List, s.listed, s.sums}
		if now.Contents.Files == 0 { // they are not read yet
			its.Files = nil
			if was := r.known.same(s); was != nil && !slices.Contains(r.accepted, s.name) {
				now.Contents, its.Files = was.Contents, r.known.sums[s.name].Files
			}
		}
		if len(its.Files) > mostSums {
			its.Files = nil
		}
		record.Splits[s.name], sums[s.name] = &now, its
	}
	if err := record.write(r.dir); err != nil {
		return err
	}
	if splits[0].listed == nil { // they are not made yet
		return nil
	}
	return writeSums(r.dir, sums)
}

// same is what is known of a split with the same list, nil where nothing is.
func (k *knownData) same(s *openedSplit) *SplitRecord {
	if k == nil {
		return nil
	}
	if was := k.record.Splits[s.name]; was != nil && was.List == s.record.List {
		return was
	}
	return nil
}

// watchData begins to read what pictures and features hold, in the background, and returns the hook that looks what was found, and
// ends the run where that is other than before or than on another rank.
func (r *Run) watchData() train.Hook {
	h := train.Hook{Name: "data", Stage: train.StageEval}
	if r.data == nil || len(r.data.splits) == 0 {
		return h
	}
	var save func([]*openedSplit) error
	if r.first() {
		var p *dataPass
		save = func(splits []*openedSplit) error {
			if found, _, _ := p.state(); len(found) > 0 && r.cfg.Data.Changed != source.DataAccepted {
				return nil // the record stays that of the data before
			}
			return r.keepData(splits)
		}
		known := r.known
		if known != nil {
			known = known.without(r.accepted)
		}
		p = newPass(r.data, known, save)
		r.data.pass = p
	} else {
		r.data.pass = newPass(r.data, nil, nil)
	}
	r.data.pass.begin(r.cfg.Data.Root)
	h.After, h.End = r.checkData, r.data.pass.Close
	return h
}

// without is what is known but for some splits.
func (k *knownData) without(splits []string) *knownData {
	out := &knownData{k.folder, k.record, maps.Clone(k.sums)}
	for _, name := range splits {
		delete(out.sums, name)
	}
	return out
}

// graceShare is the part of the time of a run that its end may wait for its data to be read.
const (
	graceShare = 100
	graceLeast = 2 * time.Second
)

// checkData looks what the pass has found. Of several ranks all do so after the same steps.
func (r *Run) checkData(ctx context.Context, e *train.Event) error {
	p := r.data.pass
	if r.checked || e.Interrupted {
		return nil
	}
	if e.Last {
		p.finish(ctx, max(graceLeast, e.Elapsed/graceShare))
	}
	if r.group.Size() > 1 {
		t := r.cfg.Train
		if !e.Last && !schedule.Due(e.Step, t.SaveEverySteps, e.Total) && !schedule.Due(e.Step, r.evalEvery(), e.Total) {
			return nil
		}
		return r.compareRanks(p, e.Last)
	}
	found, whole, err := p.state()
	r.checked = whole || err != nil || len(found) > 0
	return r.toldOf(found, whole, err, e.Last)
}

// toldOf is what rank 0 does about what its pass has found.
func (r *Run) toldOf(found []Difference, whole bool, err error, last bool) error {
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
func (r *Run) compareRanks(p *dataPass, last bool) error {
	found, whole, failed := p.state()
	var err error
	if r.first() {
		err = r.toldOf(found, whole, failed, last)
	}
	if err := parallel.Agree(r.group, err); err != nil {
		return err
	}
	own := passTold{Whole: whole}
	if whole {
		for _, s := range p.splits {
			own.Sums = append(own.Sums, s.record.Contents.Sum.String()+fmt.Sprint(len(s.files)))
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
func (r *Run) firstOtherFile(p *dataPass) error {
	var err error
	for _, s := range p.splits {
		var b []byte
		if r.first() {
			for _, f := range s.sums {
				b = f.append(b)
			}
		}
		theirs, terr := parallel.Told(r.group, b)
		if terr != nil {
			return terr
		}
		if err == nil {
			err = otherFile(s, theirs)
		}
	}
	return parallel.Agree(r.group, err)
}

// otherFile is the first file of a split that is another one on rank 0, which has these sums.
func otherFile(s *openedSplit, theirs []byte) error {
	const hint = "give all machines the same data"
	if len(theirs) != 24*len(s.sums) {
		return fmt.Errorf("%s: the samples lie in %s here and in %s on rank 0: %s", s.name, words.Count(len(s.sums), "file"), words.Thousands(len(theirs)/24), hint)
	}
	for i, f := range s.sums {
		if b := f.append(nil); string(b) != string(theirs[24*i:24*(i+1)]) {
			return fmt.Errorf("%s: %s holds something else than on rank 0 (and others may too): %s", s.name, s.short(s.files[i]), hint)
		}
	}
	return nil
}
