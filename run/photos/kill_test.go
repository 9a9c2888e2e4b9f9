package photos

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/geoalign/geoalign/gallery"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/run"
)

var kills = flag.Int("kills", 40, "updates that TestKills kills")

// asChild has the process of a test update a gallery until it is killed.
const asChild = "GEOALIGN_TEST_PHOTOS"

// TestKillChild is no test: it is what TestKills kills.
func TestKillChild(t *testing.T) {
	of := strings.Split(os.Getenv(asChild), "|")
	if len(of) != 3 {
		t.Skip("for TestKills")
	}
	settle(t)
	fmt.Println("begun")
	u, err := Update(t.Context(), of[0], Options{Dir: of[1], Model: of[2], Flush: time.Nanosecond,
		Open: run.OpenOptions{Set: []string{"eval.batch_size=2", "data.tokens=6"}}})
	check.OK(t, err)
	check.OK(t, u.Close())
}

// TestKills: whenever an update is killed, the manifest names rows of pictures that are there and right, none twice, and
// rows that were on the disk stay until their pictures are gone.
func TestKills(t *testing.T) {
	kills := *kills
	if testing.Short() {
		kills = 4
	}
	a := newAlbum(t, 24)
	settle(t)
	r, rows, next := rand.New(rand.NewPCG(1, 2)), map[string]bool{}, 24
	for n := range kills {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestKillChild$")
		cmd.Env = append(os.Environ(), asChild+"="+strings.Join([]string{a.dir, a.o.Dir, a.o.Model}, "|"))
		out := check.Get(cmd.StdoutPipe())(t)
		check.OK(t, cmd.Start())
		check.Get(bufio.NewReader(out).ReadString('\n'))(t)
		time.Sleep(time.Duration(r.IntN(150)) * time.Millisecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		m, err := gallery.ReadManifest(a.o.Dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		check.OK(t, err)
		now := map[string]bool{}
		for _, s := range m.Shards {
			check.OK(t, whole(t.Context(), a.o.Dir, s))
			for _, x := range check.Get(readRows(a.o.Dir, s))(t) {
				if now[x.Name] {
					t.Fatalf("kill %d: %s is there twice", n, x.Name)
				}
				now[x.Name] = true
			}
		}
		for name := range rows {
			if _, gone := os.Stat(a.at(name)); !now[name] && gone == nil {
				t.Fatalf("kill %d: the row of %s is lost", n, name)
			}
		}
		rows = now
		name := fmt.Sprintf("n%03d.png", next)
		picture(t, a.at(name), next) // the folder changes between
		next++
		if n%4 == 3 {
			_ = os.Remove(a.at(fmt.Sprintf("p%02d.png", n/4%24)))
		}
	}
	u := a.update(t)
	list := check.Get(os.ReadDir(a.dir))(t)
	if u.Images != len(list) {
		t.Errorf("%d rows of %d pictures", u.Images, len(list))
	}
	a.verify(t, u.names)
}
