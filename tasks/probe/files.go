package probe

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/tasks"
)

// Inputs lists the files of the pairs.
func (c *EvalTexts) Inputs(in source.Setup) []source.Input {
	return append(source.Named(in, "eval.textprobe.train", c.Train, false),
		source.Named(in, "eval.textprobe.test", c.Test, false)...)
}

// Open reads them.
func (c *EvalTexts) Open(in source.Setup) (*Pairs, error) {
	const key = "eval.textprobe."
	if c.Train == "" {
		return nil, section.Errors{{Path: key + "train", Value: "", Msg: "must name a file of labelled pairs of texts",
			Hint: "and eval.textprobe.test another one: docs/zeroshot.md says what they hold"}}
	}
	if err := source.CheckInputs(c.Inputs(in)); err != nil {
		return nil, err
	}
	var p Pairs
	var err error
	if p.Train, err = loadTextPairs(source.Below(in.Data.Root, c.Train)); err != nil {
		return nil, fmt.Errorf("%strain: %w", key, err)
	}
	if p.Test, err = loadTextPairs(source.Below(in.Data.Root, c.Test)); err != nil {
		return nil, fmt.Errorf("%stest: %w", key, err)
	}
	numbers := map[string]int32{}
	for i, x := range p.Train {
		if _, err := strconv.ParseFloat(x.Label, 64); err == nil && strings.Contains(x.Label, ".") {
			return nil, section.Errors{{Path: key + "train", Value: c.Train,
				Msg: fmt.Sprintf("has the label %s in entry %d, which is a number on a scale and no class", x.Label,
					i),
				Hint: "a probe tells classes: make classes of the numbers"}}
		}
		numbers[x.Label] = 0
	}
	p.Classes = slices.Sorted(maps.Keys(numbers))
	if len(p.Classes) < 2 {
		return nil, section.Errors{{Path: key + "train", Value: c.Train,
			Msg:  fmt.Sprintf("has one label, %s, in all its pairs", p.Classes[0]),
			Hint: "a probe tells two classes or more"}}
	}
	for k, name := range p.Classes {
		numbers[name] = int32(k)
	}
	for _, x := range p.Train {
		p.TrainLabel = append(p.TrainLabel, numbers[x.Label])
	}
	for i, x := range p.Test {
		k, known := numbers[x.Label]
		if !known {
			return nil, section.Errors{{Path: key + "test", Value: c.Test,
				Msg:  fmt.Sprintf("has the label %q in entry %d, which no training pair has", x.Label, i),
				Hint: "the labels are " + tasks.Cut(p.Classes)}}
		}
		p.TestLabel = append(p.TestLabel, k)
	}
	return &p, nil
}
