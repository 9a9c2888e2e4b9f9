package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// cases runs a script that writes o.n cases below o.dir, and reads their list. The versions of the packages are
// printed.
func (o *options) cases(script string, list any, packages ...string) error {
	if err := o.python("versions.py", packages...); err != nil {
		return err
	}
	if err := o.python(script, o.dir, strconv.Itoa(o.n), strconv.FormatUint(o.seed, 10)); err != nil {
		return err
	}
	b, err := os.ReadFile(filepath.Join(o.dir, "cases.json"))
	if err != nil {
		return err
	}
	return json.Unmarshal(b, list)
}

// counts adds a note for each of some counts.
func (r *result) counts(what string, n map[string]int) {
	for _, k := range slices.Sorted(maps.Keys(n)) {
		r.note("%s: %d: %.200q", what, n[k], k)
	}
}
