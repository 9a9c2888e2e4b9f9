package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Portable returns a tokenizer.json by which other readers encode texts as Encode does: JSON, and with
// TemplateALBEF the [CLS] before a text, which readers of JSON would have to know of. The names of special tokens
// in a text are special to these readers, also with TemplateALBEF, and words behind such a name may begin with another
// piece.
func (t *Tokenizer) Portable() ([]byte, error) {
	b, err := t.JSON()
	if err != nil {
		return nil, err
	}
	if bytes.Contains(b, []byte(`"`+nltkType+`"`)) {
		return nil, fmt.Errorf("tokenizer: words of NLTK are not a step that readers of tokenizer.json have: export the vocabulary of a model that cuts words into pieces")
	}
	f, err := readJSON(b)
	if err != nil {
		return nil, err
	}
	switch {
	case t.albef:
		if err := f.setTemplate(ClsToken, "", t.ID); err != nil {
			return nil, err
		}
		f.Padding = newPadding(t.pad, PadToken)
	case f.KnownOnly:
		f.KnownOnly = false
	case none(f.Normalizer), t.begins != nil:
		return b, nil
	default:
		split, err := marksStart(f.PreTokenizer)
		if err != nil || bytes.Equal(split, f.PreTokenizer) {
			return b, err
		}
		f.PreTokenizer = split
	}
	if b, err = json.MarshalIndent(f, "", " "); err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	return append(b, '\n'), nil
}

// marksStart returns a pre_tokenizer whose first step, where it is a Metaspace that marks the first word of a text,
// marks the first word of what it gets. Other readers take the mark from a text whose first character a normalizer has
// deleted, such as a quotation mark.
func marksStart(raw json.RawMessage) (json.RawMessage, error) {
	kind, err := typeOf(raw)
	if err != nil || kind != "Metaspace" && kind != "Sequence" {
		return raw, err
	}
	var step map[string]json.RawMessage
	if err := json.Unmarshal(raw, &step); err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	if kind == "Metaspace" {
		if string(step["prepend_scheme"]) != `"first"` {
			return raw, nil
		}
		step["prepend_scheme"] = json.RawMessage(`"always"`)
		return json.Marshal(step)
	}
	var steps []json.RawMessage
	if err := json.Unmarshal(step["pretokenizers"], &steps); err != nil || len(steps) == 0 {
		return raw, err
	}
	first, err := marksStart(steps[0])
	if err != nil || bytes.Equal(first, steps[0]) {
		return raw, err
	}
	steps[0] = first
	if step["pretokenizers"], err = json.Marshal(steps); err != nil {
		return nil, err
	}
	return json.Marshal(step)
}
