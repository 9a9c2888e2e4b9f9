// Command mutate measures what tests hold: it changes one place of the code after the
// other, such as a + to a -, runs the tests and lists the changes that none notices.
//
//	go run ./tools/mutate -sample 40 -seed 1 -then ./model ./objectives ./ops/contrast
//
// The files stay as they are: a changed one reaches the compiler by go test -overlay. The
// tests of the package with the change run first, then those of -then.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("mutate", flag.ContinueOnError)
	sample := flags.Int("sample", 0, "number of changes to try, drawn at random; 0: all")
	seed := flags.Uint64("seed", 1, "seed of the draw")
	then := flags.String("then", "", "packages whose tests see the code too, joined by commas")
	limit := flags.Duration("timeout", 3*time.Minute, "of the tests of a change; longer is noticed too")
	only := flags.String("run", "", "pattern of the tests, as that of go test; empty: all that -short leaves")
	if err := flags.Parse(args); err != nil {
		return err
	}
	mutants, err := find(flags.Args())
	if err != nil {
		return err
	}
	if len(mutants) == 0 {
		return fmt.Errorf("no code to change in %q: name folders of packages, such as ./objectives", flags.Args())
	}
	r := rand.New(rand.NewPCG(*seed, 0))
	r.Shuffle(len(mutants), func(i, j int) { mutants[i], mutants[j] = mutants[j], mutants[i] })
	all := len(mutants)
	if *sample > 0 {
		mutants = mutants[:min(*sample, all)]
	}
	t := tester{limit: *limit, run: *only}
	if *then != "" {
		t.then = strings.Split(*then, ",")
	}
	if t.dir, err = os.MkdirTemp("", "mutate"); err != nil {
		return err
	}
	defer os.RemoveAll(t.dir)
	count := map[verdict]int{}
	for i, m := range mutants {
		if err := t.pass(ctx, m.file); err != nil {
			return err
		}
		v, err := t.try(ctx, m)
		if err != nil {
			return err
		}
		count[v]++
		fmt.Fprintf(out, "%d/%d %s %s\n", i+1, len(mutants), v, m)
	}
	fmt.Fprintf(out, "%d of %d changes: %d killed, %d survived, %d do not compile\n", len(mutants), all, count[killed],
		count[survived], count[invalid])
	return nil
}

// verdict is what became of a change.
type verdict string

const (
	killed   verdict = "killed  "
	survived verdict = "SURVIVED"
	invalid  verdict = "invalid " // it does not compile
)

// tester runs the tests of one change after the other.
type tester struct {
	dir    string // of the changed file
	then   []string
	limit  time.Duration
	run    string
	passed []string // folders whose tests, and those of then, pass without a change
}

// pass is an error where the tests that see a file fail without a change: they would kill all of them.
func (t *tester) pass(ctx context.Context, file string) error {
	folder := filepath.Dir(file)
	if slices.Contains(t.passed, folder) {
		return nil
	}
	t.passed = append(t.passed, folder)
	for _, packages := range t.packages(file) {
		if output, err := t.test(ctx, file, packages); ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil {
			return fmt.Errorf("the tests of %s do not pass without a change: %w\n%s", strings.Join(packages, ", "), err,
				output)
		}
	}
	return nil
}

// try returns the verdict on a mutant. The error is that of files, or of go.
func (t *tester) try(ctx context.Context, m mutant) (verdict, error) {
	text, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	path, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	changed, overlay := filepath.Join(t.dir, "changed.go"), filepath.Join(t.dir, "overlay.json")
	table, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(changed, m.apply(text), 0o644); err != nil {
		return "", err
	}
	if err := os.WriteFile(overlay, table, 0o644); err != nil {
		return "", err
	}
	for _, packages := range t.packages(m.file) {
		output, err := t.test(ctx, m.file, packages, "-overlay", overlay)
		switch {
		case ctx.Err() != nil:
			return "", ctx.Err()
		case err == nil:
		case strings.Contains(output, "[build failed]"):
			return invalid, nil
		case strings.Contains(output, "FAIL"):
			return killed, nil
		default:
			return "", fmt.Errorf("go test: %w: %s", err, output)
		}
	}
	return survived, nil
}

// packages are those whose tests see a file, in the order in which they run: its own, then the others.
func (t *tester) packages(file string) [][]string {
	own := "./" + filepath.ToSlash(filepath.Dir(file))
	if filepath.IsAbs(file) {
		own = filepath.Dir(file)
	}
	if len(t.then) == 0 {
		return [][]string{{own}}
	}
	return [][]string{{own}, t.then}
}

// test runs the tests of packages that see a file.
func (t *tester) test(ctx context.Context, file string, packages []string, more ...string) (output string, err error) {
	args := append([]string{"test", "-short", "-count=1", "-failfast", "-vet=off", "-timeout", t.limit.String(),
		"-run", t.run}, more...)
	c := exec.CommandContext(ctx, "go", append(args, packages...)...)
	if filepath.IsAbs(file) {
		c.Dir = filepath.Dir(file)
	}
	text, err := c.CombinedOutput()
	return string(text), err
}
