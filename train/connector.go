package train

import (
	"bytes"
	"fmt"
	"path/filepath"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// connectorKey is where the configuration names the connector.
const connectorKey = "objective.mafa.connector"

// newTrainingSystem is NewSystem with what only training needs: the frozen model of
// objective.mafa.
func newTrainingSystem(cfg config.Config, tok *tokenizer.Tokenizer, engine *compute.Engine) (System, error) {
	path := cfg.Objective.MAFA.Connector
	if path == "" {
		return NewSystem(cfg, tok.Size(), engine)
	}
	if cfg.Model.System != "albef" {
		return nil, connectorError(path, fmt.Sprintf("works with model.system albef alone (this run has %s)", cfg.Model.System), `set it to ""`)
	}
	ck, err := checkpoint.Load(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", connectorKey, err)
	}
	defer ck.Close()
	c, err := readConnector(ck, path, tok)
	if err != nil {
		return nil, err
	}
	return model.NewConnectedALBEF(cfg, tok.Size(), engine, c)
}

// readConnector returns the frozen model of a checkpoint, which must stay open until its
// parameters are read.
func readConnector(ck *checkpoint.Checkpoint, path string, tok *tokenizer.Tokenizer) (*model.Connector, error) {
	text, err := ck.File(configFile)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", connectorKey, err)
	}
	cfg, _, err := config.ParseStored(filepath.Join(ck.Path, configFile), text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", connectorKey, err)
	}
	f, err := ck.Group("model")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", connectorKey, err)
	}
	if _, ok := f.Lookup("itm_head/weight"); !ok {
		return nil, connectorError(path, "has no match head", "choose a run that was trained with objective.itm.weight > 0")
	}
	own, err := tok.JSON()
	if err != nil {
		return nil, err
	}
	its, err := OpenTokenizer(ck)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", connectorKey, err)
	}
	theirs, err := its.JSON()
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(own, theirs) {
		return nil, connectorError(path, fmt.Sprintf("has another vocabulary, of %d tokens, than this run, of %d", its.Size(), tok.Size()),
			fmt.Sprintf("train with its vocabulary: data.vocab = %q", filepath.Join(ck.Path, tokenizerFile)))
	}
	return &model.Connector{
		Model: cfg.Model, Vocab: its.Size(),
		Read: func(name string, shape []int, dst []float32) error { return ck.ReadFloat32("model", name, shape, dst) },
	}, nil
}

func connectorError(path, msg, hint string) error {
	return config.Errors{{Path: connectorKey, Value: path, Msg: msg, Hint: hint}}
}
