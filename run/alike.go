package run

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/internal/identity"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// fact is something that all ranks must have alike. Found on rank 0, it is one error before the first step.
type fact struct {
	What  string // such as "the program"
	Value string // equal where it is alike
	Shown string // for people; empty: Value
	Hint  string // what to do where it is not
}

func (f fact) shown() string {
	if f.Shown != "" {
		return f.Shown
	}
	return f.Value
}

// alike compares the facts of all ranks, which have the same ones in the same order, and returns on all of them an error about the
// first in which a rank differs from rank 0.
func alike(g parallel.Group, own ...fact) error {
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
	var first []fact
	for r, text := range all {
		var facts []fact
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
				return fmt.Errorf("rank %d has another %s than rank 0 (%s there, %s here): %s", r, f.What, was.shown(), f.shown(), f.Hint)
			}
		}
	}
	return nil
}

// sameProgram makes sure that all ranks are the same program with the same configuration.
func sameProgram(g parallel.Group, cfg config.Config, resume string) error {
	if g.Size() == 1 {
		return nil
	}
	text, err := cfg.Encode()
	if err := parallel.Agree(g, err); err != nil {
		return err
	}
	version, sum := program()
	if err := alike(g,
		fact{"program", version + " " + sum, "", "install the same one on every machine"},
		fact{"--resume", resume, fmt.Sprintf("%q", resume), "start all ranks with the same flags"},
		fact{"seed", fmt.Sprint(cfg.Run.Seed), "", "start all ranks with the same run.seed"},
	); err != nil {
		return err
	}
	all, err := g.GatherBytes(text)
	if err != nil {
		return err
	}
	for r, other := range all {
		if line, there := firstDifference(string(all[0]), string(other)); line != there {
			return parallel.Agree(g, fmt.Errorf("rank %d has another configuration than rank 0 (%s there, %s here): start all ranks with the same file and flags", r, line, there))
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

// sameCheckpoint makes sure that all ranks go on from the same checkpoint, and not from one of the same name.
func sameCheckpoint(g parallel.Group, ck *checkpoint.Checkpoint) error {
	if g.Size() == 1 {
		return nil
	}
	return alike(g, fact{"checkpoint " + ck.Path, fmt.Sprint(ck.Step, ck.Sum()), "checksum " + ck.Sum(), "copy that of rank 0 to the same path on every machine"})
}

// dataFacts is what identifies the data and the vocabulary of a rank.
type dataFacts []fact

func (d dataFacts) same(g parallel.Group) error { return alike(g, d...) }

// dataOf identifies the data that a run has opened: the sizes of the files that the configuration names, what their lists say, in its
// order, and the features of small files. What other files hold is compared later, see checkData; what decodes pixels is here.
func (r *Run) dataOf(stream data.Stream) (dataFacts, error) {
	if r.group.Size() == 1 {
		return nil, nil
	}
	const hint = "give all machines the same data"
	var out dataFacts
	if r.data != nil {
		for _, s := range r.data.splits {
			for i, f := range s.record.Files {
				out = append(out, fact{s.inputs[i].Key, fmt.Sprint(f.Path, f.Bytes), fmt.Sprintf("%s of %d bytes", f.Path, f.Bytes), hint})
			}
		}
	}
	if r.cfg.ReadsImageFiles() {
		out = append(out, decoderFact(images.JPEGDecoder()))
	}
	if r.tok != nil {
		text, err := r.tok.JSON()
		if err != nil {
			return nil, err
		}
		out = append(out, fact{"vocabulary", fmt.Sprint(r.tok.Size(), crc32.Checksum(text, castagnoli)), fmt.Sprintf("%d tokens, checksum %08x", r.tok.Size(), crc32.Checksum(text, castagnoli)), "name one with data.vocab that is the same on every machine, or give all the same data to learn it from"})
	}
	if s := r.set; s != nil && s.Galleries != nil {
		out = append(out, fact{"split " + r.cfg.Eval.Split, fmt.Sprint(s.Len()), fmt.Sprintf("%d rows", s.Len()), hint})
	}
	if stream != nil {
		out = append(out, fact{"number of training samples", fmt.Sprint(stream.EpochSamples()), "", hint})
	}
	if r.data == nil {
		return out, nil
	}
	for _, s := range r.data.splits {
		out = append(out, fact{"number of samples of " + s.name, fmt.Sprint(s.record.Samples), "", hint},
			fact{"list of samples of " + s.name, s.record.List.String(), "sum " + s.record.List.String(), hint})
		for _, f := range s.early {
			out = append(out, fact{"content of " + s.short(f.path), f.sum.String(), "sum " + f.sum.String(), hint})
		}
	}
	return out, nil
}

// decoderFact is what decodes JPEG files on a rank: pixels depend on it, and so which rank has a sample would.
func decoderFact(d images.Decoder) fact {
	return fact{"decoder of JPEG files", d.String(), "", `install the same libjpeg-turbo on every machine, or choose data.decoder = "builtin", which needs none`}
}

// sameParameters makes sure that all ranks start from the same parameters, whatever they are read or drawn from.
func (r *Run) sameParameters(context.Context) error {
	if r.group.Size() == 1 || r.pairs == nil {
		return nil
	}
	h := crc32.New(castagnoli)
	buf := make([]byte, 0, 4096)
	for part := range slices.Chunk(r.pairs.Params().Values(), cap(buf)/4) {
		buf = buf[:0]
		for _, v := range part {
			bits := math.Float32bits(v)
			buf = append(buf, byte(bits), byte(bits>>8), byte(bits>>16), byte(bits>>24))
		}
		h.Write(buf)
	}
	sum := fmt.Sprintf("%08x", h.Sum32())
	return alike(r.group, fact{"start of parameters", sum, "checksum " + sum, "give all machines the same files of init.checkpoint, init.image and init.text, and the same processors"})
}
