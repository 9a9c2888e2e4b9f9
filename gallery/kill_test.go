package gallery

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/check"
)

var kills = flag.Int("kills", 20, "writers that TestKills kills")

// asChild has the process of a test change a gallery until it is killed.
const asChild = "GEOALIGN_TEST_GALLERY"

// step is the change number n of a round: rows that are put, ids that are deleted, or with neither a merge.
func step(r *rand.Rand, round, n int) (put []Put, gone []string) {
	switch r.IntN(8) {
	case 0:
		return nil, nil
	case 1, 2:
		for range 1 + r.IntN(10) {
			gone = append(gone, fmt.Sprint("id", r.IntN(200)))
		}
		return nil, gone
	}
	first := r.IntN(200)
	for i := range 1 + r.IntN(40) {
		put = append(put, Put{ID: fmt.Sprint("id", (first+i)%200), Features: []float32{float32(round) + 1, float32(n), float32(i)},
			Payload: fmt.Appendf(nil, `{"round": %d}`, round)})
	}
	return put, nil
}

// TestKillChild is no test: it is what TestKills kills.
func TestKillChild(t *testing.T) {
	dir, seed, ok := strings.Cut(os.Getenv(asChild), "|")
	if !ok {
		t.Skip("for TestKills")
	}
	var round int
	check.Get(fmt.Sscan(seed, &round))(t)
	w := check.Get(OpenWriter(dir, nil))(t)
	r := rand.New(rand.NewPCG(uint64(round), 7))
	fmt.Println("begun")
	for n := 0; ; n++ {
		switch put, gone := step(r, round, n); {
		case put != nil:
			check.Get(w.Put(put))(t)
		case gone != nil:
			check.Get(w.Delete(gone))(t)
		default:
			old := w.Gallery()
			check.OK(t, w.Merge(t.Context(), func(*Gallery) error { return nil }, func(*Gallery) {}))
			if w.Gallery() != old {
				check.OK(t, old.Close())
			}
		}
		fmt.Println("done")
	}
}

// TestKills: whenever a writer is killed, the gallery is that of all changes that it acknowledged, or of one more, as a
// whole.
func TestKills(t *testing.T) {
	dir, merged := t.TempDir(), 0
	writeShards(t, dir, 3, 5)
	read := func() map[string]string {
		g := check.Get(Open(dir))(t)
		defer g.Close()
		now := map[string]string{}
		for i := range g.Rows(Image) {
			if !g.Has(Image, i) {
				continue
			}
			item := check.Get(g.Item(Image, i))(t)
			if now[item.ID] != "" {
				t.Fatalf("%s is there twice", item.ID)
			}
			now[item.ID] = fmt.Sprint(check.Get(g.Row(Image, i))(t), string(item.Payload))
		}
		return now
	}
	rows := read()
	wait := rand.New(rand.NewPCG(1, 2))
	for round := range *kills {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestKillChild$")
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%d", asChild, dir, round))
		out := bufio.NewReader(check.Get(cmd.StdoutPipe())(t))
		check.OK(t, cmd.Start())
		check.Get(out.ReadString('\n'))(t)
		time.AfterFunc(time.Duration(wait.IntN(60_000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
		acknowledged := 0
		for line, err := out.ReadString('\n'); err == nil; line, err = out.ReadString('\n') {
			if line != "done\n" {
				t.Fatalf("kill %d: %s", round, line)
			}
			acknowledged++
		}
		_ = cmd.Wait()
		r := rand.New(rand.NewPCG(uint64(round), 7))
		next := func(n int) {
			put, gone := step(r, round, n)
			for _, p := range put {
				rows[p.ID] = fmt.Sprint(p.Features, fmt.Sprintf(`{"round":%d}`, round))
			}
			for _, id := range gone {
				delete(rows, id)
			}
		}
		for n := range acknowledged {
			next(n)
		}
		now := read()
		if !maps.Equal(now, rows) {
			if next(acknowledged); !maps.Equal(now, rows) {
				t.Fatalf("kill %d, after %d changes: %d rows are there, want %d", round, acknowledged, len(now), len(rows))
			}
		}
		if m := check.Get(ReadManifest(dir))(t); m.Generation > 1 {
			merged = m.Generation
		}
	}
	w := check.Get(OpenWriter(dir, nil))(t)
	check.OK(t, errors.Join(w.Close(), w.Gallery().Close()))
	if list := check.Get(os.ReadDir(dir))(t); merged == 0 || len(list) > 5 {
		t.Errorf("%d merges, and %v are left", merged, list)
	}
}
