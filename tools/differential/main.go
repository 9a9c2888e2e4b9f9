// Command differential sets what geoalign reads and measures against the programs whose rules it
// follows: it makes inputs by the thousand, hostile ones among them, gives each to both and compares
// the answers. From the root of the repository:
//
//	go run ./tools/differential captions -n 10000 -python venv/bin/python
//	go run ./tools/differential all -python venv/bin/python
//
// The other programs are Python packages (requirements.txt beside this file) and, for captions, a Java
// runtime. Neither is needed to build, run or test geoalign. A kind prints its number of cases and what
// differed, and the command exits with 1 if anything did. The same seed makes the same inputs.
package main

import (
	"cmp"
	"embed"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// kind is one comparison.
type kind struct {
	name, about string
	cases       int // without -n
	run         func(*options) (*result, error)
}

// kinds are all comparisons, one file each.
var kinds = []kind{
	{"captions", "words, BLEU and CIDEr of captions, with pycocoevalcap and Java", 10000, compareCaptions},
	{"images", "image files of all modes, metadata and endings, against Pillow", 2000, compareImages},
	{"jpeg", "JPEG files of all settings, and damaged ones, against Pillow: equal pixels", 2500, compareJPEG},
	{"resize", "pictures in other sizes, against Pillow", 1000, compareResize},
	{"parquet", ".parquet files of pyarrow, DuckDB, polars and fastparquet, against pyarrow", 500, compareParquet},
	{"arrays", "arrays of numpy, safetensors and torch, against their own readers", 1000, compareArrays},
	{"shards", "tar shards of webdataset and of tar's formats, against webdataset", 500, compareShards},
	{"tokenizers", "texts through tokenizers of every kind, against Hugging Face's", 10000, compareTokenizers},
}

// options are what a comparison is given.
type options struct {
	n    int
	seed uint64
	dir  string // for everything that it writes; removed at the end
	py   string
}

// result is what a comparison found.
type result struct {
	cases       int
	differences []string // one line each: the case, their answer, ours
	notes       []string // what else is worth a line: versions, cases that both refuse
}

// differ adds a difference.
func (r *result) differ(format string, args ...any) {
	r.differences = append(r.differences, fmt.Sprintf(format, args...))
}

// note adds a line that is not a difference.
func (r *result) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

//go:embed *.py
var scripts embed.FS

// python runs a script of this folder by its name. What it prints goes to the standard error; results
// are files below o.dir.
func (o *options) python(script string, args ...string) error {
	if err := os.CopyFS(filepath.Join(o.dir, "scripts"), scripts); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	c := exec.Command(o.py, append([]string{filepath.Join(o.dir, "scripts", script)}, args...)...)
	c.Stdout, c.Stderr = os.Stderr, os.Stderr
	c.Env = append(os.Environ(), "RUST_BACKTRACE=0")
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s %s: %w: install tools/differential/requirements.txt for this interpreter, or name another with -python", o.py, script, err)
	}
	return nil
}

// shown is the number of differences that are printed of a kind.
const shown = 20

// compare runs one kind and prints what it found.
func compare(k kind, o options) (differences int, err error) {
	o.n = cmp.Or(o.n, k.cases)
	if o.dir, err = os.MkdirTemp("", "differential"); err != nil {
		return 0, err
	}
	defer os.RemoveAll(o.dir)
	r, err := k.run(&o)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", k.name, err)
	}
	fmt.Printf("%s: %d cases, %d differences\n", k.name, r.cases, len(r.differences))
	for _, s := range r.notes {
		fmt.Printf("  %s\n", s)
	}
	for _, s := range r.differences[:min(len(r.differences), shown)] {
		fmt.Printf("  differs: %.400q\n", s)
	}
	return len(r.differences), nil
}

func main() {
	o := options{}
	flags := flag.NewFlagSet("differential", flag.ExitOnError)
	flags.IntVar(&o.n, "n", 0, "cases; 0: as many as the kind usually has")
	flags.Uint64Var(&o.seed, "seed", 1, "seed of the inputs")
	flags.StringVar(&o.py, "python", "python3", "interpreter that has the packages of requirements.txt")
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "usage: differential all|KIND [flags]")
		for _, k := range kinds {
			fmt.Fprintf(flags.Output(), "  %-12s %s (%d cases)\n", k.name, k.about, k.cases)
		}
		flags.PrintDefaults()
	}
	if len(os.Args) < 2 {
		flags.Usage()
		os.Exit(2)
	}
	flags.Parse(os.Args[2:]) // exits where it fails
	var chosen []kind
	for _, k := range kinds {
		if os.Args[1] == k.name || os.Args[1] == "all" {
			chosen = append(chosen, k)
		}
	}
	if len(chosen) == 0 || flags.NArg() > 0 || o.n < 0 {
		flags.Usage()
		os.Exit(2)
	}
	var errs error
	differences := 0
	for _, k := range chosen {
		n, err := compare(k, o)
		errs, differences = errors.Join(errs, err), differences+n
	}
	if errs != nil {
		fmt.Fprintln(os.Stderr, "differential:", errs)
	}
	if errs != nil || differences > 0 {
		os.Exit(1)
	}
}
