package hub

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/internal/files"
)

// Folders of a model in the cache: blobs holds contents by their checksums, snapshots links to them for each commit,
// refs what commit a branch or tag had when it was last asked for, .no_exist the names that a commit is known not to
// have.
const (
	blobs     = "blobs"
	snapshots = "snapshots"
	refs      = "refs"
	absent    = ".no_exist"
)

// maxRef is the largest file of refs, which holds a commit.
const maxRef = 256

// Snapshot is the files of a commit that are in a cache.
type Snapshot struct {
	Dir string // of the files

	none string // of the names that are known not to be there
}

// Has says whether a file is there.
func (s Snapshot) Has(name string) bool {
	st, err := os.Stat(filepath.Join(s.Dir, filepath.FromSlash(name))) // what a link leads to
	return err == nil && st.Mode().IsRegular()
}

// Lacks says whether the commit is known not to have a file.
func (s Snapshot) Lacks(name string) bool {
	_, err := os.Stat(filepath.Join(s.none, filepath.FromSlash(name)))
	return err == nil
}

// commit returns the commit of a revision by the cache, empty where it is not there.
func (c *Client) commit(n Name) string {
	if commitName.MatchString(n.Revision) {
		return n.Revision
	}
	text, err := files.Read(filepath.Join(c.Cache, n.folder(), refs, filepath.FromSlash(n.Revision)), maxRef)
	if hash := strings.TrimSpace(string(text)); err == nil && commitName.MatchString(hash) {
		return hash
	}
	return ""
}

// snapshot is a commit in the cache.
func (c *Client) snapshot(n Name, commit string) Snapshot {
	at := filepath.Join(c.Cache, n.folder())
	return Snapshot{Dir: filepath.Join(at, snapshots, commit), none: filepath.Join(at, absent, commit)}
}

// keepRef notes the commit of a branch or tag.
func (c *Client) keepRef(n Name, commit string) error {
	if commitName.MatchString(n.Revision) || c.commit(n) == commit {
		return nil
	}
	path := filepath.Join(c.Cache, n.folder(), refs, filepath.FromSlash(n.Revision))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return files.Replace(path, []byte(commit))
}

// keepAbsent notes that a commit does not have a file.
func keepAbsent(s Snapshot, name string) error {
	path := filepath.Join(s.none, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, nil, 0o644)
}

// link gives a content in blobs its name in a snapshot. Where a system has no links the file is moved.
func link(s Snapshot, blob, name string) error {
	path := filepath.Join(s.Dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	to, err := filepath.Rel(filepath.Dir(path), blob)
	if err != nil {
		return err
	}
	if now, err := os.Readlink(path); err == nil && now == to {
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err = os.Symlink(to, path)
	if errors.Is(err, fs.ErrExist) { // another process did
		return nil
	}
	if err != nil && errors.Is(err, errors.ErrUnsupported) {
		return os.Rename(blob, path)
	}
	return err
}

// Model is a model in a cache.
type Model struct {
	Repo      string   `json:"repo"`
	Revisions []string `json:"revisions"` // branches and tags; commits without one
	Dir       string   `json:"dir"`       // of the files of the first revision
	Bytes     int64    `json:"bytes"`     // of all contents
	Files     []string `json:"files"`     // of the first revision
}

// Models lists the models in the cache by their names. A cache that is not there has none.
func (c *Client) Models() ([]Model, error) {
	list, err := os.ReadDir(c.Cache)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("hub: %w", err)
	}
	var models []Model
	for _, e := range list {
		name, ok := strings.CutPrefix(e.Name(), "models--")
		if !ok || !e.IsDir() {
			continue
		}
		m, err := c.model(Name{Repo: strings.ReplaceAll(name, "--", "/")})
		if err != nil {
			return nil, fmt.Errorf("hub: %w", err)
		}
		if m.Dir != "" {
			models = append(models, m)
		}
	}
	return models, nil
}

// model looks at the folder of a model, whose Dir stays empty where it has no snapshot.
func (c *Client) model(n Name) (Model, error) {
	m := Model{Repo: n.Repo}
	at := filepath.Join(c.Cache, n.folder())
	named := map[string]bool{}
	walk := func(dir string, do func(name string, e fs.DirEntry) error) error {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			name, err := filepath.Rel(dir, path)
			if err != nil {
				return err
			}
			return do(filepath.ToSlash(name), e)
		})
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	take := func(revision, commit string) {
		dir := filepath.Join(at, snapshots, commit)
		if st, err := os.Stat(dir); err != nil || !st.IsDir() {
			return
		}
		m.Revisions = append(m.Revisions, revision)
		named[commit] = true
		if m.Dir == "" || revision == Main {
			m.Dir = dir
		}
	}
	err := walk(filepath.Join(at, refs), func(name string, _ fs.DirEntry) error {
		if commit := c.commit(Name{Repo: n.Repo, Revision: name}); commit != "" {
			take(name, commit)
		}
		return nil
	})
	if err != nil {
		return m, err
	}
	commits, err := os.ReadDir(filepath.Join(at, snapshots))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return m, err
	}
	for _, e := range commits {
		if !named[e.Name()] {
			take(e.Name(), e.Name())
		}
	}
	if i := slices.Index(m.Revisions, Main); i > 0 {
		m.Revisions = slices.Insert(slices.Delete(m.Revisions, i, i+1), 0, Main)
	}
	err = walk(filepath.Join(at, blobs), func(_ string, e fs.DirEntry) error {
		info, err := e.Info()
		if err == nil {
			m.Bytes += info.Size()
		}
		return err
	})
	if err == nil && m.Dir != "" {
		err = walk(m.Dir, func(name string, _ fs.DirEntry) error {
			m.Files = append(m.Files, name)
			return nil
		})
	}
	return m, err
}
