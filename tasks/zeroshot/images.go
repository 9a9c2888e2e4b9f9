package zeroshot

import (
	"fmt"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/tasks"
)

// OpenImages returns what there is for a system that reads images and words: images, those of the folder or of
// a split, nil for none, and prompts for their classes.
func (z *Eval) OpenImages(in source.Setup, images *data.Eval) (*Inputs, error) {
	var labels []string
	ok := false
	if images != nil { // examples of a task are not a split
		labels, ok = images.Labels()
	}
	if !ok {
		return nil, section.Errors{{Path: "eval.zeroshot.images", Value: "",
			Msg:  fmt.Sprintf("must name a folder of classes, as data.kind %q has no classes", in.Data.Kind),
			Hint: `give a folder with a folder of images for each class, or use data.kind "folder" or "scenes"`}}
	}
	x := &Inputs{Images: images.Images(), ImageClass: make([]int32, images.NumImages())}
	for i := range x.ImageClass {
		x.ImageClass[i] = images.Label(i)
	}
	names, err := z.classNames(in, labels)
	if err != nil {
		return nil, err
	}
	templates, err := z.promptTemplates(in)
	if err != nil {
		return nil, err
	}
	for k, of := range names {
		x.Classes = append(x.Classes, of[0])
		for _, name := range of {
			for _, t := range templates {
				x.PromptTexts, x.PromptClass = append(x.PromptTexts, strings.Replace(t, Place, name, 1)),
					append(x.PromptClass, int32(k))
			}
		}
	}
	return x, nil
}

// Folder opens the images of the folder that is named; nil where none is.
func (z *Eval) Folder(in source.Setup) (*data.Eval, error) {
	const key = "eval.zeroshot.images"
	if z.Images == "" {
		return nil, nil
	}
	if err := source.CheckInputs(source.Under(in, key, z.Images, true)); err != nil {
		return nil, err
	}
	files, err := data.LoadFolder(source.Below(in.Data.Root, z.Images), z.ImagesSplit,
		data.Options{MaxPixels: in.Data.MaxPixels, Clean: in.Data.Clean})
	if err != nil {
		return nil, fmt.Errorf("%s and images_split: %w", key, err)
	}
	set, err := data.NewEval(files, data.EvalConfig{ImageSize: in.ImageSize, Input: in.Input, Clean: in.Data.Clean})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return set, nil
}

// classNames returns the names of each class, at least one: those of eval.zeroshot.classes, or the label
// with _ as a space. Each leaves something as a caption.
func (z *Eval) classNames(in source.Setup, labels []string) ([][]string, error) {
	const key = "eval.zeroshot.classes"
	names := make([][]string, len(labels))
	if z.Classes == "" {
		for k, label := range labels {
			names[k] = []string{strings.ReplaceAll(label, "_", " ")}
		}
		return names, checkNames(in, names, "eval.zeroshot.images", z.Images,
			"rename the folder, or give the class a name in eval.zeroshot.classes")
	}
	lines, err := readLines(in, key, z.Classes)
	if err != nil {
		return nil, err
	}
	wrong := func(hint, format string, args ...any) error {
		return section.Errors{{Path: key, Value: z.Classes, Msg: fmt.Sprintf(format, args...), Hint: hint}}
	}
	tabs := 0
	for _, line := range lines {
		tabs += min(1, strings.Count(line, "\t"))
	}
	switch {
	case tabs == 0 && len(lines) != len(labels):
		return nil, wrong("write the name of each class on a line of its own in this order: "+tasks.Cut(labels),
			"has %d lines, and the images have %d classes", len(lines), len(labels))
	case tabs == 0:
		for k, line := range lines {
			names[k] = []string{line}
		}
	case tabs != len(lines):
		i := slices.IndexFunc(lines, func(line string) bool { return !strings.Contains(line, "\t") })
		return nil, wrong("write the folder and the name of its class on each line, with a tab between",
			"has no tab on line %d, and others have one", i+1)
	default:
		number := make(map[string]int, len(labels))
		for k, label := range labels {
			number[label] = k
		}
		for i, line := range lines {
			folder, name, _ := strings.Cut(line, "\t")
			k, ok := number[strings.TrimSpace(folder)]
			if !ok {
				return nil, wrong("the classes are "+tasks.Cut(labels),
					"names the class %q on line %d, which no image has", strings.TrimSpace(folder), i+1)
			}
			names[k] = append(names[k], strings.TrimSpace(name))
		}
		if k := slices.IndexFunc(names, func(n []string) bool { return n == nil }); k >= 0 {
			return nil, wrong("add a line for it", "has no name for the class %q", labels[k])
		}
	}
	return names, checkNames(in, names, key, z.Classes, "write a name with a letter or a digit")
}

// checkNames refuses a name of which cleaning leaves nothing.
func checkNames(in source.Setup, names [][]string, key, value, hint string) error {
	for k, of := range names {
		for _, name := range of {
			if data.Clean(in.Data.Clean, name, 0) == "" {
				return section.Errors{{Path: key, Value: value,
					Msg:  fmt.Sprintf("gives class %d the name %q, of which nothing is left as a caption", k+1, name),
					Hint: hint}}
			}
		}
	}
	return nil
}

// promptTemplates returns the templates of prompts, at least one.
func (z *Eval) promptTemplates(in source.Setup) ([]string, error) {
	const key = "eval.zeroshot.templates_file"
	if z.TemplatesFile == "" {
		return z.Templates, nil
	}
	lines, err := readLines(in, key, z.TemplatesFile)
	if err != nil {
		return nil, err
	}
	for i, t := range lines {
		if err := CheckTemplate(t); err != nil {
			return nil, section.Errors{{Path: key, Value: z.TemplatesFile, Msg: fmt.Sprintf("line %d %v", i+1, err)}}
		}
	}
	if len(lines) == 0 {
		return nil, section.Errors{{Path: key, Value: z.TemplatesFile, Msg: "is empty",
			Hint: `write a template on each line, such as "a photo of a {}."`}}
	}
	return lines, nil
}

// readLines returns the lines of the file that a key names.
func readLines(in source.Setup, key, path string) ([]string, error) {
	if err := source.CheckInputs(source.Under(in, key, path, false)); err != nil {
		return nil, err
	}
	lines, err := readClasses(source.Below(in.Data.Root, path))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return lines, nil
}
