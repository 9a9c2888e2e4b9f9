package main

import (
	"path/filepath"
	"regexp"
	"strings"
)

type arrayCase struct {
	Name, Tensor, Settings, Error string

	Plain, Matrix, Whole bool
	Strict               bool // a file that their reader takes and ours need not: more follows the array
}

// compareArrays compares the rows of arrays with what the reader of their writer gives: plain matrices of floats must
// be read, and of all others what is read must be equal. No sound file may be called damaged.
func compareArrays(o *options) (*result, error) {
	var cases []arrayCase
	if err := o.cases("arrays.py", &cases, "numpy", "safetensors", "torch"); err != nil {
		return nil, err
	}
	r, both, read, refused := new(result), 0, 0, map[string]int{}
	for _, c := range cases {
		r.cases++
		path, want := filepath.Join(o.dir, c.Name), ""
		if c.Matrix {
			want = path + ".rows.npy"
		}
		switch err := sameMatrix(path, c.Tensor, want); {
		case err == nil && want != "":
			read++
		case err == nil && c.Error != "":
			r.differ("%s %s: it is read, and its own reader says %s", c.Name, c.Settings, c.Error)
		case err == nil:
			r.differ("%s %s: it is read as a matrix, and is none", c.Name, c.Settings)
		case c.Error != "":
			both++
		case c.Plain && !c.Strict || c.Whole && claimsDamage(err):
			r.differ("%s %s: %v", c.Name, c.Settings, err)
		case strings.Contains(err.Error(), ", want "):
			r.differ("%s %s: %v", c.Name, c.Settings, err)
		default:
			refused[plainWords(err.Error())]++
		}
	}
	r.note("%d are read, %d are refused by both", read, both)
	r.counts("refused", refused)
	return r, nil
}

// numbers are what differs in the errors of one kind.
var numbers = regexp.MustCompile(`[0-9]+`)

// plainWords is an error behind the name of its file, without numbers, cut before what to do.
func plainWords(s string) string {
	for _, ext := range []string{".npy: ", ".npz: ", ".safetensors: ", ".pt: "} {
		if _, behind, ok := strings.Cut(s, ext); ok {
			s = behind
		}
	}
	s = numbers.ReplaceAllString(s, "N")
	return s[:min(len(s), 50)]
}
