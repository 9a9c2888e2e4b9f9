package tokenizer

import (
	"encoding/json"
	"slices"
	"unicode/utf8"
)

// begins returns what says whether the first character of a text is still there when it is normalised, for files whose
// pre_tokenizer marks it by the scheme first: to Hugging Face's tokenizers nothing begins a text whose first character a
// normalizer deletes, except by a Precompiled map. It is nil where no step asks, and for a SentencePiece model, which
// this module writes with the ids that no text has and whose mark is of what is left.
func (f *jsonFile) begins() (func(plain string) bool, error) {
	var m unigramFile
	if json.Unmarshal(f.Model.rest, &m) == nil && len(m.Hidden) > 0 {
		return nil, nil
	}
	split, err := leaves(f.PreTokenizer, 0)
	first := slices.ContainsFunc(split, func(raw json.RawMessage) bool {
		var s splitterFile
		return !none(raw) && json.Unmarshal(raw, &s) == nil && s.Type == "Metaspace" && s.Prepend == "first"
	})
	if !first || err != nil {
		return nil, err
	}
	all, err := leaves(f.Normalizer, 0)
	if err != nil {
		return nil, err
	}
	type step struct {
		apply normalizer
		maps  bool
	}
	var steps []step
	for _, raw := range all {
		n, err := newNormalizer(raw, 0)
		if err != nil {
			return nil, err
		}
		if n == nil {
			continue
		}
		kind, err := typeOf(raw)
		if err != nil {
			return nil, err
		}
		steps = append(steps, step{n, kind == "Precompiled"})
	}
	if len(steps) == 0 {
		return nil, nil
	}
	return func(s string) bool {
		for _, step := range steps {
			next := step.apply.text(s)
			_, n := utf8.DecodeRuneInString(s)
			if !step.maps && next == step.apply.text(s[n:]) {
				return false
			}
			s = next
		}
		return true
	}, nil
}
