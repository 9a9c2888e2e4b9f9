package tasks

import (
	"context"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/objectives/scoring"
)

// Model is the parts of a model that tasks ask; one that it lacks is nil.
type Model struct {
	Image, Text TextEncoder                   // sides
	Score       func() (scoring.Score, error) // by which features of images and texts are compared
	Temperature func() (float64, error)       // that scores were divided by in training, 0: none
	Interaction Interaction
	Matcher     Matcher
	Classifier  Classifier
	Writer      Writer
	Heat        HeatMapper
}

// TextEncoder is one side of a model with the class tokens behind its features; *model.Encoder is one.
type TextEncoder interface {
	Encoder
	ClassEncoder
}

// Interaction scores images and texts by their tokens; *model.Interaction is one.
type Interaction interface {
	// Name says how pairs are compared.
	Name() string
	// Scores returns the scores (n, m) of n images with m texts from tokens and their numbers (n) and (m). The next
	// call overwrites them. It ends early with the error of ctx.
	Scores(ctx context.Context, images []float32, imageLengths []int32, texts []float32,
		textLengths []int32) ([]float32, error)
}

// Matcher is a matching head over pairs of encoded rows; *model.Matcher is one.
type Matcher interface {
	// Match returns the logits (n, 2) of no match and of match of n pairs: text states (n*L, E) with lengths (n),
	// and for each the index of its image among the states of k images (k*T, D). The next call overwrites them.
	Match(ctx context.Context, states []float32, lengths, index []int32, images []float32, n, k int) ([]float32, error)
}

// Classifier is the head of a model that was fine-tuned to classify rows; *model.Classifier is one.
type Classifier interface {
	// Columns are the columns of a batch that Logits reads.
	Columns() []batch.Column
	// Logits returns those of the n rows of b, (n, classes), or scores (n, 1). The next call overwrites them. It ends
	// early with the error of ctx.
	Logits(ctx context.Context, b *batch.Batch) ([]float32, error)
	HasHeatMaps() bool
	// HeatMaps returns where the model looks for a class of each row: (n, pictures, P).
	HeatMaps(ctx context.Context, b *batch.Batch, classes []int32) ([]float32, error)
	// Classes are the names of the classes of the training data, nil where these are given.
	Classes() []string
}

// Writer is the decoder of a model.
type Writer interface {
	Columns() []batch.Column // of a batch that it reads
	// Generate returns the tokens of a text for each row of b. It ends early with the error of ctx.
	Generate(ctx context.Context, b *batch.Batch, o GenerateOptions) ([][]int32, error)
	// Ranker returns what scores candidates for the rows of a batch: (n, candidates).
	Ranker(candidates [][]int32, top int) (func(ctx context.Context, b *batch.Batch) ([]float32, error), error)
	HasHeatMaps() bool
	HeatMaps(ctx context.Context, b *batch.Batch, texts [][]int32) ([]float32, error)
}

// GenerateOptions say how texts are generated: those of package model.
type GenerateOptions struct {
	Beams         int
	MinTokens     int
	MaxTokens     int
	LengthPenalty float64
}

// HeatMapper is a model with heat maps of pairs.
type HeatMapper interface {
	// HeatMaps returns what the P patches of the picture say for each of the n pairs of a batch: (n, P).
	HeatMaps(ctx context.Context, b *batch.Batch, of HeatOf) ([]float32, error)
	CheckHeat(of HeatOf) error
	DefaultFusion() int // fusion layer whose attention is drawn
}

// HeatOf is where a heat map is read: that of package model.
type HeatOf struct {
	Match bool // of the match head, in a fusion layer; else of the cosine, in a block of the image tower
	Layer int  // from 0
}
