package tokenizer

import (
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// sentencePiece is what is used of a SentencePiece model (sentencepiece_model.proto).
type sentencePiece struct {
	pieces []spPiece
	kind   uint64 // trainer_spec.model_type
	eos    int64  // trainer_spec.eos_id, below 0: none
	pad    int64  // trainer_spec.pad_id, below 0: none
	suffix bool   // trainer_spec.treat_whitespace_as_suffix
	// normalizer_spec
	charsmap                     []byte
	prefix, squeeze, escapeSpace bool
}

// spPiece is a piece of a SentencePiece model.
type spPiece struct {
	text  string
	score float32
	kind  uint64
}

// Kinds of pieces.
const (
	normalPiece = iota + 1
	unknownPiece
	controlPiece
	userPiece
	unusedPiece
	bytePiece
)

// unigramModel is the model_type of unigram.
const unigramModel = 1

// field is a field of a message: its number and, by its type, bytes or a number.
type field struct {
	number protowire.Number
	bytes  []byte
	value  uint64
}

// fields calls f for the fields of a message.
func fields(b []byte, f func(field) error) error {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		x := field{number: number}
		switch kind {
		case protowire.VarintType:
			x.value, n = protowire.ConsumeVarint(b)
		case protowire.Fixed32Type:
			var v uint32
			v, n = protowire.ConsumeFixed32(b)
			x.value = uint64(v)
		case protowire.BytesType:
			x.bytes, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(number, kind, b)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		if err := f(x); err != nil {
			return err
		}
	}
	return nil
}

// readSentencePiece reads a .model file.
func readSentencePiece(b []byte) (*sentencePiece, error) {
	m := &sentencePiece{kind: unigramModel, eos: 2, pad: -1, prefix: true, squeeze: true, escapeSpace: true}
	err := fields(b, func(x field) error {
		switch x.number {
		case 1:
			p := spPiece{kind: normalPiece}
			err := fields(x.bytes, func(y field) error {
				switch y.number {
				case 1:
					p.text = string(y.bytes)
				case 2:
					p.score = math.Float32frombits(uint32(y.value))
				case 3:
					p.kind = y.value
				}
				return nil
			})
			m.pieces = append(m.pieces, p)
			return err
		case 2:
			return fields(x.bytes, func(y field) error {
				switch y.number {
				case 3:
					m.kind = y.value
				case 24:
					m.suffix = y.value != 0
				case 42:
					m.eos = int64(int32(y.value))
				case 43:
					m.pad = int64(int32(y.value))
				}
				return nil
			})
		case 3:
			return fields(x.bytes, func(y field) error {
				switch y.number {
				case 2:
					m.charsmap = y.bytes
				case 3:
					m.prefix = y.value != 0
				case 4:
					m.squeeze = y.value != 0
				case 5:
					m.escapeSpace = y.value != 0
				}
				return nil
			})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("tokenizer: no SentencePiece model: %w", err)
	}
	switch {
	case len(m.pieces) == 0:
		return nil, fmt.Errorf("tokenizer: the SentencePiece model has no pieces")
	case m.kind != unigramModel:
		return nil, fmt.Errorf("tokenizer: the SentencePiece model is of type %d: only 1 (unigram) is read: save it as a tokenizer.json", m.kind)
	case m.suffix || !m.escapeSpace:
		return nil, fmt.Errorf("tokenizer: SentencePiece models with white space at the end of words, or that is not escaped, are not read: save it as a tokenizer.json")
	}
	for i, p := range m.pieces {
		switch {
		case !utf8.ValidString(p.text) || p.text == "":
			return nil, fmt.Errorf("tokenizer: SentencePiece model: piece %d is not text", i)
		case p.kind == userPiece || p.kind == unusedPiece:
			return nil, fmt.Errorf("tokenizer: SentencePiece model: piece %q is defined by the user or unused, which is not read: save the model as a tokenizer.json", p.text)
		case math.IsNaN(float64(p.score)) || math.IsInf(float64(p.score), 0):
			return nil, fmt.Errorf("tokenizer: SentencePiece model: the score of piece %q is not finite", p.text)
		}
	}
	return m, nil
}

// asciiPunctuation is removed from the texts of SigLIP.
const asciiPunctuation = `[!-/:-@\[-` + "`" + `{-~]`

// Steps that are only written for SentencePiece models.
type (
	precompiledStep struct {
		Type     string `json:"type"`
		Charsmap []byte `json:"precompiled_charsmap"`
		Match    string `json:"match"`
	}
	stripStep struct {
		Type  string `json:"type"`
		Left  bool   `json:"strip_left"`
		Right bool   `json:"strip_right"`
	}
	prependStep struct {
		Type    string `json:"type"`
		Prepend string `json:"prepend"`
	}
	metaspaceStep struct {
		Type        string `json:"type"`
		Replacement string `json:"replacement"`
		Prepend     string `json:"prepend_scheme"`
		Split       bool   `json:"split"`
	}
)

// parseSentencePiece reads a .model file. A text ends with </s>. For the class of SigLIP a text is in lower case
// without punctuation, and padded with </s>.
func parseSentencePiece(b []byte, c folderConfig) (*jsonFile, error) {
	if !slices.ContainsFunc([]string{"Siglip", "T5", "PreTrained"}, c.is) && c.Class != "" {
		return nil, fmt.Errorf("tokenizer: tokenizer_config.json: a %s may number the pieces of a SentencePiece model anew and put other tokens around a text: save it as a tokenizer.json", c.Class)
	}
	m, err := readSentencePiece(b)
	if err != nil {
		return nil, err
	}
	f, x, unk := &jsonFile{Version: "1.0"}, unigramFile{Type: Unigram}, ""
	siglip := c.is("Siglip")
	ids := map[string]int32{}
	for i, p := range m.pieces {
		x.Vocab = append(x.Vocab, scoredText{p.text, float64(p.score)})
		ids[p.text] = int32(i)
		if p.kind != normalPiece {
			x.Hidden = append(x.Hidden, int32(i))
		}
		switch p.kind {
		case unknownPiece:
			id := int32(i)
			x.Unk, unk = &id, p.text
		case bytePiece:
			x.ByteFallback = true
		}
	}
	if x.Unk == nil {
		return nil, fmt.Errorf("tokenizer: the SentencePiece model has no unknown piece")
	}
	name := func(id int64) string {
		if id < 0 || id >= int64(len(m.pieces)) {
			return ""
		}
		return m.pieces[id].text
	}
	end, pad := name(m.eos), name(m.pad)
	if siglip || pad == "" {
		pad = end
	}
	if c.Pad != "" {
		pad = string(c.Pad)
	}
	for i, p := range m.pieces {
		if siglip && (p.text == end || p.text == unk) {
			f.Added = append(f.Added, added{ID: int32(i), Content: p.text, Special: true, Lstrip: true, Rstrip: true})
		}
	}
	var steps []any
	if siglip {
		steps = append(steps, kind{"Lowercase"}, replaceRegex(asciiPunctuation, ""), replaceRegex(`\s+`, " "),
			stripStep{"Strip", true, true})
	}
	if len(m.charsmap) > 0 {
		steps = append(steps, precompiledStep{"Precompiled", m.charsmap, longestMatch})
	}
	if m.squeeze {
		steps = append(steps, replaceRegex(`\A +|[ `+spaceMark+`]+\z`, ""), replaceRegex(` {2,}`, " "))
	}
	scheme := "never"
	switch {
	case m.prefix && siglip: // not behind a special token
		scheme = "first"
	case m.prefix:
		steps = append(steps, prependStep{"Prepend", spaceMark})
	}
	if err := f.set(sequenceOf{"Sequence", steps}, metaspaceStep{"Metaspace", spaceMark, scheme, false},
		x); err != nil {
		return nil, err
	}
	id := func(s string) (int32, bool) { x, ok := ids[s]; return x, ok }
	if x, ok := id(pad); ok {
		f.Padding = newPadding(x, pad)
	}
	return f, f.setTemplate("", end, id)
}
