package source

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
)

// Input is a file or a folder that a configuration names.
type Input struct {
	Key    string // that names it
	Value  string // of the key, or the item of its list
	Path   string
	Folder bool // it must be a folder; else a regular file
	// Content says that it holds what samples consist of besides what their entries say (data.Entries), such as features. Files that
	// entries name need no word.
	Content bool
}

// Inputs lists what some splits of a configuration are read from, a folder before what is
// below it.
func Inputs(cfg config.Config, splits ...string) []Input {
	k, err := kindOf(cfg)
	if err != nil || k.Inputs == nil {
		return nil
	}
	var list []Input
	for _, split := range splits {
		list = append(list, k.Inputs(cfg, split)...)
		if split == "train" && cfg.MixesSentences() {
			list = append(list, sentenceLists.inputs(cfg, split)...)
		}
	}
	return list
}

// ZeroShotInputs lists the files and folders of eval.zeroshot.
func ZeroShotInputs(cfg config.Config) (list []Input) {
	switch z := cfg.Eval.ZeroShot; {
	case cfg.Model.Stored():
		return zeroShotInputs(cfg)
	case cfg.Model.ImagesOnly(), cfg.Model.TextsOnly():
		return nil
	default:
		return slices.Concat(named(cfg, "eval.zeroshot.images", z.Images, true), named(cfg, "eval.zeroshot.classes", z.Classes, false),
			named(cfg, "eval.zeroshot.templates_file", z.TemplatesFile, false))
	}
}

// TextProbeInputs lists the files of eval.textprobe.
func TextProbeInputs(cfg config.Config) []Input {
	if cfg.Model.Stored() || cfg.Model.ImagesOnly() {
		return nil
	}
	p := cfg.Eval.TextProbe
	return append(named(cfg, "eval.textprobe.train", p.Train, false), named(cfg, "eval.textprobe.test", p.Test, false)...)
}

// SentencesInputs lists the files and folders of eval.sentences.
func SentencesInputs(cfg config.Config) (list []Input) {
	const key = "eval.sentences."
	if cfg.Model.Stored() || cfg.Model.ImagesOnly() {
		return nil
	}
	found := false // below eval.sentences.folder
	for _, t := range cfg.Eval.Sentences.Items() {
		found = found || t.Test == ""
		for _, name := range []string{t.Test, t.Train} {
			st, err := os.Stat(Below(cfg.Data.Root, name))
			list = append(list, named(cfg, key+"tasks", name, err == nil && st.IsDir())...)
		}
	}
	if found {
		list = append(list, below(cfg, key+"folder", cfg.Eval.Sentences.Folder, true)...)
	}
	return list
}

// named is below of a key that may be empty.
func named(cfg config.Config, key, value string, folder bool) []Input {
	if value == "" {
		return nil
	}
	return below(cfg, key, value, folder)
}

// CheckInputs returns config.Errors of the inputs that are not there or of the wrong kind. Of
// relative paths below a data.root that is missing only the root is told.
func CheckInputs(list []Input) error {
	var errs config.Errors
	noRoot := false
	told := map[Input]bool{}
	for _, in := range list {
		msg, below := in.wrong(), in.Path != in.Value
		if msg == "" || told[in] || noRoot && below {
			continue
		}
		told[in] = true
		hint := ""
		switch {
		case in.Key == rootKey:
			hint, noRoot = "name the folder of the data with --set data.root=FOLDER", true
		case below:
			hint = "relative paths start from data.root: set it with --set data.root=FOLDER"
		}
		errs = append(errs, &config.Error{Path: in.Key, Value: in.Value, Msg: msg, Hint: hint})
	}
	if errs == nil {
		return nil
	}
	return errs
}

// rootKey is the key of the folder that relative paths start from.
const rootKey = "data.root"

// root is that folder.
func root(cfg config.Config) Input {
	return Input{Key: rootKey, Value: cfg.Data.Root, Path: cfg.Data.Root, Folder: true}
}

// below is the file or folder that a key names, and data.root before it where it is relative.
func below(cfg config.Config, key, value string, folder bool) []Input {
	in := Input{Key: key, Value: value, Path: Below(cfg.Data.Root, value), Folder: folder}
	if filepath.IsAbs(value) {
		return []Input{in}
	}
	return []Input{root(cfg), in}
}

// content is below of a file that holds what samples consist of.
func content(cfg config.Config, key, value string, folder bool) []Input {
	list := below(cfg, key, value, folder)
	list[len(list)-1].Content = true
	return list
}

// expanded are the files that names of a key stand for, see data.Expand.
func expanded(cfg config.Config, key string, names []string) (list []Input) {
	for _, name := range names {
		paths, err := data.Expand(cfg.Data.Root, []string{name})
		if err != nil {
			paths = []string{Below(cfg.Data.Root, name)} // which is not there
		}
		for _, path := range paths {
			in := below(cfg, key, name, false)
			in[len(in)-1].Path = path
			list = append(list, in...)
		}
	}
	return list
}

// Vocabulary is the input of data.vocab, nothing where it is empty.
func Vocabulary(cfg config.Config) []Input {
	if cfg.Data.Vocab == "" || cfg.Model.Stored() {
		return nil
	}
	st, err := os.Stat(Below(cfg.Data.Root, cfg.Data.Vocab))
	return below(cfg, "data.vocab", cfg.Data.Vocab, err == nil && st.IsDir())
}

// wrong says what is wrong with an input, "" if nothing is.
func (in Input) wrong() string {
	st, err := os.Stat(in.Path)
	var reason *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist) && in.Folder:
		return "there is no such folder"
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such file: " + in.Path
	case errors.As(err, &reason):
		return reason.Err.Error() + ": " + in.Path
	case in.Folder && !st.IsDir():
		return "must be a folder and is a file"
	case !in.Folder && !st.Mode().IsRegular():
		return "must be a regular file: " + in.Path
	}
	return ""
}
