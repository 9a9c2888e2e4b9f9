// Package weightstest gives tests the tiny stored models of package weights.
package weightstest

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/safetensors"
)

// Stored copies a tiny stored model with a vocabulary of 24 tokens, as many as it has rows, to a folder.
func Stored(t testing.TB, name string) string {
	t.Helper()
	dir := t.TempDir()
	err := os.CopyFS(dir, os.DirFS(Folder(t, name)))
	if err == nil {
		err = os.Remove(filepath.Join(dir, "expected.safetensors"))
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	Vocabulary(t, dir)
	return dir
}

// Vocabulary writes a vocabulary of 24 tokens to a folder.
func Vocabulary(t testing.TB, dir string) {
	t.Helper()
	const words = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nred\nblue\ngreen\nsquare\ncircle\nabove\nleft\nof\nthe\nand\n##s\n##e\n" +
		"large\nsmall\nyellow\ntriangle\nbelow\nright\n"
	check.OK(t, os.WriteFile(filepath.Join(dir, "vocab.txt"), []byte(words), 0o666))
}

// Folder is the folder of a stored model, for a test in any package of this module.
func Folder(t testing.TB, name string) string {
	t.Helper()
	dir := "."
	for range 8 {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, "weights", "testdata", name)
		}
		dir = filepath.Join(dir, "..")
	}
	t.Fatal("this is not a test of the module")
	return ""
}

// Flags returns the values of --set of the last line of an error, as a shell would.
func Flags(t testing.TB, err error) (sets []string) {
	t.Helper()
	text := err.Error()
	_, all, ok := strings.Cut(text, "; all of them: ")
	if !ok {
		_, all, _ = strings.Cut(text, "; ")
	}
	for rest := all; ; {
		_, after, ok := strings.Cut(rest, "--set ")
		if !ok {
			return sets
		}
		word := ""
		if quoted, ok := strings.CutPrefix(after, "'"); ok {
			word, rest, _ = strings.Cut(quoted, "'")
		} else {
			word, rest, _ = strings.Cut(after, " ")
		}
		sets = append(sets, word)
	}
}

// Without copies weights without tensors, and with bad numbers in others.
func Without(t testing.TB, folder string, drop func(name string) bool, bad string) {
	t.Helper()
	path := filepath.Join(folder, "model.safetensors")
	f := check.Get(safetensors.Open(path))(t)
	var list []safetensors.Tensor
	for _, x := range f.Tensors() {
		v := check.Get(f.Float32(x.Name))(t)
		if x.Name == bad {
			v[0] = float32(math.NaN())
		}
		if !drop(x.Name) {
			list = append(list, safetensors.Tensor{Name: x.Name, Shape: x.Shape, Data: v})
		}
	}
	f.Close()
	to := check.Get(os.Create(path))(t)
	check.OK(t, errors.Join(safetensors.Write(to, list, nil), to.Close()))
}
