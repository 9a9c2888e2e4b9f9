package config

import (
	"strings"

	"github.com/geoalign/geoalign/config/section"
)

// Run names a run and seeds it.
type Run struct {
	// name of the run, used for the default output folder
	Name string `toml:"name" change:"silent"`
	// run folder; empty: runs/<name>
	Out string `toml:"out" change:"silent"`
	// seed of every random number of the run
	Seed uint64 `toml:"seed" fixed:"run" max:"9223372036854775807"`
}

// Defaults implements section.Defaulter.
func (r *Run) Defaults() { *r = Run{Name: "run", Seed: 42} }

// Check implements section.Checked.
func (r *Run) Check(k *section.Checker) {
	k.Require("name", r.Name != "" || r.Out != "", "must not be empty", "name the run or set run.out")
	k.Require("name", !strings.ContainsAny(r.Name, `/\`) && r.Name != "." && r.Name != "..", "must not be a path",
		"use run.out for the folder")
}
