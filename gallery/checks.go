package gallery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"

	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/identity"
	"github.com/geoalign/geoalign/internal/safetensors"
)

// Check is what is known of the contents of a file of a gallery before they are looked at.
type Check struct {
	Path  string
	Sum   string // CRC-32C of the file, hexadecimal; empty: nothing has noted any
	Bytes int64  // size that goes with Sum; negative: not noted
	own   bool   // the sum is in the metadata of the file itself, see safetensors.WriteSummed
	where string // where the sum is written
	cure  string // what to do where the file is another one
}

// background is how many bytes are compared with their sums before Open returns, some tens of milliseconds; more are
// compared while the caller goes on.
var background int64 = 64 << 20

// name is what the user's book calls the check.
func (c *Check) name() string {
	of := "the CRC-32C "
	if c.own {
		of = "in itself the CRC-32C "
	}
	return absolute(c.Path) + " has " + of + c.Sum
}

// stamp returns what the file system says of the file.
func (c *Check) stamp() (identity.Stamp, error) { return identity.StampOf(c.Path) }

// Whole reads the file and compares it with its sum; without one it looks at its form. The error says what differs and
// what to do.
func (c *Check) Whole(ctx context.Context) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("gallery: %s was damaged or changed: %s: %s", c.Path, fmt.Sprintf(format, args...), c.cure)
	}
	if c.Sum == "" {
		if filepath.Ext(c.Path) != ".jsonl" {
			_, err := features.Describe(ctx, c.Path, true)
			return err
		}
		return checkLines(c.Path)
	}
	if c.own {
		err := safetensors.CheckFile(ctx, c.Path)
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("gallery: %s: %w: %s", c.Path, err, c.cure)
		}
		return err
	}
	n, sum, err := SumFile(ctx, c.Path)
	switch {
	case err != nil && ctx.Err() == nil:
		return bad("%v", err)
	case err != nil:
		return err
	case c.Bytes >= 0 && n != c.Bytes:
		return bad("it has %d bytes, and %s says %d", n, c.where, c.Bytes)
	case sum != c.Sum:
		return bad("its checksum is %s, and %s says %s", sum, c.where, c.Sum)
	}
	return nil
}

// checkLines reads the lines of a file of names.
func checkLines(path string) error {
	f, _, err := files.Open(path, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	d := json.NewDecoder(f)
	for line := 1; ; line++ {
		var item Item
		if err := d.Decode(&item); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
}

// SumFile returns the size of a file and its CRC-32C as a manifest has it. It ends early with the error of ctx.
func SumFile(ctx context.Context, path string) (size int64, sum string, err error) {
	f, _, err := files.Open(path, 0)
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	var all uint32
	for b := make([]byte, 1<<20); ; {
		if err := ctx.Err(); err != nil {
			return 0, "", err
		}
		n, err := f.Read(b)
		all, size = crc32.Update(all, castagnoli, b[:n]), size+int64(n)
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return 0, "", err
		case err != nil:
			return size, fmt.Sprintf("%08x", all), nil
		}
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Known returns nil where the file is the one of the sum, as the user's book knows of earlier times or a look at all
// bytes shows.
func (c *Check) Known(ctx context.Context) error {
	return identity.User().Check(c.name(), c.stamp, func() error { return c.Whole(ctx) })
}

// Note notes in the user's book that the file is the one of the sum, as who wrote it knows: it had this stamp then.
func (c *Check) Note(then identity.Stamp) {
	if now, err := c.stamp(); err == nil && now == then {
		identity.User().NoteChecked(c.name(), then)
	}
}

// startChecks compares the files that are not known with their sums, at once where they are small.
func (g *Gallery) startChecks() error {
	var list []*Check
	size := int64(0)
	for i := range g.checks {
		c := &g.checks[i]
		if c.Sum == "" {
			continue
		}
		s, err := c.stamp()
		if _, known := identity.User().Known(c.name(), s); err == nil && known {
			continue
		}
		list, size = append(list, c), size+s.Size
	}
	if len(list) == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	work := func() (err error) {
		for _, c := range list {
			if err := c.Known(ctx); err != nil {
				return err
			}
		}
		_ = identity.User().Save() // else they are read again another time
		return nil
	}
	if size <= background {
		defer cancel()
		return work()
	}
	done := make(chan struct{})
	g.stopChecks = func() { cancel(); <-done }
	g.checked = done
	go func() {
		defer close(done)
		g.damage = work()
	}()
	return nil
}

// Wait waits until the files have been compared with the sums that embed noted, and returns an error that says what is
// damaged. Files that are known to be as they were are not read; small ones were compared when the gallery was opened.
// Searches wait by themselves.
func (g *Gallery) Wait(ctx context.Context) error {
	if g.checked == nil {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-g.checked:
		return g.damage
	}
}

// Checks lists the files of a gallery with what is known of their contents, those without a sum too. Files that are
// missing are listed. It fails where the gallery does not say what its files are.
func Checks(path string) ([]Check, error) {
	g := newGallery(path)
	err := errors.Join(g.open(), g.Close())
	if len(g.checks) > 0 {
		return g.checks, nil
	}
	return nil, err
}

// isThere says whether there is a file.
func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// absolute is a path from the root, as far as it can be known.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
