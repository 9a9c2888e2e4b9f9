package data

import (
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data/scenes"
	"github.com/geoalign/geoalign/data/transform"
)

// TestIdentityOrder: every batch has P identities with K images each, no identity comes twice in an epoch, no image twice
// in a visit where there are others, and each position is a function of itself.
func TestIdentityOrder(t *testing.T) {
	const p, k = 3, 4
	sizes := []int{9, 4, 1, 5, 3, 7, 4, 12}
	var ids []int32
	for i := range 12 {
		for id, n := range sizes {
			if i < n {
				ids = append(ids, int32(id))
			}
		}
	}
	ids = append(ids, UnknownLabel)
	for _, leaveOut := range []bool{false, true} {
		of := func(i int) int32 { return ids[i] }
		o, c, err := newIdentityOrder(7, len(ids), len(sizes), of, IdentityConfig{Identities: p, Images: k, LeaveOut: leaveOut})
		if err != nil {
			t.Fatal(err)
		}
		want := IdentityCounts{Identities: 8, Short: 2}
		if leaveOut {
			want.Identities = 6
		}
		if c != want || o.samples() != 2*p*k {
			t.Errorf("counts %+v and %d samples an epoch, want %+v and %d", c, o.samples(), want, 2*p*k)
		}
		visited := map[int32]bool{}
		for epoch := range 30 {
			seen := map[int32]bool{}
			for visit := range 2 * p {
				images := map[int]int{}
				var id int32
				for i := range k {
					x := o.At(uint64((epoch*2*p+visit)*k + i))
					if images[x]++; i > 0 && ids[x] != id {
						t.Fatalf("visit %d has images of the identities %d and %d", visit, id, ids[x])
					}
					id = ids[x]
				}
				for x, n := range images {
					if most := (k + sizes[id] - 1) / sizes[id]; n > most {
						t.Errorf("image %d of an identity of %d comes %d times in a visit", x, sizes[id], n)
					}
				}
				if seen[id] || leaveOut && sizes[id] < k {
					t.Errorf("identity %d with %d images is visited twice in an epoch, or at all", id, sizes[id])
				}
				seen[id], visited[id] = true, true
			}
		}
		if len(visited) != want.Identities {
			t.Errorf("%d identities were visited in 30 epochs, want %d", len(visited), want.Identities)
		}
		again, _, _ := newIdentityOrder(7, len(ids), len(sizes), of, IdentityConfig{Identities: p, Images: k, LeaveOut: leaveOut})
		for c := range 500 { // from the end: no state is carried on
			if c := uint64(499 - c); again.At(c) != o.At(c) {
				t.Fatalf("position %d depends on what was asked before", c)
			}
		}
	}
	_, _, err := newIdentityOrder(7, 3, 3, func(i int) int32 { return int32(i) }, IdentityConfig{Identities: 2, Images: 2, LeaveOut: true})
	if err == nil || !strings.Contains(err.Error(), "0 identities fill no batch of 2 with 2 images each (3 have fewer images)") {
		t.Errorf("got error %v", err)
	}
	_, _, err = newIdentityOrder(7, 3, 3, func(i int) int32 { return int32(i) }, IdentityConfig{Identities: 1, Images: 2})
	if err == nil || !strings.Contains(err.Error(), "want at least 2") {
		t.Errorf("got error %v", err)
	}
}

// TestIdentityLoader: batches by identities are the same for any number of workers, and after a resumption.
func TestIdentityLoader(t *testing.T) {
	w, err := scenes.New(scenes.Config{MinObjects: 1, MaxObjects: 1, Size: 16, ValSamples: 4, TestSamples: 4}, 3)
	if err != nil {
		t.Fatal(err)
	}
	batches := func(workers int, from uint64, n int) (out [][]float32) {
		s, err := NewSceneStream(w, 700, TrainConfig{Seed: 5, Transform: transform.Train{Size: 16, ScaleMin: .5}, Identities: IdentityConfig{Identities: 4, Images: 3}})
		if err != nil {
			t.Fatal(err)
		}
		l, err := NewLoader(s, LoaderConfig{BatchSize: 12, Columns: []Column{{Name: batch.IDs, Type: batch.Int32}, {Name: batch.Images, Shape: []int{3, 16, 16}}}, Workers: workers, DropLast: true})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		l.Start(from)
		for range n {
			b := nextOf(t, l)
			ids := b.Ints(batch.IDs)
			for i := range ids {
				if ids[i] != ids[i/3*3] || i%3 == 0 && slices.Contains(ids[:i], ids[i]) {
					t.Fatalf("identities of a batch are %v", ids)
				}
			}
			out = append(out, slices.Clone(b.Floats(batch.Images)))
			l.Recycle(b)
		}
		return out
	}
	one, four, rest := batches(1, 0, 30), batches(4, 0, 30), batches(2, 12*20, 10)
	for i := range one {
		if !slices.Equal(one[i], four[i]) || i >= 20 && !slices.Equal(one[i], rest[i-20]) {
			t.Fatalf("batch %d differs with four workers, or after a resumption", i)
		}
	}
}

// TestTrainIdentities: the ids of a data set are its identities.
func TestTrainIdentities(t *testing.T) {
	m := &Memory{}
	for i := range 10 {
		m.Images, m.Texts, m.IDs = append(m.Images, transform.NewImage(4, 4)), append(m.Texts, []string{"a picture"}), append(m.IDs, int64(100+i%3))
	}
	s := trainOf(t, m, TrainConfig{Transform: transform.Train{Size: 4, ScaleMin: 1}, Identities: IdentityConfig{Identities: 2, Images: 4}})
	if s.NumIdentities() != 3 || s.IdentityCounts() != (IdentityCounts{Identities: 3, Short: 2}) || s.EpochSamples() != 8 {
		t.Errorf("%d identities, %+v, %d samples", s.NumIdentities(), s.IdentityCounts(), s.EpochSamples())
	}
}
