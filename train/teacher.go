package train

import (
	"bytes"
	"fmt"
	"path/filepath"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// teach gives a model the frozen teacher of objective.distill_scores, if there is one. done closes its checkpoint once
// the model is built.
func teach(o *model.Options, cfg config.Config, tok *tokenizer.Tokenizer) (done func(), err error) {
	path := cfg.Objective.DistillScores.Teacher
	if path == "" {
		return func() {}, nil
	}
	ck, err := checkpoint.Open(path, "model")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", model.TeacherKey, err)
	}
	if o.Teacher, err = openTeacher(o, ck, cfg, tok); err != nil {
		ck.Close()
		return nil, err
	}
	return func() { ck.Close() }, nil
}

// openTeacher opens the model of a checkpoint as a teacher of batches of this run.
func openTeacher(o *model.Options, ck *checkpoint.Checkpoint, cfg config.Config,
	tok *tokenizer.Tokenizer) (*model.Model, error) {
	text, err := ck.File(configFile)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", model.TeacherKey, err)
	}
	theirs, _, err := config.ParseStored(filepath.Join(ck.Path, configFile), text, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", model.TeacherKey, err)
	}
	bad := func(msg, hint string) error {
		return config.Errors{{Path: model.TeacherKey, Value: cfg.Objective.DistillScores.Teacher, Msg: msg, Hint: hint}}
	}
	if theirs.Has(section.Fitted) {
		return nil, bad(fmt.Sprintf("must be a model of towers or heads (this one is of system %q)",
			theirs.Model.System), "choose another run")
	}
	var its *tokenizer.Tokenizer
	if tok != nil && !theirs.Has(section.Stored) && !theirs.Has(section.ImagesAlone) {
		if its, err = OpenTokenizer(ck); err != nil {
			return nil, fmt.Errorf("%s: %w", model.TeacherKey, err)
		}
		a, err := tok.JSON()
		if err != nil {
			return nil, err
		}
		b, err := its.JSON()
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(a, b) {
			return nil, bad(fmt.Sprintf("has another vocabulary, of %d tokens, than this run, of %d", its.Size(),
				tok.Size()),
				fmt.Sprintf("train with its vocabulary: data.vocab = %q", filepath.Join(ck.Path, TokenizerFile)))
		}
		if most := cfg.Data.Tokens; theirs.Model.Text.Style != encoders.StyleGRU && theirs.Model.Text.Positions < most {
			return nil, bad(fmt.Sprintf("must have at least data.tokens = %d positions (it has %d)", most,
				theirs.Model.Text.Positions), "choose another run, or fewer tokens")
		}
	}
	theirs.Data.Tokens = cfg.Data.Tokens
	return OpenModel(theirs, ck, its, o.Engine)
}
