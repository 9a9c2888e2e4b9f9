package run

import (
	"context"
	"fmt"
	"hash/crc32"
	"math"
	"slices"

	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/run/setup"
)

// dataFacts is what identifies the data and the vocabulary of a rank.
type dataFacts []setup.Fact

func (d dataFacts) same(g parallel.Group) error { return setup.Alike(g, d...) }

// dataOf identifies the data that a run has opened: the sizes of the files that the configuration names, what their
// lists say, in its order, and the features of small files. What other files hold is compared later, see checkData.
func (r *Run) dataOf(stream data.Stream) (dataFacts, error) {
	if r.group.Size() == 1 {
		return nil, nil
	}
	const hint = "give all machines the same data"
	var out dataFacts
	if r.data != nil {
		for _, s := range r.data.Splits {
			for i, f := range s.Record.Files {
				out = append(out, setup.NewFact(s.Inputs[i].Key, fmt.Sprint(f.Path, f.Bytes),
					fmt.Sprintf("%s of %d bytes", f.Path, f.Bytes), hint))
			}
		}
	}
	if r.tok != nil {
		text, err := r.tok.JSON()
		if err != nil {
			return nil, err
		}
		out = append(out, setup.NewFact("vocabulary",
			fmt.Sprint(r.tok.Size(), crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli))),
			fmt.Sprintf("%d tokens, checksum %08x", r.tok.Size(),
				crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli))),
			"name one with data.vocab that is the same on every machine, or give all the same data to learn it from"))
	}
	if s := r.set; s != nil && s.Galleries != nil {
		out = append(out, setup.NewFact("split "+r.cfg.Eval.Split, fmt.Sprint(s.Len()), fmt.Sprintf("%d rows", s.Len()),
			hint))
	}
	if stream != nil {
		out = append(out, setup.NewFact("number of training samples", fmt.Sprint(stream.EpochSamples()), "", hint))
	}
	if r.data == nil {
		return out, nil
	}
	for _, s := range r.data.Splits {
		out = append(out, setup.NewFact("number of samples of "+s.Name, fmt.Sprint(s.Record.Samples), "", hint),
			setup.NewFact("list of samples of "+s.Name, s.Record.List.String(), "sum "+s.Record.List.String(), hint))
		for _, f := range s.Early {
			out = append(out, setup.NewFact("content of "+s.Short(f.Path), f.Sum.String(), "sum "+f.Sum.String(), hint))
		}
	}
	return out, nil
}

// sameParameters makes sure that all ranks start from the same parameters, whatever they are read or drawn from.
func (r *Run) sameParameters(context.Context) error {
	if r.group.Size() == 1 || r.pairs == nil {
		return nil
	}
	h := crc32.New(crc32.MakeTable(crc32.Castagnoli))
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
	return setup.Alike(r.group, setup.NewFact("start of parameters", sum, "checksum "+sum,
		"give all machines the same files of init.checkpoint, init.image and init.text, and the same processors"))
}
