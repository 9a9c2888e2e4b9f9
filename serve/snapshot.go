package serve

import (
	"sync"

	"github.com/geoalign/geoalign/gallery"
)

// snapshot is a source in use. Who has acquired it may use it until he releases it.
type snapshot struct {
	*Source
	cross  *gallery.View // for queries of the other side
	own    *gallery.View // for queries of the same side
	thumbs thumbnails

	users   int
	retired bool
}

// newSnapshot looks up the views of a source.
func newSnapshot(s *Source) (*snapshot, error) {
	x := &snapshot{Source: s, thumbs: thumbnails{most: thumbnailBytes}}
	var err error
	if x.own, err = s.Gallery.View(s.Side, s.Side); err != nil {
		return nil, err
	}
	x.cross, err = s.Gallery.View(s.Side, otherSide(s.Side))
	return x, err
}

// view returns the rows as they are compared with queries of a side.
func (x *snapshot) view(from string) *gallery.View {
	if from == x.Side {
		return x.own
	}
	return x.cross
}

// vectors returns the rows as they are compared with vectors. These are of the other side where the
// model compares sides, as features of texts that search images.
func (x *snapshot) vectors() *gallery.View {
	if x.Gallery.Meta.Score == "" {
		return x.own
	}
	return x.cross
}

func otherSide(side string) string {
	if side == gallery.Image {
		return gallery.Text
	}
	return gallery.Image
}

// current is the snapshot that new requests use.
type current struct {
	mu    sync.Mutex
	now   *snapshot
	over  bool // there are no new requests any more
	say   func(format string, args ...any)
	ended sync.WaitGroup // of closes
}

// acquire returns the snapshot; release it after use.
func (c *current) acquire() *snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now.users++
	return c.now
}

// again acquires a snapshot that the caller has, for another user.
func (c *current) again(x *snapshot) {
	c.mu.Lock()
	x.users++
	c.mu.Unlock()
}

func (c *current) release(x *snapshot) {
	c.mu.Lock()
	x.users--
	last := x.retired && x.users == 0
	c.mu.Unlock()
	if last {
		c.close(x)
	}
}

// change makes next the snapshot of new requests; nil: none, from then on. That of before is closed after its
// last use. It is false, and nothing changes, where there are no new requests any more.
func (c *current) change(next *snapshot) bool {
	c.mu.Lock()
	if c.over {
		c.mu.Unlock()
		return false
	}
	old := c.now
	c.now, c.over = next, next == nil
	last := false
	if old != nil {
		c.ended.Add(1)
		old.retired, last = true, old.users == 0
	}
	c.mu.Unlock()
	if last {
		c.close(old)
	}
	return true
}

func (c *current) close(x *snapshot) {
	defer c.ended.Done()
	if err := x.Source.Close(); err != nil {
		c.say("close the gallery of before: %v", err)
	}
}
