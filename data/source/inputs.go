package source

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
)

// Input is a file or a folder that a configuration names.
type Input struct {
	Key    string // that names it
	Value  string // of the key, or the item of its list
	Path   string
	Folder bool // it must be a folder; else a regular file
	// Content says that it holds what samples consist of besides what their entries say (data.Entries), such as
	// features. Files that entries name need no word.
	Content bool
}

// Inputs lists what some splits of a configuration are read from, a folder before what is
// below it.
func Inputs(cfg Setup, splits ...string) []Input {
	k, err := kindOf(cfg)
	if err != nil || k.Inputs == nil {
		return nil
	}
	var list []Input
	for _, split := range splits {
		list = append(list, k.Inputs(cfg, split)...)
		if split == "train" && cfg.Mixed {
			list = append(list, sentenceLists.inputs(cfg, split)...)
		}
	}
	return list
}

// Named is Under of a key that may be empty.
func Named(cfg Setup, key, value string, folder bool) []Input {
	if value == "" {
		return nil
	}
	return Under(cfg, key, value, folder)
}

// CheckInputs returns section.Errors of the inputs that are not there or of the wrong kind. Of
// relative paths below a data.root that is missing only the root is told.
func CheckInputs(list []Input) error {
	var errs section.Errors
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
		errs = append(errs, &section.Error{Path: in.Key, Value: in.Value, Msg: msg, Hint: hint})
	}
	return errs.OrNil()
}

// rootKey is the key of the folder that relative paths start from.
const rootKey = "data.root"

// root is that folder.
func root(cfg Setup) Input {
	return Input{Key: rootKey, Value: cfg.Data.Root, Path: cfg.Data.Root, Folder: true}
}

// Under is the file or folder that a key names, and data.root before it where it is relative.
func Under(cfg Setup, key, value string, folder bool) []Input {
	in := Input{Key: key, Value: value, Path: Below(cfg.Data.Root, value), Folder: folder}
	if filepath.IsAbs(value) {
		return []Input{in}
	}
	return []Input{root(cfg), in}
}

// content is Under of a file that holds what samples consist of.
func content(cfg Setup, key, value string, folder bool) []Input {
	list := Under(cfg, key, value, folder)
	list[len(list)-1].Content = true
	return list
}

// expanded are the files that names of a key stand for, see data.Expand.
func expanded(cfg Setup, key string, names []string) (list []Input) {
	for _, name := range names {
		paths, err := data.Expand(cfg.Data.Root, []string{name})
		if err != nil {
			paths = []string{Below(cfg.Data.Root, name)} // which is not there
		}
		for _, path := range paths {
			in := Under(cfg, key, name, false)
			in[len(in)-1].Path = path
			list = append(list, in...)
		}
	}
	return list
}

// Vocabulary is the input of data.vocab, nothing where it is empty.
func Vocabulary(cfg Setup) []Input {
	if cfg.Data.Vocab == "" || cfg.Stored {
		return nil
	}
	st, err := os.Stat(Below(cfg.Data.Root, cfg.Data.Vocab))
	return Under(cfg, "data.vocab", cfg.Data.Vocab, err == nil && st.IsDir())
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
