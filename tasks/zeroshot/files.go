package zeroshot

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/data/table"
)

// Inputs lists the files and folders of images and prompts.
func (z *Eval) Inputs(in source.Setup) (list []source.Input) {
	if !in.Stored {
		return slices.Concat(source.Named(in, "eval.zeroshot.images", z.Images, true),
			source.Named(in, "eval.zeroshot.classes", z.Classes, false),
			source.Named(in, "eval.zeroshot.templates_file", z.TemplatesFile, false))
	}
	if z.Image == "" {
		return nil
	}
	for _, f := range []struct{ name, path string }{{"image", z.Image}, {"image_labels", z.ImageLabels},
		{"text", z.Text}, {"text_labels", z.TextLabels}} {
		list = append(list, source.Under(in, "eval.zeroshot."+f.name, f.path, false)...)
	}
	return list
}

// OpenFiles opens the stored features that are named and reads the classes. It is nil where none are.
func (c *Eval) OpenFiles(in source.Setup) (z *Inputs, err error) {
	if c.Image == "" {
		return nil, nil
	}
	if err := source.CheckInputs(c.Inputs(in)); err != nil {
		return nil, err
	}
	z = &Inputs{}
	defer func() {
		if err != nil {
			z.Close()
			z = nil
		}
	}()
	numbers := map[string]int32{}
	prompts, names, err := z.open(in, "text", c.Text, c.TextTensor, c.TextLabels, batch.TextFeatures)
	if err != nil {
		return z, err
	}
	for _, name := range names {
		if _, known := numbers[name]; !known {
			numbers[name] = int32(len(z.Classes))
			z.Classes = append(z.Classes, name)
		}
		z.PromptClass = append(z.PromptClass, numbers[name])
	}
	images, names, err := z.open(in, "image", c.Image, c.ImageTensor, c.ImageLabels, batch.ImageFeatures)
	if err != nil {
		return z, err
	}
	for i, name := range names {
		number, known := numbers[name]
		if !known {
			return z, section.Errors{{Path: "eval.zeroshot.image_labels", Value: c.ImageLabels,
				Msg:  fmt.Sprintf("has the class %q on line %d, and no prompt is of that class", name, i+1),
				Hint: "spell classes alike in eval.zeroshot.text_labels, or add a prompt for it"}}
		}
		z.ImageClass = append(z.ImageClass, number)
	}
	z.Images, z.Prompts = images, prompts
	return z, nil
}

// open opens the features of a side and the names of their classes.
func (z *Inputs) open(in source.Setup, side, path, tensor, labels, column string) (data.Gallery, []string, error) {
	m, err := features.OpenMatrix(source.Below(in.Data.Root, path), tensor)
	if err != nil {
		return nil, nil, fmt.Errorf("eval.zeroshot.%s: %w", side, err)
	}
	z.Closers = append(z.Closers, m.Close)
	names, err := readClasses(source.Below(in.Data.Root, labels))
	if err != nil {
		return nil, nil, fmt.Errorf("eval.zeroshot.%s_labels: %w", side, err)
	}
	if len(names) != m.Rows() {
		return nil, nil, section.Errors{{Path: "eval.zeroshot." + side + "_labels", Value: labels,
			Msg:  fmt.Sprintf("has %d lines, and %s has %d rows", len(names), m.Path(), m.Rows()),
			Hint: "write the class of each row on a line of its own, in the order of the rows"}}
	}
	return features.Gallery(m, column), names, nil
}

// readClasses returns the name of a class, or what else a file lists, on each line, without the spaces around it. Empty
// lines at the end are left out, and another one is an error.
func readClasses(path string) (names []string, err error) {
	var empty *table.Line
	for l, err := range table.Lines(path, maxName) {
		if err != nil {
			return nil, err
		}
		name := strings.TrimSpace(l.Valid())
		switch {
		case name == "" && empty == nil:
			empty = &l
		case name != "" && empty != nil:
			return nil, empty.Wrong(errors.New("it is empty: write a name on it, or remove it"))
		case name != "":
			names = append(names, name)
		}
	}
	return names, nil
}

// maxName is the longest line of a list of names in bytes.
const maxName = 1 << 16
