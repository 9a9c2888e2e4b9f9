package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// A file may begin with base = "other.toml": it then says only what is different from the
// other file, which may have a base too, or one of the shipped configurations. Tables merge, values and lists replace.

// base applies the file that the key base of the current file names, and reports whether
// that could be read.
func (l *loader) base(value any, line int) bool {
	where := l.at(line)
	fail := func(msg, hint string) bool {
		l.fail(&Error{Path: "base", Value: value, Msg: msg, Hint: hint, Where: where})
		return false
	}
	own := l.name
	name, ok := value.(string)
	if !ok || name == "" {
		return fail("must be the name of a TOML file", `write base = "other.toml"`)
	}
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(own), name)
	}
	if l.chain == nil {
		l.chain = []string{own}
	}
	chain := strings.Join(append(slices.Clone(l.chain), path), " -> ")
	if slices.ContainsFunc(l.chain, func(f string) bool { return filepath.Clean(f) == path || sameFile(f, path) }) {
		return fail("leads back to a file that it is the base of: "+chain, "take one of these out")
	}
	path, text, err := readText(path)
	if err != nil && noFile(path) {
		if own, other, missing := readShipped(name); missing == nil {
			path, text, err = own, other, nil
		}
	}
	if err != nil {
		hint := "the path starts from the folder of the file that names it"
		if len(l.chain) > 1 {
			hint += ": " + chain
		}
		if errors.Is(err, fs.ErrNotExist) {
			return fail("there is no file "+path, hint)
		}
		return fail(err.Error(), hint)
	}
	l.chain = append(l.chain, path)
	problems := len(l.errs)
	l.file(path, text)
	if l.newer || slices.ContainsFunc(l.errs[problems:],
		func(e *Error) bool { return e.Path == "base" || e.Path == "" }) {
		return false // nothing of the base was read: what this file says of it would only confuse
	}
	return true
}

// sameFile says whether two paths lead to one file.
func sameFile(a, b string) bool {
	x, err1 := os.Stat(a)
	y, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

// isMatrix says whether a file with a base is a matrix of runs, which trainer ablate
// reads: it has keys of one and [run] is not a table.
func isMatrix(root map[string]toml.Primitive, md *toml.MetaData) bool {
	if prim, ok := root["run"]; ok {
		_, table := read(md, prim).(map[string]any)
		return !table
	}
	for _, key := range []string{"seeds", "metrics", "sweep", "set", "title", "baseline", "better"} {
		if _, ok := root[key]; ok {
			return true
		}
	}
	return false
}
