package train

import (
	"bytes"
	"fmt"
	"path/filepath"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// connect gives a model the frozen model of objective.mafa, if there is one. done closes
// its checkpoint once the model is built.
func connect(o *model.Options, cfg config.Config, tok *tokenizer.Tokenizer) (done func(), err error) {
	path := cfg.Objective.MAFA.Connector
	if path == "" {
		return func() {}, nil
	}
	if cfg.Objective.ITM.Weight == 0 {
		return nil, connectorError(path, "needs objective.itm.weight > 0",
			`it relabels the negatives of matching: set it to ""`)
	}
	ck, err := checkpoint.Open(path, "model")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", model.ConnectorKey, err)
	}
	if o.Connector, err = readConnector(ck, path, tok); err != nil {
		ck.Close()
		return nil, err
	}
	return func() { ck.Close() }, nil
}

// readConnector returns the frozen model of a checkpoint, which must stay open until its
// parameters are read.
func readConnector(ck *checkpoint.Checkpoint, path string, tok *tokenizer.Tokenizer) (*model.Connector, error) {
	text, err := ck.File(configFile)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", model.ConnectorKey, err)
	}
	cfg, _, err := config.ParseStored(filepath.Join(ck.Path, configFile), text, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", model.ConnectorKey, err)
	}
	f, err := ck.Group("model")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", model.ConnectorKey, err)
	}
	if _, ok := f.Lookup(objectives.MatchWeight); !ok {
		return nil, connectorError(path, "has no match head",
			"choose a run that was trained with objective.itm.weight > 0")
	}
	own, err := tok.JSON()
	if err != nil {
		return nil, err
	}
	its, err := OpenTokenizer(ck)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", model.ConnectorKey, err)
	}
	theirs, err := its.JSON()
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(own, theirs) {
		return nil, connectorError(path, fmt.Sprintf("has another vocabulary, of %d tokens, than this run, of %d",
			its.Size(), tok.Size()),
			fmt.Sprintf("train with its vocabulary: data.vocab = %q", filepath.Join(ck.Path, TokenizerFile)))
	}
	return &model.Connector{
		Model: cfg.Model, Vocab: its.Size(),
		From: stored{ck: ck},
	}, nil
}

// MomentumGroup is the group of a checkpoint with the momentum encoder, under the names of their parameters.
const MomentumGroup = "momentum"

// stored are the parameters of a checkpoint as the source of a model.
type stored struct {
	ck   *checkpoint.Checkpoint
	twin bool // those that have a twin are the twin
}

// Has implements model.Source.
func (s stored) Has(name string) bool {
	f, err := s.ck.Group("model")
	if err != nil {
		return false
	}
	_, ok := f.Lookup(name)
	return ok
}

// Read implements model.Source.
func (s stored) Read(name string, shape []int, dst []float32) error {
	group := "model"
	if s.twin {
		f, err := s.ck.Group(MomentumGroup)
		if err != nil {
			return err
		}
		if _, ok := f.Lookup(name); ok {
			group = MomentumGroup
		}
	}
	return s.ck.ReadFloat32(group, name, shape, dst)
}

// OpenModel returns the model of a checkpoint for inference, which reads the parameters
// that an evaluation asks for: the checkpoint must stay open. tok is nil for a system
// without texts.
func OpenModel(cfg config.Config, ck *checkpoint.Checkpoint, tok *tokenizer.Tokenizer,
	engine *compute.Engine) (*model.Model, error) {
	return openStored(cfg, stored{ck: ck}, tok, engine)
}

// OpenMomentum is OpenModel with the momentum encoder's copies instead of the parameters that have one.
func OpenMomentum(cfg config.Config, ck *checkpoint.Checkpoint, tok *tokenizer.Tokenizer,
	engine *compute.Engine) (*model.Model, error) {
	return openStored(cfg, stored{ck: ck, twin: true}, tok, engine)
}

func openStored(cfg config.Config, from stored, tok *tokenizer.Tokenizer, engine *compute.Engine) (*model.Model,
	error) {
	o := modelOptions(tok, engine)
	var err error
	if o.Classes, err = OpenClasses(from.ck); err != nil {
		return nil, err
	}
	if tok != nil {
		rows, err := TableRows(from.ck, tok)
		if err != nil {
			return nil, err
		}
		o.Vocab = rows
	}
	return model.Open(cfg, o, from)
}

// wordTable is the parameter with a row for every token.
const wordTable = "text/embeddings/word/weight"

// TableRows is the number of rows of the word embeddings of a checkpoint, each token's and perhaps some that no token
// has.
func TableRows(ck *checkpoint.Checkpoint, tok *tokenizer.Tokenizer) (int, error) {
	f, err := ck.Group("model")
	if err != nil {
		return 0, err
	}
	info, ok := f.Lookup(wordTable)
	switch {
	case !ok || len(info.Shape) == 0:
		return tok.Size(), nil // a model without
	case info.Shape[0] < tok.Size():
		return 0, fmt.Errorf("train: %s has %d tokens, and %s in the model %d rows: use the tokenizer that the model was trained with",
			filepath.Join(ck.Path, TokenizerFile), tok.Size(), wordTable, info.Shape[0])
	}
	return info.Shape[0], nil
}

func connectorError(path, msg, hint string) error {
	return config.Errors{{Path: model.ConnectorKey, Value: path, Msg: msg, Hint: hint}}
}
