package checkpoint

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/geoalign/geoalign/internal/safetensors"

	"github.com/geoalign/geoalign/internal/identity"
)

// Store saves checkpoints into one folder. Make it with NewStore.
type Store struct {
	dir    string
	keep   Retention
	create func(path string) (file, error) // replaced by tests to make writes fail
	// for the benchmark of what checksums cost; such checkpoints cannot be loaded
	noSums bool
}

// file is what Save needs of an *os.File.
type file interface {
	io.Writer
	Sync() error
	Close() error
}

// NewStore makes the folder dir if needed and clears what killed saves left there.
func NewStore(dir string, keep Retention) (*Store, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	s := &Store{dir: dir, keep: keep, create: func(path string) (file, error) { return os.Create(path) }}
	return s, s.clean()
}

// Dir returns the folder of the store.
func (s *Store) Dir() string { return s.dir }

// clean removes unfinished folders. A folder that was set aside for a save of
// the same step which never finished is put back, and latest is moved where that is all that
// a save lacks.
func (s *Store) clean() error {
	if _, published := readNext(s.dir); published {
		if err := os.Rename(filepath.Join(s.dir, nextName), filepath.Join(s.dir, latestName)); err != nil {
			return fmt.Errorf("checkpoint: finish an interrupted save: %w", err)
		}
	}
	names, err := os.ReadDir(s.dir)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	// By name, so that .old- comes before .tmp- and the next latest before the folder that it names.
	for _, e := range names {
		path := filepath.Join(s.dir, e.Name())
		if step, ok := strings.CutPrefix(e.Name(), oldPrefix); ok {
			whole := filepath.Join(s.dir, step)
			if _, err := os.Stat(whole); errors.Is(err, os.ErrNotExist) {
				if err := os.Rename(path, whole); err != nil {
					return fmt.Errorf("checkpoint: put back %s: %w", whole, err)
				}
				continue
			}
		} else if !strings.HasPrefix(e.Name(), tempPrefix) {
			continue
		}
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("checkpoint: remove the leftover of an interrupted save: %w", err)
		}
	}
	return nil
}

// Save writes the checkpoint of step and then points latest at it. When it
// fails, nothing of the new checkpoint stays and all earlier ones are as before.
// A checkpoint of the same step is replaced.
//
// Two renames make it the newest: of its folder, and of the next latest, which is written
// before. A process that is killed between them has saved: see readLatest.
func (s *Store) Save(step int, snap Snapshot) error {
	name := folderName(step)
	temp, final := filepath.Join(s.dir, tempPrefix+name), filepath.Join(s.dir, name)
	next := filepath.Join(s.dir, nextName)
	err := s.write(temp, step, snap)
	if err == nil {
		_, err = s.writeFile(next, func(w io.Writer) error {
			_,
				err := io.WriteString(w, name+"\n"+nameSum(name)+"\n")
			return err
		})
	}
	if err == nil {
		err = s.publish(temp, final)
	}
	if err != nil {
		os.Remove(next) // before temp, or it would say that temp was published
		os.RemoveAll(temp)
		return fmt.Errorf("checkpoint: save step %d in %s: %w%s", step, s.dir, err, hint(err))
	}
	return nil
}

// hint says what to do about the common causes of a failed save.
func hint(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return ": the disk is full: free space there, keep fewer checkpoints (train.keep_last) or choose another folder with --out; earlier checkpoints are untouched"
	case errors.Is(err, os.ErrPermission), errors.Is(err, syscall.EROFS):
		return ": make the folder writable or choose another with --out; earlier checkpoints are untouched"
	}
	return ": earlier checkpoints are untouched"
}

// write fills the folder temp.
func (s *Store) write(temp string, step int, snap Snapshot) error {
	if err := os.RemoveAll(temp); err != nil {
		return err
	}
	if err := os.Mkdir(temp, 0o777); err != nil {
		return err
	}
	m := manifest{Version: version, Step: step, Files: map[string]fileInfo{}, Parts: snap.parts}
	m.setMetric(snap.Metric, s.keep.BestBy)
	add := func(name string, fill func(w io.Writer) error) error {
		if _, dup := m.Files[name]; dup || name == manifestName || name != filepath.Base(name) {
			return fmt.Errorf("file name %q is reserved, used twice or not a plain name", name)
		}
		info, err := s.writeFile(filepath.Join(temp, name), fill)
		m.Files[name] = info
		return err
	}
	for _, f := range snap.tensors {
		if err := add(fileOf(f.part), func(w io.Writer) error {
			return safetensors.Write(w, f.list, map[string]string{"format": "geoalign"})
		}); err != nil {
			return err
		}
	}
	for name, b := range snap.Files {
		if err := add(name, func(w io.Writer) error { _, err := w.Write(b); return err }); err != nil {
			return err
		}
	}
	if err := s.writeManifest(filepath.Join(temp, manifestName), m); err != nil {
		return err
	}
	return syncDir(temp)
}

// writeManifest writes a state.json: a manifest, sealed, or the fields of an older version.
func (s *Store) writeManifest(path string, fields any) error {
	m, sealed := fields.(manifest)
	if sealed {
		m.Checksum = identity.SealZero
		fields = m
	}
	raw, err := json.MarshalIndent(fields, "", "  ")
	if err != nil {
		return err
	}
	raw = append(raw, '\n')
	if sealed {
		if err := identity.Seal(raw); err != nil {
			return err
		}
	}
	_, err = s.writeFile(path, func(w io.Writer) error { _, err := w.Write(raw); return err })
	return err
}

// writeFile creates, fills and syncs one file and returns its size and checksum.
func (s *Store) writeFile(path string, fill func(w io.Writer) error) (info fileInfo, err error) {
	f, err := s.create(path)
	if err != nil {
		return info, err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
		if err != nil {
			err = fmt.Errorf("write %s: %w", filepath.Base(path), err)
		}
	}()
	c := &counter{w: f, plain: s.noSums}
	b := bufio.NewWriterSize(c, 64<<10)
	if err := fill(b); err != nil {
		return info, err
	}
	if err := b.Flush(); err != nil {
		return info, err
	}
	return fileInfo{Bytes: c.n, Sum: sumText(c.sum)}, f.Sync()
}

// counter counts the bytes that pass and computes their checksum.
type counter struct {
	w   io.Writer
	n   int64
	sum uint32

	plain bool // without the checksum
}

// besideBytes is from how many bytes on a checksum is computed beside the write: a goroutine
// costs some microseconds, the checksum of 64 KB three.
const besideBytes = 64 << 10

func (c *counter) Write(p []byte) (n int, err error) {
	var beside sync.WaitGroup
	switch sum := func() { c.sum = crc32.Update(c.sum, castagnoli, p) }; {
	case c.plain:
	case len(p) < besideBytes:
		sum()
	default:
		beside.Go(sum)
	}
	n, err = c.w.Write(p) // with an error the file is given up, so that its checksum does not matter
	beside.Wait()
	c.n += int64(n)
	return n, err
}

// publish gives the finished folder temp its name and moves latest. An older folder of that
// name steps aside first and comes back if that fails.
func (s *Store) publish(temp, final string) error {
	old := filepath.Join(s.dir, oldPrefix+filepath.Base(final))
	err := os.Rename(final, old)
	replaced := err == nil
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	err = os.Rename(temp, final)
	if err == nil {
		if err = os.Rename(filepath.Join(s.dir, nextName), filepath.Join(s.dir, latestName)); err != nil {
			err = errors.Join(err, os.Rename(final, temp))
		}
	}
	if err != nil {
		if replaced {
			err = errors.Join(err, os.Rename(old, final))
		}
		return err
	}
	if err := syncDir(s.dir); err != nil {
		return err
	}
	if replaced {
		return os.RemoveAll(old)
	}
	return nil
}

// SetMetric records the result of an evaluation of the saved step, which
// retention compares; higher is better. A folder of an earlier version gets the value without
// its name. A number that is not finite is not recorded.
func (s *Store) SetMetric(step int, metric Metric) error {
	dir := filepath.Join(s.dir, folderName(step))
	m, err := readManifest(dir)
	if err != nil {
		return err
	}
	m.setMetric(&metric, s.keep.BestBy)
	temp := filepath.Join(dir, tempPrefix+manifestName)
	var text any = m
	if m.read != version { // a folder stays of the version that it is of
		if text, err = withMetric(filepath.Join(dir, manifestName), m.Metric); err != nil {
			return err
		}
	}
	if err := s.writeManifest(temp, text); err != nil {
		os.Remove(temp)
		return fmt.Errorf("checkpoint: record metric of step %d: %w%s", step, err, hint(err))
	}
	if err := os.Rename(temp, filepath.Join(dir, manifestName)); err != nil {
		return fmt.Errorf("checkpoint: record metric of step %d: %w", step, err)
	}
	return syncDir(dir)
}

func finite(v *float64) *float64 {
	if v == nil || math.IsNaN(*v) || math.IsInf(*v, 0) {
		return nil
	}
	return v
}

// syncDir makes renames inside dir durable. File systems that cannot sync a
// folder are taken as they are.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return err
	}
	return nil
}
