package tune

import (
	"fmt"
	"slices"
	"time"

	"github.com/geoalign/geoalign/internal/usercache"
)

// format changes when the file does, or the way of measuring.
const format = 3

// Bounds of the file: environments, of which the oldest go first, and products of each.
const (
	mostMachines = 16
	most         = 4096
)

// file is the content of the cache.
type file struct {
	Format   int       `json:"format"`
	Machines []machine `json:"machines"`
}

// machine is what is known of one environment.
type machine struct {
	Environment Environment       `json:"environment"`
	Written     time.Time         `json:"written"`
	Products    map[string]Choice `json:"products"`
	// libraries that a trial process multiplied with, and went on
	Passed kernels `json:"passed,omitempty"`
	Ended  kernels `json:"ended,omitempty"` // that ended a process
}

// kernels are names of kernels by product.
type kernels map[string][]string

func (k kernels) has(product, kernel string) bool { return slices.Contains(k[product], kernel) }

func (k kernels) add(product, kernel string) {
	if !k.has(product, kernel) && len(k) < most {
		k[product] = append(k[product], kernel)
	}
}

// addAll adds what o has.
func (k kernels) addAll(o kernels) {
	for product, list := range o {
		for _, kernel := range list {
			k.add(product, kernel)
		}
	}
}

// File returns the path of the cache, empty where there is no place for one.
func File() string { return usercache.File("kernels.json") }

// read returns what a file holds.
func read(path string) (f file, err error) {
	if err := usercache.Read(path, &f); err != nil {
		return file{}, err
	}
	if f.Format != format {
		return file{}, fmt.Errorf("it has format %d, this program reads %d", f.Format, format)
	}
	for i := range f.Machines {
		m := &f.Machines[i]
		if m.Products == nil {
			m.Products = map[string]Choice{}
		}
		if m.Passed == nil {
			m.Passed = kernels{}
		}
		if m.Ended == nil {
			m.Ended = kernels{}
		}
	}
	return f, nil
}

// of returns the machine of an environment, nil where there is none.
func (f *file) of(env Environment) *machine {
	for i := range f.Machines {
		if f.Machines[i].Environment.equal(env) {
			return &f.Machines[i]
		}
	}
	return nil
}

// foreign says what all that a file holds is of, as far as that is worth a word: other threads and precisions are not.
func (f *file) foreign(env Environment) (of string) {
	if len(f.Machines) > 0 {
		of = "another processor"
	}
	for _, m := range f.Machines {
		e := m.Environment
		switch {
		case e.Processor != env.Processor:
		case e.Program != env.Program:
			of = "another version of this program"
		case e.Instructions == env.Instructions && e.Threads == env.Threads:
			return "other libraries"
		default:
			return ""
		}
	}
	return of
}

// entry is of, with a new machine where there is none.
func (f *file) entry(env Environment) *machine {
	if m := f.of(env); m != nil {
		return m
	}
	f.Machines = append(f.Machines, machine{Environment: env, Products: map[string]Choice{}, Passed: kernels{},
		Ended: kernels{}})
	return &f.Machines[len(f.Machines)-1]
}

// bound drops what is too much: the environments that were written first, and all products of one
// that has too many.
func (f *file) bound() {
	slices.SortFunc(f.Machines, func(a, b machine) int { return b.Written.Compare(a.Written) })
	f.Machines = f.Machines[:min(len(f.Machines), mostMachines)]
	for i := range f.Machines {
		if m := &f.Machines[i]; len(m.Products) > most {
			m.Products = map[string]Choice{}
		}
	}
}
