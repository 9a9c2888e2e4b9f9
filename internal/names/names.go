// Package names compares names of files that come from different lists: of captions, of splits, of features, of
// archives.
package names

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/geoalign/geoalign/internal/normalform"
)

// Clean is the shortest name of the same file, with slashes: ./a.png and a//../a.png are a.png. "" stays "".
func Clean(name string) string {
	if name == "" {
		return ""
	}
	return filepath.ToSlash(filepath.Clean(name))
}

// Below is the clean path of a name that starts from root unless it is absolute.
func Below(root, name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(root, name)
}

// Under is the path of a name that starts from root unless it is absolute, which then stays as it is.
func Under(root, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(root, name)
}

// How a name was found.
type How int

// Ways of being found.
const (
	Missing How = iota // there is no such name
	Exact              // by the same clean name
	// by a name that differs only in Unicode normalisation: an accent is a letter of its own (NFD) or a part of one
	// (NFC)
	Folded
	Ambiguous // several names differ from it only in Unicode normalisation
)

// Index finds values by names.
type Index[T any] struct {
	exact  map[string]T
	folded map[string][]string // clean names by their NFC, without those that are their own
}

// NewIndex returns an empty index.
func NewIndex[T any]() *Index[T] {
	return &Index[T]{exact: map[string]T{}, folded: map[string][]string{}}
}

// Set gives a name a value, instead of an earlier one.
func (x *Index[T]) Set(name string, v T) {
	name = Clean(name)
	if _, again := x.exact[name]; !again {
		if nfc := fold(name); nfc != name {
			x.folded[nfc] = append(x.folded[nfc], name)
		}
	}
	x.exact[name] = v
}

// Find returns the value of a name: of the same one, else of the only one that differs in Unicode normalisation alone.
func (x *Index[T]) Find(name string) (v T, how How) {
	name = Clean(name)
	if v, ok := x.exact[name]; ok {
		return v, Exact
	}
	nfc := fold(name)
	others := x.folded[nfc]
	if own, ok := x.exact[nfc]; ok {
		if len(others) == 0 {
			return own, Folded
		}
		return v, Ambiguous
	}
	switch len(others) {
	case 0:
		return v, Missing
	case 1:
		return x.exact[others[0]], Folded
	}
	return v, Ambiguous
}

func fold(name string) string { return normalform.String(norm.NFC, name) }

// Form names the Unicode normal form of a name, for messages: NFC, NFD, or "neither NFC nor NFD"; "" where both are the
// same.
func Form(name string) string {
	switch c, d := norm.NFC.IsNormalString(name), norm.NFD.IsNormalString(name); {
	case c && d:
		return ""
	case c:
		return "NFC"
	case d:
		return "NFD"
	}
	return "neither NFC nor NFD"
}

// Sibling returns a file whose path differs from path only in the Unicode normalisation of its last name, "" for none.
func Sibling(path string) string {
	dir, name := filepath.Split(path)
	want := fold(name)
	if Form(name) == "" {
		return ""
	}
	list, err := os.ReadDir(filepath.Clean(dir))
	if err != nil {
		return ""
	}
	for _, e := range list {
		if e.Name() != name && fold(e.Name()) == want {
			return filepath.Join(dir, e.Name())
		}
	}
	return ""
}

// mostLooked is the number of names by which List looks whether a list was written on Windows.
const mostLooked = 100

// List reads the names of one list, which may have been written on Windows.
type List struct {
	Root   string // that names start from
	Turned int    // names whose backslashes were turned

	windows, decided bool
	looked           int
}

// Name is a name of the list, clean. Backslashes are slashes where the list was written on Windows: no file has the
// name as it stands, and there is one with slashes.
func (l *List) Name(name string) string {
	if !strings.Contains(name, `\`) {
		return Clean(name)
	}
	turned := strings.ReplaceAll(name, `\`, "/")
	if !l.decided && l.looked < mostLooked {
		l.looked++
		_, asIs := os.Stat(Below(l.Root, name))
		_, other := os.Stat(Below(l.Root, turned))
		l.windows = asIs != nil && other == nil
		l.decided = l.windows || asIs == nil
	}
	if !l.windows {
		return Clean(name)
	}
	l.Turned++
	return Clean(turned)
}

// OtherForm adds to the error of a file that is not there that one has the same name in another Unicode normal form,
// which looks the same.
func OtherForm(err error, path string) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if other := Sibling(path); other != "" {
		return fmt.Errorf("%w: there is a file whose name differs only in Unicode normalisation (the list has %s, the file %s): rename the file, or write its name into the list",
			err, Form(filepath.Base(path)), Form(filepath.Base(other)))
	}
	return err
}
