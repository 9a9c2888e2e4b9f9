package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Portable returns a tokenizer.json by which other readers encode texts as Encode does: JSON, and with
// TemplateALBEF the [CLS] before a text, which readers of JSON would have to know of. The names of special tokens
// in a text are special to these readers, also with TemplateALBEF.
func (t *Tokenizer) Portable() ([]byte, error) {
	if bytes.Contains(t.stored, []byte(`"`+nltkType+`"`)) {
		return nil, fmt.Errorf("tokenizer: words of NLTK are no step that readers of tokenizer.json have: export the vocabulary of a model that cuts words into pieces")
	}
	b, err := t.JSON()
	if err != nil || !t.albef {
		return b, err
	}
	f, err := readJSON(b)
	if err != nil {
		return nil, err
	}
	if err := f.setTemplate(ClsToken, "", t.ID); err != nil {
		return nil, err
	}
	f.Padding = newPadding(t.pad, PadToken)
	if b, err = json.MarshalIndent(f, "", " "); err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	return append(b, '\n'), nil
}
