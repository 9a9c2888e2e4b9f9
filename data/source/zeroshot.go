package source

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/batch"
	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/internal/files"
)

// ZeroShot is what zero-shot classification of stored features is evaluated on. Close it after
// use.
type ZeroShot struct {
	Images, Prompts         data.Gallery
	Classes                 []string // names, in the order of the prompts
	ImageClass, PromptClass []int32  // per image and per prompt
	closers                 []func() error
}

// zeroShotInputs lists the files of eval.zeroshot.
func zeroShotInputs(cfg config.Config) (list []Input) {
	z := cfg.Eval.ZeroShot
	if z.Image == "" {
		return nil
	}
	for _, f := range []struct{ name, path string }{{"image", z.Image}, {"image_labels", z.ImageLabels}, {"text", z.Text}, {"text_labels", z.TextLabels}} {
		list = append(list, below(cfg, "eval.zeroshot."+f.name, f.path, false)...)
	}
	return list
}

// OpenZeroShot opens the files of eval.zeroshot and reads the classes. It is nil where the
// configuration names none.
func OpenZeroShot(cfg config.Config) (z *ZeroShot, err error) {
	c := cfg.Eval.ZeroShot
	if c.Image == "" {
		return nil, nil
	}
	if err := CheckInputs(zeroShotInputs(cfg)); err != nil {
		return nil, err
	}
	z = &ZeroShot{}
	defer func() {
		if err != nil {
			z.Close()
			z = nil
		}
	}()
	numbers := map[string]int32{}
	prompts, names, err := z.open(cfg, "text", c.Text, c.TextTensor, c.TextLabels, batch.TextFeatures)
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
	images, names, err := z.open(cfg, "image", c.Image, c.ImageTensor, c.ImageLabels, batch.ImageFeatures)
	if err != nil {
		return z, err
	}
	for i, name := range names {
		number, known := numbers[name]
		if !known {
			return z, config.Errors{{Path: "eval.zeroshot.image_labels", Value: c.ImageLabels, Msg: fmt.Sprintf("has the class %q on line %d, and no prompt is of that class", name, i+1),
				Hint: "spell classes alike in eval.zeroshot.text_labels, or add a prompt for it"}}
		}
		z.ImageClass = append(z.ImageClass, number)
	}
	z.Images, z.Prompts = images, prompts
	return z, nil
}

// open opens the features of a side and the names of their classes.
func (z *ZeroShot) open(cfg config.Config, side, path, tensor, labels, column string) (data.Gallery, []string, error) {
	m, err := features.OpenMatrix(Below(cfg.Data.Root, path), tensor)
	if err != nil {
		return nil, nil, fmt.Errorf("eval.zeroshot.%s: %w", side, err)
	}
	z.closers = append(z.closers, m.Close)
	names, err := readLines(Below(cfg.Data.Root, labels))
	if err != nil {
		return nil, nil, fmt.Errorf("eval.zeroshot.%s_labels: %w", side, err)
	}
	if len(names) != m.Rows() {
		return nil, nil, config.Errors{{Path: "eval.zeroshot." + side + "_labels", Value: labels, Msg: fmt.Sprintf("has %d lines, and %s has %d rows", len(names), m.Path(), m.Rows()),
			Hint: "write the class of each row on a line of its own, in the order of the rows"}}
	}
	return features.Gallery(m, column), names, nil
}

// readLines returns the lines of a text file without the spaces around them. Empty lines at its
// end are left out, and another one is an error.
func readLines(path string) ([]string, error) {
	f, _, err := files.Open(path, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var lines []string
	s := bufio.NewScanner(f)
	for s.Scan() {
		lines = append(lines, strings.TrimSpace(strings.ToValidUTF8(s.Text(), "\uFFFD")))
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("%s: line %d: %w", path, len(lines)+1, err)
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	for i, l := range lines {
		if l == "" {
			return nil, fmt.Errorf("%s: line %d is empty: write the name of a class", path, i+1)
		}
	}
	return lines, nil
}

// Close closes the files.
func (z *ZeroShot) Close() error {
	var errs []error
	for _, c := range z.closers {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}
