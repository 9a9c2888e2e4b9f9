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
		v, err := t.try(ctx, m)
		if err != nil {
			return err
		}
		count[v]++
		fmt.Fprintf(out, "%d/%d %s %s\n", i+1, len(mutants), v, m)
	}
	fmt.Fprintf(out, "%d of %d changes: %d killed, %d survived, %d do not compile\n", len(mutants), all, count[killed], count[survived], count[invalid])
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
	dir   string // of the changed file
	then  []string
	limit time.Duration
	run   string
}

// try returns the verdict on a mutant. The error is that of the tests, which must pass
// without it, or of files.
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
	own := "./" + filepath.ToSlash(filepath.Dir(m.file))
	if filepath.IsAbs(m.file) {
		own = filepath.Dir(m.file)
	}
	for _, packages := range slices.DeleteFunc([][]string{{own}, t.then}, func(p []string) bool { return len(p) == 0 }) {
		args := append([]string{"test", "-overlay", overlay, "-short", "-count=1", "-failfast", "-vet=off", "-timeout", t.limit.String(), "-run", t.run}, packages...)
		c := exec.CommandContext(ctx, "go", args...)
		if filepath.IsAbs(m.file) {
			c.Dir = own
		}
		output, err := c.CombinedOutput()
		switch {
		case ctx.Err() != nil:
			return "", ctx.Err()
		case err == nil:
		case strings.Contains(string(output), "[build failed]"):
			return invalid, nil
		case strings.Contains(string(output), "FAIL"):
			return killed, nil
		default:
			return "", fmt.Errorf("go test: %w: %s", err, output)
		}
	}
	return survived, nil
}
