// Package configs holds the shipped configurations, so that the program has them wherever it is installed.
package configs

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

//go:embed *.toml ideas/*.toml bench/*.toml paper/*.toml
var files embed.FS

// A Shipped configuration has the name by which --config takes it, such as "quickstart" or "ideas/geodesic", and the
// first sentence of its header.
type Shipped struct {
	Name    string `json:"name"`
	Summary string `json:"summary"`
}

// List returns all of them in alphabetical order, those of subfolders last.
func List() []Shipped {
	var list, below []Shipped
	err := fs.WalkDir(files, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := files.ReadFile(file)
		s := Shipped{strings.TrimSuffix(file, ".toml"), summary(string(text))}
		if strings.Contains(file, "/") {
			below = append(below, s)
		} else {
			list = append(list, s)
		}
		return err
	})
	if err != nil {
		panic(err) // of files that are in the program
	}
	return append(list, below...)
}

// Read returns the text of the configuration that is called name and its file below this folder, with slashes. A name
// may have the ending .toml, and "configs/" before it.
func Read(name string) (file string, text []byte, err error) {
	file = strings.TrimSuffix(strings.TrimPrefix(path.Clean(name), "configs/"), ".toml") + ".toml"
	text, err = files.ReadFile(file)
	return file, text, err
}

var base = regexp.MustCompile(`(?m)^base = "(.*)"`)

// Copy is the text of the configuration that is called name for a file elsewhere: its base has its name as a shipped
// one.
func Copy(name string) ([]byte, error) {
	file, text, err := Read(name)
	return base.ReplaceAllFunc(text, func(line []byte) []byte {
		of := path.Join(path.Dir(file), string(base.FindSubmatch(line)[1]))
		return fmt.Appendf(nil, "base = %q", strings.TrimSuffix(of, ".toml"))
	}), err
}

// summary is the first sentence of the comment that a file begins with, as far as a colon if several words stand
// before it.
func summary(text string) string {
	var words []string
	for line := range strings.Lines(text) {
		line, comment := strings.CutPrefix(strings.TrimSpace(line), "#")
		if !comment || strings.TrimSpace(line) == "" {
			break
		}
		words = append(words, strings.Fields(line)...)
		for i, w := range words {
			if strings.HasSuffix(w, ".") && w != "al." || strings.HasSuffix(w, ":") && i >= 4 {
				return strings.TrimRight(strings.Join(words[:i+1], " "), ".:")
			}
		}
	}
	return strings.Join(words, " ")
}
