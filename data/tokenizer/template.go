package tokenizer

import (
	"encoding/json"
	"fmt"
)

// Templates: which tokens stand around a text.
const (
	// TemplateALBEF is [CLS] before a text and nothing behind it, as in ALBEF. The names of
	// special tokens in a text are ordinary text. It is for WordPiece with BERT's special tokens.
	TemplateALBEF = "albef"
	// TemplateFile is what the tokenizer's own files say, as their original applies them.
	TemplateFile = "file"
	// TemplateBare is TemplateFile with nothing around a text: what a table of tokens averages (StaticEmbedding of
	// sentence-transformers, WordLlama).
	TemplateBare = "bare"
	// TemplateKnown is TemplateBare without the unknown token, as in model2vec.
	TemplateKnown = "known"
)

// Templates lists them.
var Templates = []string{TemplateALBEF, TemplateFile, TemplateBare, TemplateKnown}

// postProcessor is what stands around a text, with the fields of all types.
type postProcessor struct {
	Type       string                  `json:"type"`
	Single     []templatePart          `json:"single"`         // TemplateProcessing
	Tokens     map[string]templateWord `json:"special_tokens"` // TemplateProcessing
	Sep        *nameAndID              `json:"sep"`            // BertProcessing, RobertaProcessing
	Cls        *nameAndID              `json:"cls"`
	Processors []json.RawMessage       `json:"processors"` // Sequence
}

type templatePart struct {
	Token    *templateID `json:"SpecialToken,omitempty"`
	Sequence *templateID `json:"Sequence,omitempty"`
}

type templateID struct {
	ID   string `json:"id"`
	Type int    `json:"type_id"`
}

type templateWord struct {
	ID     string   `json:"id"`
	IDs    []int32  `json:"ids"`
	Tokens []string `json:"tokens"`
}

// nameAndID is ["</s>", 2].
type nameAndID struct {
	name string
	id   int32
}

// UnmarshalJSON implements json.Unmarshaler.
func (x *nameAndID) UnmarshalJSON(b []byte) error {
	var list []json.RawMessage
	if err := json.Unmarshal(b, &list); err != nil || len(list) != 2 {
		return fmt.Errorf("must be a token and its id (got %.60s)", b)
	}
	if err := json.Unmarshal(list[0], &x.name); err != nil {
		return err
	}
	return json.Unmarshal(list[1], &x.id)
}

// template reads the tokens before and behind a text.
func template(raw json.RawMessage, depth int) (begin, end []int32, err error) {
	if none(raw) {
		return nil, nil, nil
	}
	var p postProcessor
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, nil, fmt.Errorf("tokenizer: post_processor: %w", err)
	}
	switch p.Type {
	case "ByteLevel": // places of characters, which are not kept
		return nil, nil, nil
	case "BertProcessing", "RobertaProcessing":
		if p.Cls == nil || p.Sep == nil {
			return nil, nil, fmt.Errorf("tokenizer: post_processor %s has no cls or no sep", p.Type)
		}
		return []int32{p.Cls.id}, []int32{p.Sep.id}, nil
	case "TemplateProcessing":
		texts := 0
		for _, x := range p.Single {
			if x.Sequence != nil {
				texts++
			}
			if x.Token == nil {
				continue
			}
			w, ok := p.Tokens[x.Token.ID]
			if !ok {
				return nil, nil, fmt.Errorf("tokenizer: post_processor: special_tokens has no %q", x.Token.ID)
			}
			if texts == 0 {
				begin = append(begin, w.IDs...)
			} else {
				end = append(end, w.IDs...)
			}
		}
		if texts != 1 {
			return nil, nil, fmt.Errorf("tokenizer: post_processor: single must have one Sequence (got %d)", texts)
		}
		return begin, end, nil
	case "Sequence":
		if depth >= maxNesting {
			return nil, nil, fmt.Errorf("tokenizer: post_processor: sequences lie in each other more than %d deep",
				maxNesting)
		}
		for _, raw := range p.Processors {
			b, e, err := template(raw, depth+1)
			if err != nil {
				return nil, nil, err
			}
			if len(b)+len(e) > 0 && len(begin)+len(end) > 0 { // to tokenizers a text with its tokens is several texts
				return nil, nil, fmt.Errorf(
					"tokenizer: post_processor: a Sequence may put tokens around a text once: join its templates to one")
			}
			begin, end = append(begin, b...), append(end, e...)
		}
		return begin, end, nil
	}
	return nil, nil, fmt.Errorf("tokenizer: post_processor %q is not known", p.Type)
}

// setTemplate writes a template of the tokens with the given names; an empty name is none.
func (f *jsonFile) setTemplate(before, behind string, id func(string) (int32, bool)) error {
	p := struct {
		Type   string                  `json:"type"`
		Single []templatePart          `json:"single"`
		Pair   []templatePart          `json:"pair"`
		Tokens map[string]templateWord `json:"special_tokens"`
	}{Type: "TemplateProcessing", Tokens: map[string]templateWord{}}
	part := func(name string) error {
		if name == "" {
			return nil
		}
		x, ok := id(name)
		if !ok {
			return fmt.Errorf("tokenizer: the vocabulary lacks %s, which stands around a text", name)
		}
		p.Tokens[name] = templateWord{name, []int32{x}, []string{name}}
		p.Single = append(p.Single, templatePart{Token: &templateID{ID: name}})
		return nil
	}
	if err := part(before); err != nil {
		return err
	}
	p.Single = append(p.Single, templatePart{Sequence: &templateID{ID: "A"}})
	if err := part(behind); err != nil {
		return err
	}
	p.Pair = []templatePart{{Sequence: &templateID{ID: "A"}}, {Sequence: &templateID{ID: "B", Type: 1}}}
	b, err := json.Marshal(p)
	f.PostProcessor = b
	return err
}
