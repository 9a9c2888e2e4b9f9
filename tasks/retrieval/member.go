package retrieval

import (
	"context"
	"errors"
	"fmt"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/eval/sanity"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/tasks"
)

// Member is a model that scores the pairs of a split, one of several where their scores are
// averaged.
type Member struct {
	Image, Text tasks.Encoder
	Score       scoring.Score // by which features of images and texts are compared
	// compares tokens instead of features, whose encoders are TokenEncoders; nil: features
	Interaction   tasks.Interaction
	Images, Texts data.Gallery
	Engine        *kernel.Engine
}

// TokenEncoder is an Encoder that gives tokens too; *model.Encoder is one.
type TokenEncoder interface {
	Columns() []batch.Column
	// EncodeTokens returns the tokens (n*Len, Dim) of the n rows of b in the shared space, as
	// Interaction takes them, and how many of each there are (n). The next call overwrites
	// both. It ends early with the error of ctx.
	EncodeTokens(ctx context.Context, b *batch.Batch) (tokens []float32, lengths []int32, err error)
	Len() int
	Dim() int
}

// NewMember is the model of a setup as it scores the pairs of the split.
func NewMember(s *tasks.Setup) (m Member, err error) {
	m = Member{Image: s.Model.Image, Text: s.Model.Text, Interaction: s.Model.Interaction, Engine: s.Engine,
		Images: s.Galleries.Images()}
	if m.Texts, err = s.Galleries.Texts(s.Texts); err != nil || m.Interaction != nil {
		return m, err
	}
	m.Score, err = s.Model.Score()
	return m, err
}

// Name says how the member compares pairs.
func (m Member) Name() string {
	if m.Interaction != nil {
		return m.Interaction.Name()
	}
	return m.Score.String()
}

// Pairs returns the scores (N, M) of all pairs of Images and Texts.
func (m Member) Pairs(ctx context.Context, e tasks.Encoding) ([]float32, error) {
	s, err := newScored(m, e.BatchSize, e.Progress)
	if err != nil {
		return nil, err
	}
	if err := s.encode(ctx, e, nil); err != nil {
		return nil, err
	}
	scores := make([]float32, m.Images.Len()*m.Texts.Len())
	return scores, s.rows(ctx, 0, m.Images.Len(), scores)
}

// scored is an encoded split of a member.
type scored interface {
	// encode runs both towers. seen is called with what they give, where it is not nil.
	encode(ctx context.Context, e tasks.Encoding, seen func(image bool, x tasks.Encoded)) error
	// rows is an eval.Source.
	rows(ctx context.Context, row, n int, dst []float32) error
}

// newScored is the split of a member, whose pairs are scored in blocks of so many rows a side.
func newScored(m Member, block int, progress func(phase string, done, total int)) (scored, error) {
	if m.Interaction == nil {
		return &features{Member: m, dim: m.Image.Dim()}, nil
	}
	image, ok := m.Image.(TokenEncoder)
	text, also := m.Text.(TokenEncoder)
	if !ok || !also {
		return nil, errors.New("tasks: an interaction needs encoders of tokens")
	}
	return &tokens{Member: m, image: tokenSide{e: image, block: block}, text: tokenSide{e: text, block: block},
		progress: progress}, nil
}

// features are those of a split.
type features struct {
	Member
	dim           int       // C
	images, texts []float32 // (n, C)
}

// leading are the first dim channels as features, see objectives.Matryoshka.
func (f *features) leading(dim int) (*features, error) {
	x := &features{Member: f.Member, dim: dim}
	var err error
	if x.Score.Space, err = f.Score.Space.Leading(dim); err != nil {
		return nil, fmt.Errorf("tasks: objective.matryoshka.dims: %d %w", dim, err)
	}
	x.images = x.Score.Space.Truncate(nil, f.images, f.dim)
	x.texts = x.Score.Space.Truncate(nil, f.texts, f.dim)
	return x, nil
}

func (f *features) encode(ctx context.Context, e tasks.Encoding, seen func(image bool, x tasks.Encoded)) error {
	f.texts, f.images = make([]float32, 0, f.Texts.Len()*f.Text.Dim()), make([]float32, 0, f.Images.Len()*f.Image.Dim())
	take := func(all *[]float32, image bool) func(x tasks.Encoded) error {
		return func(x tasks.Encoded) error {
			*all = append(*all, x.Features...)
			if seen != nil {
				seen(image, x)
			}
			return nil
		}
	}
	if err := e.Run(ctx, f.Text, f.Texts, "encoding texts", take(&f.texts, false)); err != nil {
		return err
	}
	return e.Run(ctx, f.Image, f.Images, "encoding images", take(&f.images, true))
}

func (f *features) rows(ctx context.Context, row, n int, dst []float32) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c := f.dim
	return f.Score.Rows(f.Engine, f.images[row*c:(row+n)*c], n, f.texts, len(f.texts)/c, dst)
}

// meanCosine returns the mean cosine of two images and of two texts of the first member, 0 where it compares tokens or
// distances.
func (m mean) meanCosine() (cosine [2]float64) {
	if f, ok := m[0].(*features); ok && !f.Score.Space.Euclid {
		cosine[0], _ = sanity.MeanCosine(f.images, f.dim)
		cosine[1], _ = sanity.MeanCosine(f.texts, f.dim)
	}
	return cosine
}

// mean averages the scores of several members.
type mean []scored

func (m mean) rows(ctx context.Context, row, n int, dst []float32) error {
	if err := m[0].rows(ctx, row, n, dst); err != nil || len(m) == 1 {
		return err
	}
	one := make([]float32, len(dst))
	for _, s := range m[1:] {
		if err := s.rows(ctx, row, n, one); err != nil {
			return err
		}
		vector.Axpy(dst, 1, one)
	}
	vector.Scale(dst, 1/float32(len(m)), dst)
	return nil
}
