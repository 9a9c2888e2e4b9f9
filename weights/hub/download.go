package hub

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/geoalign/geoalign/internal/files"
)

// sum is the checksum of a file as the hub gives it, which is the name of its content in the cache: SHA-256 of files in
// LFS, else the SHA-1 of git.
func (x file) sum() string {
	if x.LFS != nil {
		return x.LFS.SHA256
	}
	return x.Blob
}

// size is that of a file in bytes.
func (x file) size() int64 {
	if x.LFS != nil {
		return x.LFS.Size
	}
	return x.Size
}

// hash is what makes the checksum of a file. That of git begins with the size.
func (x file) hash() hash.Hash {
	if x.LFS != nil {
		return sha256.New()
	}
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", x.size())
	return h
}

var hexName = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// attempts is how often a request is sent before its failure is told.
const attempts = 5

// download puts a file into the cache, after others that download it.
func (f *fetching) download(ctx context.Context, x file) error {
	sum := x.sum()
	if !hexName.MatchString(sum) || x.size() < 0 {
		return fmt.Errorf("the hub gives no checksum of it (got %q): is HF_ENDPOINT that of a hub?", sum)
	}
	blob := filepath.Join(f.Cache, f.name.folder(), blobs, sum)
	lock := filepath.Join(f.Cache, ".locks", f.name.folder(), sum+".lock")
	for _, path := range []string{blob, lock} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
	}
	unlock, err := files.WaitLock(ctx, lock)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Stat(blob); err == nil { // of another commit, or of another process
		return link(f.Snapshot, blob, x.Name)
	}
	part := blob + ".incomplete"
	for failures := 1; ; failures++ {
		err = f.part(ctx, x, part)
		var sumErr *checksumError
		switch {
		case err == nil:
			if err := os.Rename(part, blob); err != nil {
				return err
			}
			return link(f.Snapshot, blob, x.Name)
		case errors.As(err, &sumErr):
			if err := os.Remove(part); err != nil {
				return err
			}
			if failures > 1 {
				return sumErr
			}
		case ctx.Err() != nil:
			return ctx.Err()
		default:
			var away *unreachableError
			if !errors.As(err, &away) || failures == attempts {
				return err
			}
			if err := sleep(ctx, time.Duration(failures)*f.Pause); err != nil {
				return err
			}
		}
	}
}

// checksumError says that a whole file is not what the hub says it is.
type checksumError struct{ got, want string }

func (e *checksumError) Error() string {
	return fmt.Sprintf("its checksum is %s where the hub says %s, twice: something between changes it, try another network",
		e.got, e.want)
}

// part goes on with a file whose beginning may be there, up to its end and checksum.
func (f *fetching) part(ctx context.Context, x file, path string) error {
	out, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	h := x.hash()
	done, err := io.Copy(h, out)
	if err != nil {
		return err
	}
	if done < x.size() {
		resp, err := f.get(ctx, f.fileURL(x.Name), done)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusPartialContent && done > 0 { // it sends the whole file
			if _, err = out.Seek(0, io.SeekStart); err == nil {
				err = out.Truncate(0)
			}
			if err != nil {
				return err
			}
			h, done = x.hash(), 0
		}
		to := &counted{to: io.MultiWriter(out, h), done: done, tell: func(done int64) {
			if f.Progress != nil {
				f.Progress(x.Name, done, x.size())
			}
		}}
		// one byte more shows a file that is longer than the hub says
		if _, err := io.Copy(to, io.LimitReader(resp.Body, x.size()-done+1)); err != nil {
			if to.failed {
				return err
			}
			return &unreachableError{f.Endpoint, err}
		}
		if done = to.done; done < x.size() {
			return &unreachableError{f.Endpoint, io.ErrUnexpectedEOF}
		}
	}
	if got := hex.EncodeToString(h.Sum(nil)); done != x.size() || got != x.sum() {
		return &checksumError{got: got, want: x.sum()}
	}
	return errors.Join(out.Sync(), out.Close())
}

// counted tells how much was written.
type counted struct {
	to     io.Writer
	done   int64
	failed bool // it was the writing that failed
	tell   func(done int64)
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.done, c.failed = c.done+int64(n), err != nil
	c.tell(c.done)
	return n, err
}
