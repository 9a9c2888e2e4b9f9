// Command campaign puts training runs through what happens to them in the world, as often as one
// likes, and counts what is lost. From the root of the repository:
//
//	go run ./tools/campaign kill -n 1000     # kills runs at random moments and goes on with them
//	go run ./tools/campaign kill -n 50 -ranks 2   # kills one of two ranks
//	go run ./tools/campaign damage -n 1000   # damages checkpoints and has every command read them
//	go run ./tools/campaign damage-data -n 1000   # damages galleries, archives and indices and searches them
//	go run ./tools/campaign disk -n 100      # lets the disk fill up at random places (needs leave to mount)
//	go run ./tools/campaign memory -n 100   # takes the memory away at random moments (Linux)
//	go run ./tools/campaign soak -for 1h     # trains and watches the memory
//
// A campaign prints what it did and what went wrong, and exits with 1 if anything did. One seed
// makes the same choices; when a process dies is up to the machine. docs/reliability.md has the figures.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// campaign is what all campaigns share.
type campaign struct {
	n      int
	steps  int           // of a run that is killed
	ranks  int           // of a run that is killed; 1: one process
	length time.Duration // of a soak
	config string
	bin    string // the program; empty: it is built
	seed   uint64
	log    io.Writer

	dir  string // for everything that the campaign writes; removed at the end
	rand *rand.Rand
}

// campaigns are the functions by name. An error says what went wrong.
var campaigns = map[string]func(*campaign) error{
	"kill": (*campaign).kill, "damage": (*campaign).damage, "damage-data": (*campaign).damageData,
	"disk": (*campaign).disk, "soak": (*campaign).soak,
}

func main() {
	c := campaign{log: os.Stdout}
	flags := flag.NewFlagSet("campaign", flag.ExitOnError)
	flags.IntVar(&c.n, "n", 50, "kills, damages, full disks or limits of memory")
	flags.IntVar(&c.steps, "steps", 240, "steps of a run that is killed")
	flags.IntVar(&c.ranks, "ranks", 1, "processes of a run that is killed, by mpirun; a kill is of one of them")
	flags.DurationVar(&c.length, "for", 2*time.Minute, "time of a soak")
	flags.StringVar(&c.config, "config", "tools/campaign/run.toml", "configuration of the run")
	flags.StringVar(&c.bin, "bin", "", "trainer to run; it is built without")
	flags.Uint64Var(&c.seed, "seed", 1, "seed of the choices")
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "usage: campaign kill|damage|damage-data|disk|memory|soak [flags]")
		flags.PrintDefaults()
	}
	if len(os.Args) < 2 || campaigns[os.Args[1]] == nil {
		flags.Usage()
		os.Exit(2)
	}
	flags.Parse(os.Args[2:]) // exits where it fails
	if flags.NArg() > 0 || c.n < 1 || c.steps < 1 || c.ranks < 1 || c.length <= 0 {
		flags.Usage()
		os.Exit(2)
	}
	if c.ranks > 1 && os.Args[1] != "kill" {
		fmt.Fprintln(os.Stderr, "campaign: -ranks is of kill: the others are of one process")
		os.Exit(2)
	}
	if err := c.run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "campaign:", err)
		os.Exit(1)
	}
}

// run makes the folder of a campaign, and the program where none is given, and begins.
func (c *campaign) run(name string) (err error) {
	if c.dir, err = os.MkdirTemp("", "campaign-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(c.dir)) }()
	if c.config, err = filepath.Abs(c.config); err != nil {
		return err
	}
	if c.bin == "" {
		c.bin = filepath.Join(c.dir, "trainer")
		if err := c.build(); err != nil {
			return err
		}
	}
	if c.bin, err = filepath.Abs(c.bin); err != nil {
		return err
	}
	c.rand = newRand(c.seed)
	begin := time.Now()
	err = campaigns[name](c)
	c.say("%s: %v", name, time.Since(begin).Round(time.Second))
	return err
}

// newRand makes the choices of a seed.
func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// say prints a line.
func (c *campaign) say(format string, args ...any) { fmt.Fprintf(c.log, format+"\n", args...) }

// failures are what went wrong, the first few in words.
type failures struct {
	n     int
	first []string
}

func (f *failures) add(format string, args ...any) {
	f.n++
	if len(f.first) < 10 {
		f.first = append(f.first, fmt.Sprintf(format, args...))
	}
}

// err returns nil where nothing went wrong.
func (f *failures) err() error {
	if f.n == 0 {
		return nil
	}
	return fmt.Errorf("%d failures, such as\n%s", f.n, strings.Join(slices.Clip(f.first), "\n"))
}
