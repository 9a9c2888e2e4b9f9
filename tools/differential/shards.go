package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/geoalign/geoalign/data"
)

type shardCase struct {
	Name, Settings, Error string

	Plain   bool
	Samples []struct {
		Key, Caption string
		Colour       [3]uint8
	}
}

// compareShards compares the samples of tar shards with those of webdataset: the same ones in the same order, with
// captions and images. A sample that lacks one of the two is a bad sample here and passed over there.
func compareShards(o *options) (*result, error) {
	var cases []shardCase
	if err := o.cases("shards.py", &cases, "webdataset"); err != nil {
		return nil, err
	}
	r, unwritten, bad := new(result), 0, 0
	for _, c := range cases {
		if c.Error != "" {
			unwritten++
			continue
		}
		r.cases++
		n, err := sameShard(filepath.Join(o.dir, c.Name), c)
		if err != nil {
			r.differ("%s %s: %v", c.Name, c.Settings, err)
		}
		bad += n
	}
	r.note("%d more that the format has no room for; %d bad samples, which webdataset passes over", unwritten, bad)
	return r, nil
}

// sameShard compares the samples of a shard, and counts those that are bad.
func sameShard(path string, c shardCase) (bad int, err error) {
	s, err := data.OpenShards(context.Background(), []string{path}, data.ShardsConfig{}, data.Options{})
	if err != nil {
		if len(c.Samples) == 0 && strings.Contains(err.Error(), "has a complete sample") {
			return 0, nil
		}
		return 0, err
	}
	defer s.Close()
	k := 0
	for i := range s.Len() {
		m, err := s.Image(i)
		if err != nil {
			bad++
			continue
		}
		captions := s.Captions(i)
		if k >= len(c.Samples) {
			return bad, fmt.Errorf("more samples than %d: %s", k, s.Name(i))
		}
		want := c.Samples[k]
		if len(captions) != 1 || captions[0] != strings.TrimSpace(want.Caption) {
			return bad, fmt.Errorf("sample %s has the captions %q, want %q of %s", s.Name(i), captions, want.Caption,
				want.Key)
		}
		if [3]uint8(m.Pix[:3]) != want.Colour {
			return bad, fmt.Errorf("sample %s has the colour %v, want %v", s.Name(i), m.Pix[:3], want.Colour)
		}
		k++
	}
	if k != len(c.Samples) {
		return bad, fmt.Errorf("%d samples, want %d", k, len(c.Samples))
	}
	if c.Plain && bad > 0 {
		return bad, fmt.Errorf("%d bad samples of a plain shard", bad)
	}
	return bad, nil
}
