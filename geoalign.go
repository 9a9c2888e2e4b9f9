// Package geoalign encodes texts and images by a trained model in a few lines:
//
//	enc, err := geoalign.OpenEncoder("sentence-transformers/all-MiniLM-L6-v2")
//	if err != nil {
//		return err
//	}
//	defer enc.Close()
//	rows, err := enc.Texts(ctx, []string{"a dog on a beach", "a puppy near the sea"})
//	fmt.Println(rows.Row(0)[:3], geoalign.Similarity(rows, rows).Row(0)[1])
//
// Training is package run, and the command trainer is the same with flags: docs/architecture.md says where what is.
package geoalign

import (
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"math"
	"os"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/convert"
	"github.com/geoalign/geoalign/run/embed"
	"github.com/geoalign/geoalign/weights"
	"github.com/geoalign/geoalign/weights/hub"
)

// Encoder makes vectors of texts, or of images, or of both. Several goroutines may use it: calls wait for each other,
// and each uses all threads.
type Encoder struct {
	model *run.Trained
	rows  *embed.Encoder
	most  int // pixels of an image
}

// Option changes how an encoder is opened.
type Option func(*options)

type options struct {
	ctx  context.Context
	sets []string
	log  io.Writer
}

// Prompt puts the prompt of a name before every text, such as "query" of models that read queries and documents in two
// ways. One that the model lacks is an error of OpenEncoder.
func Prompt(name string) Option { return Set(config.Override("data.prompt", name)) }

// Set changes keys of the configuration as --set of the command does, such as "compute.precision=bf16",
// "compute.threads=2" or "data.tokens=128". docs/config.md lists them.
func Set(overrides ...string) Option {
	return func(o *options) { o.sets = append(o.sets, overrides...) }
}

// Context ends the fetch of a model early with the error of ctx.
func Context(ctx context.Context) Option { return func(o *options) { o.ctx = ctx } }

// Log has notes written to w, such as what was assumed of weights.
func Log(w io.Writer) Option { return func(o *options) { o.log = w } }

// OpenEncoder opens a run folder, a folder or file of weights of Hugging Face, timm, open_clip or sentence-transformers,
// or by its name a model of the Hugging Face hub, which is fetched into the cache that other programs have too. Close
// the encoder after use.
func OpenEncoder(nameOrDir string, opts ...Option) (*Encoder, error) {
	o := options{ctx: context.Background()}
	for _, set := range opts {
		set(&o)
	}
	path := nameOrDir
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		client, err := hub.FromEnvironment()
		if err == nil {
			path, err = client.Fetch(o.ctx, nameOrDir, weights.Wanted)
		}
		if err != nil {
			return nil, fmt.Errorf("geoalign: there is no file or folder %q here: %w", nameOrDir, err)
		}
	}
	t, err := convert.Open(path, run.OpenOptions{Set: o.sets, Log: o.log})
	if err != nil {
		return nil, fmt.Errorf("geoalign: %w", err)
	}
	rows, err := embed.NewEncoder(t)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("geoalign: %w", err), t.Close())
	}
	return &Encoder{model: t, rows: rows, most: t.Config.Data.MaxPixels}, nil
}

// Dim returns the numbers of a vector.
func (e *Encoder) Dim() int { return e.rows.Dim() }

// Texts returns a row for each text, in memory of the caller's own. Texts of alike lengths are encoded together, and
// what is beyond the tokens that the model reads is cut off. It ends early with the error of ctx.
func (e *Encoder) Texts(ctx context.Context, texts []string) (Matrix, error) {
	x, err := e.rows.Texts(ctx, texts)
	return Matrix{len(texts), e.Dim(), x}, wrapped(err)
}

// Images returns a row for each image, as Texts does. Images are resized and normalised as the model reads them.
func (e *Encoder) Images(ctx context.Context, list []image.Image) (Matrix, error) {
	x, err := e.rows.Images(ctx, len(list), func(i int) (*transform.Image, error) { return images.FromImage(list[i]) })
	return Matrix{len(list), e.Dim(), x}, wrapped(err)
}

// ImageFiles is Images of files of JPEG, PNG, GIF, BMP, TIFF or WebP, which are turned as their EXIF tags say. Memory
// holds those of a batch.
func (e *Encoder) ImageFiles(ctx context.Context, paths []string) (Matrix, error) {
	x, err := e.rows.Images(ctx, len(paths), func(i int) (*transform.Image, error) {
		return images.DecodeFile(paths[i], e.most)
	})
	return Matrix{len(paths), e.Dim(), x}, wrapped(err)
}

// Close gives memory, threads and files back.
func (e *Encoder) Close() error { return e.model.Close() }

func wrapped(err error) error {
	if err != nil {
		return fmt.Errorf("geoalign: %w", err)
	}
	return nil
}

// Matrix is rows of numbers, one after the other.
type Matrix struct {
	Rows, Dim int
	Data      []float32 // (Rows, Dim)
}

// Row returns row i, which shares the memory of the matrix.
func (m Matrix) Row(i int) []float32 { return m.Data[i*m.Dim : (i+1)*m.Dim : (i+1)*m.Dim] }

// Similarity returns the cosine of every row of a with every row of b: (a.Rows, b.Rows). A row of zeros has the cosine
// 0 with all. It panics where rows have different numbers of channels.
func Similarity(a, b Matrix) Matrix {
	if a.Dim != b.Dim {
		panic(fmt.Sprintf("geoalign: Similarity of rows of %d and of %d numbers: use one encoder for both", a.Dim, b.Dim))
	}
	s := Matrix{a.Rows, b.Rows, make([]float32, a.Rows*b.Rows)}
	lengths := make([]float64, b.Rows)
	for j := range lengths {
		lengths[j] = math.Sqrt(dot(b.Row(j), b.Row(j)))
	}
	for i := range a.Rows {
		x := a.Row(i)
		length := math.Sqrt(dot(x, x))
		for j, l := range lengths {
			if product := length * l; product > 0 {
				s.Data[i*s.Dim+j] = float32(dot(x, b.Row(j)) / product)
			}
		}
	}
	return s
}

func dot(x, y []float32) (sum float64) {
	for i, v := range x {
		sum += float64(v) * float64(y[i])
	}
	return sum
}
