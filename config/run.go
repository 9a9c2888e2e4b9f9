package config

import "strings"

// Run names a run and seeds it.
type Run struct {
	// name of the run, used for the default output folder
	Name string `toml:"name" change:"silent"`
	// run folder; empty: runs/<name>
	Out string `toml:"out" change:"silent"`
	// seed of every random number of the run
	Seed uint64 `toml:"seed" fixed:"run" max:"9223372036854775807"`
}

func (r *Run) defaults() { *r = Run{Name: "run", Seed: 42} }

func (r *Run) check(k *checker, _ *Config) {
	k.Require("run.name", r.Name != "" || r.Out != "", "must not be empty", "name the run or set run.out")
	k.Require("run.name", !strings.ContainsAny(r.Name, `/\`) && r.Name != "." && r.Name != "..", "must not be a path",
		"use run.out for the folder")
}
