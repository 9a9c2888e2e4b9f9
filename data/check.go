package data

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/words"
)

// Kinds of findings, from grave to harmless.
const (
	MissingImage = "missing image" // the file does not exist
	BadImage     = "bad image"     // it cannot be decoded
	LargeImage   = "large image"   // more pixels than allowed
	NoCaption    = "no caption"    // nothing is left of the image's captions
	// a row of stored features that is not finite, or of sentences that cannot be read
	BadRow           = "bad row"
	Leak             = "leak"              // an image, or a text without one, of this split is in another one too
	ZeroRow          = "zero row"          // a row of stored features without direction
	EmptyCaption     = "empty caption"     // dropped on loading
	LongCaption      = "long caption"      // more words or tokens than are kept
	UnmatchedQuery   = "unmatched query"   // no image of its identity by another camera is in the gallery
	DuplicateImage   = "duplicate image"   // equal pixels under another name
	DuplicateCaption = "duplicate caption" // the same text at images of different ids
	RepeatedCaption  = "repeated caption"  // the same text twice at one image
)

// kinds in the order of a report.
var kinds = []string{MissingImage, BadImage, LargeImage, NoCaption, BadRow, Leak, ZeroRow, EmptyCaption, LongCaption,
	UnmatchedQuery, DuplicateImage, DuplicateCaption, RepeatedCaption}

// Finding is one kind of trouble in a data set.
type Finding struct {
	Kind     string   `json:"kind"`
	Count    int      `json:"count"`
	Hint     string   `json:"hint"`
	Examples []string `json:"examples"` // at most CheckConfig.Examples
}

// Grave reports whether samples are lost or an evaluation is worth nothing.
func (f Finding) Grave() bool {
	switch f.Kind {
	case MissingImage, BadImage, LargeImage, NoCaption, BadRow, Leak:
		return true
	}
	return false
}

// NewFinding returns a finding of a kind, with what to do about it.
func NewFinding(kind string) Finding { return Finding{Kind: kind, Hint: hints[kind]} }

// CheckConfig says what to check.
type CheckConfig struct {
	Tokenizer Tokenizer          // nil: captions are not measured in tokens
	MaxWords  int                // words kept of a caption; 0: all
	Clean     string             // rule by which captions are cleaned, see Clean
	Tokens    int                // tokens kept of a caption; 0: all
	Images    bool               // decode every image
	Others    map[string]Dataset // other splits by name, searched for images of this one
	Workers   int                // goroutines that decode; 0: 1
	Examples  int                // examples kept of each kind; 0: 5
	Progress  func(done, of int) // called after each decoded image, from one goroutine at a time; may be nil
	Bad       func(i int)        // called for each image that cannot be used, with its number; may be nil
}

// counts says whether words beyond MaxWords are cut.
func (c CheckConfig) counts() bool { return c.MaxWords > 0 && (c.Clean == "" || c.Clean == CleanALBEF) }

// hints say what to do about a finding.
var hints = map[string]string{
	MissingImage:     "correct the path or data.root, or remove the entry",
	BadImage:         "fetch the file again or remove the entry",
	LargeImage:       "shrink the file or raise data.max_pixels; no side is read that is longer than 65535",
	NoCaption:        "write a caption or remove the entry",
	BadRow:           "compute the features again, or remove the pair from both files",
	ZeroRow:          "see whether the encoder gave nothing for it: scores with it mean nothing",
	Leak:             "remove it from one split: its scores would be too good",
	EmptyCaption:     "nothing to do: dropped when the data is loaded",
	LongCaption:      "raise data.max_words or data.tokens, or accept that the end is cut",
	UnmatchedQuery:   "nothing to do: an evaluation by identities leaves it out",
	DuplicateImage:   "give both the same image_id, or remove one: each counts as a wrong answer for the other",
	DuplicateCaption: "harmless in training; in an evaluation the text cannot tell its images apart",
	RepeatedCaption:  "remove the repetition",
}

// BadTextHint says what to do about rows of a file of texts that cannot be read.
const BadTextHint = "copy the file again, or accept that these rows are left out"

// Check looks through a data set and returns what it found, grave things first;
// nothing for a clean one. It fails only when ctx ends.
func Check(ctx context.Context, ds Dataset, cfg CheckConfig) ([]Finding, error) {
	if cfg.Examples <= 0 {
		cfg.Examples = 5
	}
	c := &checker{cfg: cfg, found: map[string]*Finding{}}
	c.captions(ds)
	if hasImages(ds) {
		c.paths(ds)
	} else {
		c.texts(ds)
	}
	c.identities(ds)
	if cfg.Images && hasImages(ds) {
		if err := c.images(ctx, ds); err != nil {
			return nil, err
		}
	}
	var out []Finding
	for _, k := range kinds {
		if f := c.found[k]; f != nil {
			out = append(out, *f)
		}
	}
	return out, nil
}

type checker struct {
	cfg   CheckConfig
	found map[string]*Finding
}

// longestExample is how many bytes of an example are kept, whose captions and names may have any number.
const longestExample = 500

func (c *checker) add(kind string, n int, example string) {
	f := c.found[kind]
	if f == nil {
		n := NewFinding(kind)
		f = &n
		c.found[kind] = f
	}
	f.Count += n
	if example != "" && len(f.Examples) < c.cfg.Examples {
		f.Examples = append(f.Examples, words.Cut(example, longestExample))
	}
}

func (c *checker) captions(ds Dataset) {
	if f, ok := ds.(interface{ EmptyCaptions() int }); ok && f.EmptyCaptions() > 0 {
		c.add(EmptyCaption, f.EmptyCaptions(), "")
	}
	if f, ok := ds.(interface{ BadRows() (n int, first error) }); ok {
		if n, first := f.BadRows(); n > 0 {
			c.add(BadRow, n, first.Error())
			c.found[BadRow].Hint = BadTextHint
		}
	}
	first := map[string]int{}
	for i := range ds.Len() {
		name := ds.Name(i)
		good := 0
		for j, raw := range ds.Captions(i) {
			s := Clean(c.cfg.Clean, raw, 0)
			if s == "" {
				c.add(EmptyCaption, 1, fmt.Sprintf("%s: caption %d", name, j))
				continue
			}
			good++
			if n := len(strings.Fields(s)); c.cfg.counts() && n > c.cfg.MaxWords {
				c.add(LongCaption, 1, fmt.Sprintf("%s: caption %d has %d words", name, j, n))
			} else if c.cfg.Tokenizer != nil && c.cfg.Tokens > 0 {
				if n := len(c.cfg.Tokenizer.Encode(s, 0)); n > c.cfg.Tokens {
					c.add(LongCaption, 1, fmt.Sprintf("%s: caption %d has %d tokens", name, j, n))
				}
			}
			switch at, seen := first[s]; {
			case !seen:
				first[s] = i
			case at == i:
				c.add(RepeatedCaption, 1, fmt.Sprintf("%s: %q", name, s))
			case ds.ImageID(at) != ds.ImageID(i): // of one id, each is a right answer for the other
				c.add(DuplicateCaption, 1, fmt.Sprintf("%s and %s: %q", ds.Name(at), name, s))
			}
		}
		if good == 0 {
			c.add(NoCaption, 1, name)
		}
	}
}

// paths finds images that other splits list under the same name.
func (c *checker) paths(ds Dataset) {
	for _, split := range sortedKeys(c.cfg.Others) {
		other := c.cfg.Others[split]
		names := make(map[string]struct{}, other.Len())
		for i := range other.Len() {
			names[other.Name(i)] = struct{}{}
		}
		for i := range ds.Len() {
			if _, ok := names[ds.Name(i)]; ok {
				c.add(Leak, 1, fmt.Sprintf("%s is in %s too", ds.Name(i), split))
			}
		}
	}
}

// texts finds texts without images that other splits have too.
func (c *checker) texts(ds Dataset) {
	for _, split := range sortedKeys(c.cfg.Others) {
		other := c.cfg.Others[split]
		theirs := make(map[string]int, other.Len())
		for i := range other.Len() {
			theirs[Clean(c.cfg.Clean, other.Captions(i)[0], 0)] = i
		}
		for i := range ds.Len() {
			s := Clean(c.cfg.Clean, ds.Captions(i)[0], 0)
			if j, both := theirs[s]; both {
				c.add(Leak, 1, fmt.Sprintf("%s equals %s of %s: %.80q", ds.Name(i), other.Name(j), split, s))
			}
		}
	}
}

// digest identifies the pixels of an image.
type digest [sha256.Size]byte

// images decodes everything: what fails, what is there twice, what is in another
// split under another name.
func (c *checker) images(ctx context.Context, ds Dataset) error {
	splits := sortedKeys(c.cfg.Others)
	total := ds.Len()
	for _, s := range splits {
		total += c.cfg.Others[s].Len()
	}
	done := 0
	sums, errs, err := c.digests(ctx, ds, &done, total)
	if err != nil {
		return err
	}
	first := map[digest]int{}
	for i, err := range errs {
		if err != nil && c.cfg.Bad != nil {
			c.cfg.Bad(i)
		}
		switch {
		case files.Exhausted(err):
			return exhausted(err)
		case errors.Is(err, fs.ErrNotExist):
			c.add(MissingImage, 1, ds.Name(i))
		case errors.Is(err, images.ErrTooLarge):
			c.add(LargeImage, 1, err.Error())
		case err != nil:
			c.add(BadImage, 1, err.Error())
		default:
			if at, seen := first[sums[i]]; !seen {
				first[sums[i]] = i
			} else if ds.ImageID(at) != ds.ImageID(i) {
				c.add(DuplicateImage, 1, fmt.Sprintf("%s and %s", ds.Name(at), ds.Name(i)))
			}
		}
	}
	for _, s := range splits {
		other := c.cfg.Others[s]
		theirs, errs, err := c.digests(ctx, other, &done, total)
		if err != nil {
			return err
		}
		for j, sum := range theirs {
			if files.Exhausted(errs[j]) {
				return exhausted(errs[j])
			}
			if errs[j] != nil {
				continue // a finding of the check of that split
			}
			// Equal names are counted already.
			if i, ok := first[sum]; ok && ds.Name(i) != other.Name(j) {
				c.add(Leak, 1, fmt.Sprintf("%s equals %s of %s", ds.Name(i), other.Name(j), s))
			}
		}
	}
	return nil
}

// digests decodes every image of ds.
func (c *checker) digests(ctx context.Context, ds Dataset, done *int, total int) ([]digest, []error, error) {
	sums, errs := make([]digest, ds.Len()), make([]error, ds.Len())
	before := *done
	*done += ds.Len()
	var tell func(n, _ int)
	if c.cfg.Progress != nil {
		tell = func(n, _ int) { c.cfg.Progress(before+n, total) }
	}
	return sums, errs, eachTold(ctx, ds.Len(), c.cfg.Workers, tell, func(i int) error {
		sums[i], errs[i] = imageDigest(ds, i)
		return nil
	})
}

// imageDigest is of the pixels of an image, or of its columns where it has no pixels.
func imageDigest(ds Dataset, i int) (digest, error) {
	if c, ok := ds.(Columned); ok && !c.Pixels() {
		return columnsDigest(c, i)
	}
	m, err := ds.Image(i)
	if err != nil {
		return digest{}, err
	}
	h := sha256.New()
	h.Write(binary.LittleEndian.AppendUint64(nil, uint64(m.W)<<32|uint64(m.H)))
	h.Write(m.Pix)
	return digest(h.Sum(nil)), nil
}

// columnsDigest is of the columns of an image.
func columnsDigest(ds Columned, i int) (digest, error) {
	b := batch.New(1, ds.ImageColumns()...)
	if err := ds.FillImage(i, b.Row(0)); err != nil {
		return digest{}, err
	}
	h := sha256.New()
	for _, c := range b.Columns() {
		if err := binary.Write(h, binary.LittleEndian, b.Data(c.Name)); err != nil {
			return digest{}, err
		}
	}
	return digest(h.Sum(nil)), nil
}

func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
