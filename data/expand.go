package data

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/names"
)

// maxExpanded is the largest number of files that a range may name.
const maxExpanded = 1_000_000

// Expand returns the files that the given names stand for, below root unless absolute. {000..099} is each
// number with the zeros of its first one, {a,b} each of the words; *, ? and [ ] match files that are
// there, in the order of their names. A pattern that matches nothing is fs.ErrNotExist. Nothing is
// looked up for other names, and a name that contains such characters and is that of a file
// is that file.
func Expand(root string, given []string) ([]string, error) {
	var list []string
	for _, name := range given {
		path := names.Under(root, name)
		if isFile(path) == nil {
			list = append(list, path)
			continue
		}
		ranges, err := braces(name)
		if err != nil {
			return nil, fmt.Errorf("data: %s: %w", name, err)
		}
		for _, p := range ranges {
			if !strings.ContainsAny(p, "*?[") {
				list = append(list, names.Under(root, p))
				continue
			}
			found, err := filepath.Glob(names.Under(files.Literal(root), p))
			if err == nil && len(found) == 0 {
				err = fs.ErrNotExist
			}
			if err != nil {
				return nil, fmt.Errorf("data: no file matches %s: %w", names.Under(root, p), err)
			}
			slices.Sort(found)
			list = append(list, found...)
		}
		if len(list) > maxExpanded {
			return nil, fmt.Errorf("data: %s: more than %d files", name, maxExpanded)
		}
	}
	return list, nil
}

// braces returns the words that the ranges of s stand for.
func braces(s string) ([]string, error) {
	before, rest, ok := strings.Cut(s, "{")
	if !ok {
		return []string{s}, nil
	}
	inner, after, ok := strings.Cut(rest, "}")
	if !ok || strings.Contains(inner, "{") {
		return nil, fmt.Errorf("a { without its }: write {000..099} or {a,b}")
	}
	words := strings.Split(inner, ",")
	if first, last, ok := strings.Cut(inner, ".."); ok {
		a, err1 := strconv.ParseUint(first, 10, 32)
		b, err2 := strconv.ParseUint(last, 10, 32)
		if err1 != nil || err2 != nil || b < a || b-a >= maxExpanded {
			return nil, fmt.Errorf("{%s} is not a range of at most %d rising numbers", inner, maxExpanded)
		}
		words = words[:0]
		for n := a; n <= b; n++ {
			words = append(words, fmt.Sprintf("%0*d", len(first), n))
		}
	}
	ends, err := braces(after)
	if err != nil {
		return nil, err
	}
	if len(words)*len(ends) > maxExpanded {
		return nil, fmt.Errorf("more than %d files", maxExpanded)
	}
	list := make([]string, 0, len(words)*len(ends))
	for _, w := range words {
		for _, e := range ends {
			list = append(list, before+w+e)
		}
	}
	return list, nil
}
