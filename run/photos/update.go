package photos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/geoalign/geoalign/data/account"
	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/gallery"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/console"
	"github.com/geoalign/geoalign/run/convert"
	"github.com/geoalign/geoalign/run/embed"
	"github.com/geoalign/geoalign/train"
)

// Options say how a gallery is kept.
type Options struct {
	Dir   string // of the gallery; empty: Place
	Model string // run or step folder, or stored weights; empty: that of the gallery, or that of Default
	// Default names the model of a gallery that is begun without one; nil: that is an error.
	Default func() (string, error)
	Open    run.OpenOptions // of the model; messages go to its Log
	// Progress is told how much of a phase is done; may be nil.
	Progress func(phase string, done, total int)
	// Flush is how long pictures are encoded before they are on the disk; 0: 10 seconds.
	Flush time.Duration
}

// Result is what an update found and did.
type Result struct {
	Folder  string `json:"folder"`
	Gallery string `json:"gallery"`
	Model   string `json:"model"`
	Images  int    `json:"images"`  // of the gallery
	Encoded int    `json:"encoded"` // now
	Moved   int    `json:"moved"`   // known under another name
	Touched int    `json:"touched"` // known by their bytes under the same name
	Removed int    `json:"removed"` // that the folder has no more

	Seconds float64          `json:"seconds"` // of encoding
	Account *account.Account `json:"inputs"`  // what became of the files
}

// Updated is a gallery as its folder is now, with its model. Close it after use.
type Updated struct {
	Result
	names   []string // of the rows
	model   *run.Trained
	gallery *gallery.Gallery
	queries *embed.Queries
}

// Close gives files, memory and threads back.
func (u *Updated) Close() error {
	var errs []error
	if u.gallery != nil {
		errs = append(errs, u.gallery.Close())
	}
	if u.model != nil {
		errs = append(errs, u.model.Close())
	}
	return errors.Join(errs...)
}

// Update makes the gallery of a folder of pictures what the folder is. Pictures are known again by path, size and times,
// else by their bytes, so one that was moved or touched is not encoded again. What is interrupted or killed goes on with
// the next call. An error that wraps train.ErrInterrupted says that ctx ended and what was encoded is kept.
func Update(ctx context.Context, folder string, o Options) (u *Updated, err error) {
	root, err := realPath(folder)
	if err != nil {
		return nil, err
	}
	if o.Dir == "" {
		if o.Dir, err = Place(folder); err != nil {
			return nil, err
		}
	}
	if o.Flush == 0 {
		o.Flush = 10 * time.Second
	}
	u = &Updated{Result: Result{Folder: root, Gallery: o.Dir}}
	defer func() {
		if err != nil {
			err = errors.Join(err, u.Close())
			u = nil
		}
	}()
	k := keeper{u: u, o: o, root: root, say: console.Lines(o.Open.Log).Say}
	if err := k.open(ctx); err != nil {
		return u, err
	}
	switch p, err := k.look(ctx); {
	case err != nil && !errors.Is(err, fs.ErrNotExist): // else another command may be at work
		return u, err
	case err == nil && p.nothing():
		u.names = p.names()
		k.tell(p)
		return u, nil
	}
	return u, k.update(ctx)
}

// keeper is an update.
type keeper struct {
	u    *Updated
	o    Options
	root string
	say  func(format string, args ...any)
	enc  *embed.Encoder // nil: nothing is encoded
}

// manifest reads what is there, an empty one where that is nothing.
func (k *keeper) manifest() (gallery.Manifest, error) {
	m, err := gallery.ReadManifest(k.o.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return gallery.Manifest{}, nil
	case err != nil:
		return gallery.Manifest{}, fmt.Errorf("%w, or name another folder with --gallery", err)
	case m.Side != gallery.Image || m.ShardRows != shardRows:
		return *m, console.Argument("%s holds a gallery of embed: choose another folder with --gallery", k.o.Dir)
	case m.From != k.root:
		return *m, console.Argument("%s holds the gallery of another folder, %s: choose another one with --gallery",
			k.o.Dir, m.From)
	}
	return *m, nil
}

// open opens the model, which reads no parameters.
func (k *keeper) open(ctx context.Context) error {
	m, err := k.manifest()
	if err != nil {
		return err
	}
	path := k.o.Model
	switch {
	case path != "":
	case m.Model != "":
		if path = m.Model; !isThere(path) {
			return fmt.Errorf("the gallery of %s was made with %s, which is not there: name a model with --model",
				k.root, path)
		}
	case k.o.Default == nil:
		return console.Argument("name a model with --model")
	default:
		if path, err = k.o.Default(); err != nil {
			return err
		}
	}
	if k.u.model, err = convert.Open(path, k.o.Open); err != nil {
		return err
	}
	if k.u.Model, err = filepath.Abs(k.u.model.Path()); err != nil {
		return err
	}
	return ctx.Err()
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// other says why the rows of a gallery are not those of the model; empty: they are.
func (k *keeper) other(m gallery.Manifest) string {
	t := k.u.model
	path, err := filepath.Abs(t.Path())
	switch {
	case err != nil || m.Model == "":
		return ""
	case m.Weights != "" && m.Weights == t.Weights() && m.EvalScore == t.Config.Eval.Score:
		return "" // wherever it lies now
	case m.Model != path:
		return fmt.Sprintf("the gallery was made with %s: all pictures are encoded anew with %s", m.Model, path)
	case m.Weights != t.Weights() || m.Step != t.Step():
		return fmt.Sprintf("%s is another model than when the gallery was made: all pictures are encoded anew", path)
	case m.EvalScore != t.Config.Eval.Score:
		return fmt.Sprintf("the gallery was made for the score %q: all pictures are encoded anew for %q", m.EvalScore,
			t.Config.Eval.Score)
	}
	return ""
}

// look compares folder and gallery. Rows of another model, and damaged ones, do not count.
func (k *keeper) look(ctx context.Context) (*plan, error) {
	m, err := k.manifest()
	if err != nil {
		return nil, err
	}
	if why := k.other(m); why != "" {
		k.say("note: %s", why)
		m = gallery.Manifest{}
	}
	if m.Model != "" && m.Model != k.u.Model { // it was moved
		m.Model, m.Step, m.Complete = k.u.Model, k.u.model.Step(), false
	}
	m.Shards = slices.DeleteFunc(m.Shards, func(s gallery.Shard) bool {
		err := whole(ctx, k.o.Dir, s)
		if err != nil && ctx.Err() == nil {
			k.say("note: %v; its pictures are encoded anew", err)
			m.Complete = false
		}
		return err != nil
	})
	p, err := look(ctx, k.root, k.o.Dir, m, k.u.model.Config.Data.MaxPixels, k.o.Progress)
	if err != nil {
		return nil, err
	}
	if p.images == 0 {
		if m.Rows > 0 {
			return nil, fmt.Errorf("%s has no pictures now (%s), and its gallery has %s: it stays as it is; remove %s if they are gone for good", k.root, p.met, words.Count(m.Rows, "row"), k.o.Dir)
		}
		found := ""
		if !p.met.Whole() {
			found = ": " + p.met.String()
		}
		return nil, fmt.Errorf("%s has no pictures (%s)%s", k.root, images.FormatsRead, found)
	}
	return p, nil
}

// tell says in the result what a plan is.
func (k *keeper) tell(p *plan) {
	r := &k.u.Result
	r.Images, r.Moved, r.Touched, r.Removed, r.Account = p.images, p.moved, p.touched, p.removed, p.met
}

// update does what look finds, while no other process does.
func (k *keeper) update(ctx context.Context) (err error) {
	if err := os.MkdirAll(k.o.Dir, 0o777); err != nil {
		return fmt.Errorf("the gallery cannot be kept: %w: name another folder with --gallery", err)
	}
	lock, err := files.Lock(k.o.Dir, k.say)
	var held *files.HeldError
	switch {
	case errors.As(err, &held):
		return fmt.Errorf("the pictures of %s are being encoded by another command: %w: wait for it, or stop it", k.root,
			err)
	case err != nil:
		return fmt.Errorf("the gallery cannot be kept: %w: name another folder with --gallery", err)
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	said := k.say
	k.say = func(string, ...any) {} // what the first look has said
	p, err := k.look(ctx)
	k.say = said
	if err != nil {
		return err
	}
	w, err := newWriter(k, p, lock.Lost)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	err = w.run(ctx)
	k.tell(p)
	k.u.names = w.names()
	k.u.Images = len(k.u.names)
	if err == nil && k.u.Images == 0 {
		err = fmt.Errorf("none of the pictures of %s can be read: %s", k.root, p.met)
	}
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w: %w", train.ErrInterrupted, err)
	}
	return err
}

// writeUnreadable notes what cannot be read. That it cannot be noted costs another try.
func writeUnreadable(dir string, list []unreadable) {
	if b, err := json.MarshalIndent(list, "", "  "); err == nil && (len(list) > 0 || isThere(filepath.Join(dir, unreadableFile))) {
		_ = files.Replace(filepath.Join(dir, unreadableFile), b)
	}
}
