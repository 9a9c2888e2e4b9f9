package data

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/data/transform"
)

// ShardsConfig says how shards are read.
type ShardsConfig struct {
	JSONKey  string       // of the .json member that holds the captions; empty: the caption is the .txt member
	Shuffle  int          // samples that are mixed with each other in training, see Parted
	IndexDir string       // folder that keeps an index of each shard; empty: none does
	Warn     func(string) // told what is wrong with the folder; nil: nobody
}

// indexWorkers is the number of shards that are indexed at a time.
const indexWorkers = 8

// Shards is a Dataset of samples in tar files. Nothing of them is in memory but the index, some 150 bytes
// and the captions of each sample. A sample that is incomplete or cannot be read has no captions and an
// image that is an error.
type Shards struct {
	cfg    ShardsConfig
	shards []*shard
	fileRows
}

var (
	_ Cached = (*Shards)(nil)
	_ Parted = (*Shards)(nil)
)

// OpenShards opens shards, in their order. It fails where a file is missing or no plain tar file, and
// where no sample is complete, and early with the error of ctx.
func OpenShards(ctx context.Context, paths []string, cfg ShardsConfig, opt Options) (*Shards, error) {
	if len(paths) == 0 {
		return nil, errors.New("data: no shard given: set data.webdataset.train_files, val_files or test_files")
	}
	opt = opt.Counting()
	s := &Shards{cfg: cfg, shards: make([]*shard, len(paths)), fileRows: newFileRows(paths, shardCaptions, opt)}
	var warned sync.Once // the others are no better
	err := eachTold(ctx, len(paths), indexWorkers, opt.Progress, func(i int) (err error) {
		s.shards[i], s.files.files[i], err = openShard(paths[i], cfg.JSONKey, opt.Clean, cfg.IndexDir, func(err error) {
			if cfg.Warn != nil {
				warned.Do(func() { cfg.Warn(err.Error()) })
			}
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return s, s.count()
}

// count numbers the samples.
func (s *Shards) count() error {
	whole := 0
	var faults, other []string
	for k, x := range s.shards {
		from := s.Len()
		s.add(&x.Texts, x.Empty)
		for i := from; i < s.Len(); i++ {
			if fault := s.text(i, shardFault); fault == "" {
				whole++
				countImage(s.account, s.NumCaptions(i), s.Name(i))
			} else {
				place := s.Name(i) + ": " + fault
				s.account.LeftOut(ImageUnit, 1, "an incomplete or damaged sample", place)
				if len(faults) < 3 {
					faults = append(faults, place)
				}
			}
		}
		s.account.LeftOut(CaptionUnit, x.Empty, emptyCaption, s.files.paths[k])
		s.account.Used(shardUnit, 1)
		if x.Other != "" {
			s.account.Changed(shardUnit, 1, "members that are not read", s.files.paths[k]+": "+x.Other)
		}
		if x.Other != "" && other == nil {
			other = []string{"members in " + s.files.paths[k] + " end in " + x.Other}
		}
	}
	if whole == 0 {
		what := "a .txt member, or data.webdataset.json_key for captions in .json members"
		if s.cfg.JSONKey != "" {
			what = "a .json member"
		}
		if faults = append(faults, other...); faults == nil {
			faults = []string{s.files.paths[0] + " has no members"}
		}
		return fmt.Errorf("data: none of the %d shards has a complete sample: want an image (.jpg, .png, .webp or "+
			"another format that is read) and %s\n  %s", len(s.shards), what, strings.Join(faults, "\n  "))
	}
	return nil
}

// shardUnit is what an account of shards counts beside images and captions.
const shardUnit = "shard"

// Name is the path of the shard of sample i and the name of its image in it.
func (s *Shards) Name(i int) string { return s.container(i) + ": " + s.text(i, shardName) }

// entry names sample i without its shard, with the size of its image.
func (s *Shards) entry(i int) Entry {
	file, in := s.at(i)
	rest := append(s.Captions(i), strconv.FormatInt(s.shards[file].Sizes[in], 10))
	return Entry{Name: s.text(i, shardName), Rest: rest, Files: []string{s.container(i)}, Shared: true}
}

// Fault is why sample i cannot be used, nil if it can.
func (s *Shards) Fault(i int) error {
	if fault := s.text(i, shardFault); fault != "" {
		return fmt.Errorf("data: %s: %s", s.Name(i), fault)
	}
	return nil
}

// Parts are the shards.
func (s *Shards) Parts() ([]int, int) { return s.first[:len(s.shards)], s.cfg.Shuffle }

// Image reads and decodes the image of sample i, or takes it from the cache.
func (s *Shards) Image(i int) (*transform.Image, error) { return s.imageTimed(i, nil) }

func (s *Shards) place(i int) (path, part string) {
	file, in := s.at(i)
	return s.container(i), strconv.FormatInt(s.shards[file].Offsets[in], 10)
}

func (s *Shards) imageTimed(i int, w *images.Stopwatch) (*transform.Image, error) {
	if err := s.Fault(i); err != nil {
		return nil, err
	}
	file, in := s.at(i)
	path, part := s.place(i)
	return s.cache.part(path, part, s.maxPixels, w, func() (*transform.Image, error) {
		var b []byte
		var err error
		if size := s.shards[file].Sizes[in]; size > images.MaxBytes(s.maxPixels) {
			err = fmt.Errorf("it has %d bytes, more than an image of data.max_pixels: %w", size, images.ErrTooLarge)
		} else {
			b = make([]byte, size)
			_, err = s.files.readAt(file, b, s.shards[file].Offsets[in])
		}
		return s.decoded(s.Name(i), b, err, w)
	})
}

// Close closes the files. The data set opens them again when it is used.
func (s *Shards) Close() error {
	s.files.close()
	return nil
}
