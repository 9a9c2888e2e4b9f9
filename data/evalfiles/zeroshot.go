package evalfiles

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/internal/files"
)

// ZeroShot is what zero-shot classification is evaluated on. Close it after use.
type ZeroShot struct {
	Images      data.Gallery
	Prompts     data.Gallery // of stored features; nil where they are texts
	PromptTexts []string     // of a system that reads words
	Classes     []string     // names
	ImageClass  []int32      // per image; data.UnknownLabel for one of no class
	PromptClass []int32      // per prompt
	closers     []func() error
}

// zeroShotInputs lists the files of eval.zeroshot.
func zeroShotInputs(cfg config.Config) (list []source.Input) {
	z := cfg.Eval.ZeroShot
	if z.Image == "" {
		return nil
	}
	for _, f := range []struct{ name, path string }{{"image", z.Image}, {"image_labels", z.ImageLabels}, {"text", z.Text}, {"text_labels", z.TextLabels}} {
		list = append(list, source.Under(cfg.Source(), "eval.zeroshot."+f.name, f.path, false)...)
	}
	return list
}

// OpenZeroShotFiles opens the stored features that eval.zeroshot names and reads the classes. It is nil
// where the configuration names none.
func OpenZeroShotFiles(cfg config.Config) (z *ZeroShot, err error) {
	c := cfg.Eval.ZeroShot
	if c.Image == "" {
		return nil, nil
	}
	if err := source.CheckInputs(zeroShotInputs(cfg)); err != nil {
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
	m, err := features.OpenMatrix(source.Below(cfg.Data.Root, path), tensor)
	if err != nil {
		return nil, nil, fmt.Errorf("eval.zeroshot.%s: %w", side, err)
	}
	z.closers = append(z.closers, m.Close)
	names, err := readClasses(source.Below(cfg.Data.Root, labels))
	if err != nil {
		return nil, nil, fmt.Errorf("eval.zeroshot.%s_labels: %w", side, err)
	}
	if len(names) != m.Rows() {
		return nil, nil, config.Errors{{Path: "eval.zeroshot." + side + "_labels", Value: labels, Msg: fmt.Sprintf("has %d lines, and %s has %d rows", len(names), m.Path(), m.Rows()),
			Hint: "write the class of each row on a line of its own, in the order of the rows"}}
	}
	return features.Gallery(m, column), names, nil
}

// readClasses returns the lines of a text file, see parseClasses.
func readClasses(path string) ([]string, error) {
	f, _, err := files.Open(path, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := parseClasses(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return names, nil
}

// parseClasses returns the name of a class, or what else the file lists, on each line, without the spaces around it. Empty lines
// at the end are left out, and another one is an error.
func parseClasses(r io.Reader) ([]string, error) {
	var names []string
	s := bufio.NewScanner(r)
	for s.Scan() {
		line := strings.ToValidUTF8(s.Text(), "\uFFFD")
		if names == nil {
			line = strings.TrimPrefix(line, "\uFEFF") // which some editors write
		}
		names = append(names, strings.TrimSpace(line))
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", len(names)+1, err)
	}
	for len(names) > 0 && names[len(names)-1] == "" {
		names = names[:len(names)-1]
	}
	if i := slices.Index(names, ""); i >= 0 {
		return nil, fmt.Errorf("line %d is empty: write a name on it, or remove it", i+1)
	}
	return names, nil
}

// Close closes the files.
func (z *ZeroShot) Close() error {
	var errs []error
	for _, c := range z.closers {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}
