package data

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/rng"
)

// Roles of an image in re-identification.
type Role uint8

const (
	Either   Role = iota // searches, and is searched
	Query                // searches alone
	Searched             // is searched alone
)

// Seen is implemented by data sets that know how an image came to be there.
type Seen interface {
	// Camera is the number of the camera that took image i, -1 where none is known.
	Camera(i int) int32
	// Role says whether image i searches or is searched.
	Role(i int) Role
}

// identityOf is what image i of a data set shows: its class where the data has classes, else its id.
func identityOf(ds Dataset, i int) int64 {
	if _, ok := labelsOf(ds); ok {
		return int64(labelOf(ds, i))
	}
	return ds.ImageID(i)
}

// Identity is what image i shows: its class where the data has classes, else its id.
func (e *Eval) Identity(i int) int64 { return identityOf(e.ds, e.images[i]) }

// Camera is the number of the camera that took image i, -1 where none is known.
func (e *Eval) Camera(i int) int32 {
	if s, ok := e.ds.(Seen); ok {
		return s.Camera(e.images[i])
	}
	return -1
}

// Role says whether image i searches or is searched.
func (e *Eval) Role(i int) Role {
	if s, ok := e.ds.(Seen); ok {
		return s.Role(e.images[i])
	}
	return Either
}

// IdentityConfig says how samples are drawn by identities.
type IdentityConfig struct {
	Identities int  // of a batch, P
	Images     int  // of each identity in a batch, K; 0: samples are drawn one by one
	LeaveOut   bool // identities with fewer than K images are left out, else their images are drawn again
}

// IdentityCounts are those of a training set that is drawn by identities.
type IdentityCounts struct {
	Identities int // that are drawn from
	Short      int // that have fewer than K images: left out with LeaveOut, else drawn with repetition
}

// identityOrder is the order of P x K batches: P identities with K images each, side by side. An epoch
// visits the identities in a permutation of its own, once each; those that fill no batch at its end wait for another
// epoch. The images of a visit are drawn without repetition, as long as there are others.
type identityOrder struct {
	seed   uint64
	k      int
	visits int        // of an epoch, a multiple of P
	order  *Order     // of identities
	images [][]uint32 // of each identity
}

// newIdentityOrder takes the identity of each of n samples, numbered from 0 to below count; a negative one is none.
func newIdentityOrder(seed uint64, n, count int, identity func(i int) int32, cfg IdentityConfig) (*identityOrder,
	IdentityCounts, error) {
	var c IdentityCounts
	if cfg.Identities < 2 || cfg.Images < 1 {
		return nil, c, fmt.Errorf("data: batches of %d identities with %d images each: want at least 2 with at least 1",
			cfg.Identities, cfg.Images)
	}
	all := make([][]uint32, count)
	for i := range n {
		if id := identity(i); id >= 0 {
			all[id] = append(all[id], uint32(i))
		}
	}
	o := &identityOrder{seed: seed, k: cfg.Images}
	for _, images := range all {
		short := len(images) > 0 && len(images) < cfg.Images
		if short {
			c.Short++
		}
		if len(images) > 0 && !(short && cfg.LeaveOut) {
			o.images = append(o.images, images)
		}
	}
	c.Identities = len(o.images)
	if o.visits = c.Identities / cfg.Identities * cfg.Identities; o.visits == 0 {
		return nil, c, fmt.Errorf(
			"data: %d identities fill no batch of %d with %d images each (%d have fewer images): lower "+
				"train.batch_size, or data.identities.images", c.Identities, cfg.Identities, cfg.Images, c.Short)
	}
	o.order = NewOrder(seed, c.Identities)
	return o, c, nil
}

// samples of an epoch.
func (o *identityOrder) samples() int { return o.visits * o.k }

// At implements ordering.
func (o *identityOrder) At(c uint64) int {
	visit, place := c/uint64(o.k), int(c%uint64(o.k))
	epoch, v := visit/uint64(o.visits), visit%uint64(o.visits)
	images := o.images[o.order.epoch(epoch)[v]]
	g := rng.New(o.seed, rng.Identities, visit)
	for ; place >= len(images); place -= len(images) {
		g.Perm(len(images))
	}
	return int(images[g.Perm(len(images))[place]])
}

// IdentityStream is implemented by training streams that can be drawn by identities, whose numbers are then
// the column batch.IDs.
type IdentityStream interface {
	// NumIdentities is the number of identities of the data, and so above the largest number.
	NumIdentities() int
	// IdentityCounts are those of the order.
	IdentityCounts() IdentityCounts
}

var (
	_ IdentityStream = (*Train)(nil)
	_ IdentityStream = (*SceneStream)(nil)
)

// NumIdentities is the number of ids of the data set.
func (t *Train) NumIdentities() int { return t.dense.count(t.ds.Len()) }

// IdentityCounts implements IdentityStream.
func (t *Train) IdentityCounts() IdentityCounts { return t.identities }

// NumIdentities is the number of classes of the world.
func (s *SceneStream) NumIdentities() int { return len(s.world.Classes()) }

// IdentityCounts implements IdentityStream.
func (s *SceneStream) IdentityCounts() IdentityCounts { return s.identities }

// denseIDs numbers the ids of a data set 0, 1, 2 ... in its order. It is nil where the ids are these
// numbers already.
type denseIDs map[int64]int32

func newDenseIDs(ds Dataset) (d denseIDs) {
	for i := range ds.Len() {
		id := ds.ImageID(i)
		if d == nil && id == int64(i) {
			continue
		}
		if d == nil {
			d = make(denseIDs, ds.Len())
			for j := range i {
				d[int64(j)] = int32(j)
			}
		}
		if _, known := d[id]; !known {
			d[id] = int32(len(d))
		}
	}
	return d
}

// of is the number of an id.
func (d denseIDs) of(id int64) int32 {
	if d == nil {
		return int32(id)
	}
	return d[id]
}

// count is the number of ids of n images.
func (d denseIDs) count(n int) int {
	if d == nil {
		return n
	}
	return len(d)
}

// HashID is the value of the column batch.IDs for an id of a source that has no end or
// no dense numbers: the id itself where it fits, else 31 bits of its hash (a row then
// agrees by chance with one of 65,536 queue entries once in 30,000 times).
func HashID(id int64) int32 {
	if id >= 0 && id < 1<<31 {
		return int32(id)
	}
	// Finaliser of SplitMix64 (Steele, Lea and Flood 2014).
	x := uint64(id)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return int32((x ^ x>>31) >> 33)
}

// Identified are images in files whose ids are identities, with the cameras and the roles of a collection.
type Identified struct {
	*Files
	cameras []int32
	roles   []Role
}

var (
	_ Cached = (*Identified)(nil)
	_ Seen   = (*Identified)(nil)
)

// NewIdentified returns the data set of items, each with a camera (-1: unknown) and a role.
func NewIdentified(items []File, cameras []int32, roles []Role, opt Options) *Identified {
	return &Identified{Files: NewFiles(items, opt), cameras: cameras, roles: roles}
}

// Camera implements Seen.
func (f *Identified) Camera(i int) int32 { return f.cameras[i] }

// Role implements Seen.
func (f *Identified) Role(i int) Role { return f.roles[i] }
