package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/geoalign/geoalign/internal/words"
)

// Wanted names the files of a model that are needed, given those that are there. It is asked again when they are, as an
// index tells what else there is, until it names nothing new. A file that the model does not have is one that
// Snapshot.Lacks. names are all files of the model, nil where the hub was not asked.
type Wanted func(s Snapshot, names []string) ([]string, error)

// Fetch returns the folder with the wanted files of a model by its name, see Parse. What is in the cache needs no
// network: a branch is then the commit that it was when it was fetched, and Update asks again. Where the hub cannot be
// reached, what the cache holds has to do.
func (c *Client) Fetch(ctx context.Context, name string, want Wanted) (string, error) {
	n, err := Parse(name)
	if err != nil {
		return "", err
	}
	f := fetching{Client: c, name: n}
	if commit := c.commit(n); commit != "" {
		f.Snapshot = c.snapshot(n, commit)
		missing, err := f.missing(want, nil)
		if err == nil && len(missing) == 0 {
			return f.Dir, nil
		}
		if c.Offline && err == nil && f.suffices(want) {
			return f.Dir, nil
		}
	}
	if c.Offline {
		return "", fmt.Errorf("hub: %s is not in %s, or not all of it, and HF_HUB_OFFLINE is set: fetch it once without",
			n, c.Cache)
	}
	return f.fetch(ctx, want)
}

// Update has the next Fetch of a branch or tag ask the hub for its newest commit.
func (c *Client) Update(name string) error {
	n, err := Parse(name)
	if err != nil {
		return err
	}
	err = os.Remove(filepath.Join(c.Cache, n.folder(), refs, filepath.FromSlash(n.Revision)))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// fetching is one fetch of a model.
type fetching struct {
	*Client
	Snapshot
	name Name
	hash string // of the commit
}

// missing lists the wanted files of which it is not known whether they are there.
func (f *fetching) missing(want Wanted, names []string) ([]string, error) {
	list, err := want(f.Snapshot, names)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(file string) bool { return f.Has(file) || f.Lacks(file) }), nil
}

// suffices says whether what is there is a model if what is not known is not there: the files that are there name all.
func (f *fetching) suffices(want Wanted) bool {
	list, err := os.ReadDir(f.Dir)
	if err != nil {
		return false
	}
	names := []string{}
	for _, e := range list {
		names = append(names, e.Name())
	}
	_, err = want(f.Snapshot, names)
	return err == nil
}

// listing is what the hub says of a commit.
type listing struct {
	Commit string `json:"sha"`
	Files  []file `json:"siblings"`
}

// file is a file of a commit.
type file struct {
	Name string `json:"rfilename"`
	Size int64  `json:"size"`
	Blob string `json:"blobId"` // SHA-1 of git
	LFS  *struct {
		SHA256 string `json:"sha256"`
		Size   int64  `json:"size"`
	} `json:"lfs"`
}

// maxListing is the largest answer about a model that is read.
const maxListing = 64 << 20

// fetch asks the hub.
func (f *fetching) fetch(ctx context.Context, want Wanted) (string, error) {
	known := f.Snapshot
	list, err := f.list(ctx)
	var away *unreachableError
	if errors.As(err, &away) && known.Dir != "" {
		f.Snapshot = known
		if f.suffices(want) {
			return f.Dir, nil
		}
	}
	if err != nil {
		return "", fmt.Errorf("hub: %s: %w", f.name, err)
	}
	f.Snapshot, f.hash = f.snapshot(f.name, list.Commit), list.Commit
	byName := map[string]file{}
	names := []string{}
	for _, x := range list.Files {
		if filepath.IsLocal(filepath.FromSlash(x.Name)) {
			byName[x.Name] = x
			names = append(names, x.Name)
		}
	}
	for {
		missing, err := f.missing(want, names)
		if err != nil {
			return "", fmt.Errorf("hub: %s: %w", f.name, err)
		}
		if len(missing) == 0 {
			break
		}
		for _, name := range missing {
			x, there := byName[name]
			if there {
				err = f.download(ctx, x)
			} else {
				err = keepAbsent(f.Snapshot, name)
			}
			if err != nil {
				return "", fmt.Errorf("hub: %s: %s: %w", f.name, name, f.explained(err))
			}
		}
	}
	if err := f.keepRef(f.name, list.Commit); err != nil {
		return "", fmt.Errorf("hub: %s: %w", f.name, f.explained(err))
	}
	return f.Dir, nil
}

// list asks for the commit of the revision and its files.
func (f *fetching) list(ctx context.Context) (*listing, error) {
	resp, err := f.get(ctx, f.Endpoint+"/api/models/"+f.name.Repo+"/revision/"+url.PathEscape(f.name.Revision)+
		"?blobs=true", 0)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := readAll(resp.Body, maxListing)
	if err != nil {
		return nil, err
	}
	l := new(listing)
	if err := json.Unmarshal(text, l); err != nil || !commitName.MatchString(l.Commit) {
		return nil, fmt.Errorf("%s does not answer as a hub does (got %s): is HF_ENDPOINT right?", f.Endpoint,
			words.Shown(strings.ToValidUTF8(string(text), "?")))
	}
	return l, nil
}

// explained adds to an error of the cache what to do.
func (f *fetching) explained(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: make room, or set HF_HUB_CACHE to a folder on another disk (now %s)", err, f.Cache)
	case errors.Is(err, os.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w: set HF_HUB_CACHE to a folder that can be written (now %s)", err, f.Cache)
	}
	return err
}
