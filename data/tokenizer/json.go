package tokenizer

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/geoalign/geoalign/internal/words"
)

// jsonFile is a tokenizer.json. Parts that are null are none.
type jsonFile struct {
	Version       string          `json:"version"`
	Truncation    *truncation     `json:"truncation"`
	Padding       *padding        `json:"padding"`
	Added         []added         `json:"added_tokens"`
	Normalizer    json.RawMessage `json:"normalizer"`
	PreTokenizer  json.RawMessage `json:"pre_tokenizer"`
	PostProcessor json.RawMessage `json:"post_processor"`
	Decoder       json.RawMessage `json:"decoder"`
	Model         modelFile       `json:"model"`
	KnownOnly     bool            `json:"known_only,omitempty"` // of this module alone: see TemplateKnown

	// A JSON file of another kind has one of these instead.
	vocab map[string]int32 // of a vocab.json, beside which merges.txt lies
	words map[string]int32 // of a vocabulary of whole words
}

// truncation is how texts are cut; data.tokens says where.
type truncation struct {
	Direction string `json:"direction"`
}

// padding is how texts of a batch get one length.
type padding struct {
	Strategy   json.RawMessage `json:"strategy"`
	Direction  string          `json:"direction"`
	MultipleOf *int            `json:"pad_to_multiple_of"`
	ID         int32           `json:"pad_id"`
	Type       int             `json:"pad_type_id"`
	Token      string          `json:"pad_token"`
}

// newPadding pads with a token behind the text.
func newPadding(id int32, token string) *padding {
	return &padding{Strategy: json.RawMessage(`"BatchLongest"`), Direction: "Right", ID: id, Token: token}
}

type kind struct {
	Type string `json:"type"`
}

// typeOf is the type of a part of a file, "" for none.
func typeOf(raw json.RawMessage) (string, error) {
	if none(raw) {
		return "", nil
	}
	var k kind
	if err := json.Unmarshal(raw, &k); err != nil {
		return "", fmt.Errorf("tokenizer: tokenizer.json: %w", err)
	}
	return k.Type, nil
}

// albef is the tokenizer of f with TemplateALBEF.
func (f *jsonFile) albef() (*Tokenizer, error) {
	k, err := f.Model.kind()
	if err != nil {
		return nil, err
	}
	if k != WordPiece {
		return nil, fmt.Errorf("tokenizer: tokenizer.json holds a %s model, which data.template = %q does not fit: set it to %q", k, TemplateALBEF, TemplateFile)
	}
	var m wordPieceFile
	if err := f.Model.settings(&m, k); err != nil {
		return nil, err
	}
	m.Vocab = f.Model.ids
	pre, err := typeOf(f.PreTokenizer)
	if err != nil {
		return nil, err
	}
	var n bertNormalizer
	if !none(f.Normalizer) {
		if err := json.Unmarshal(f.Normalizer, &n); err != nil {
			return nil, fmt.Errorf("tokenizer: tokenizer.json: %w", err)
		}
	}
	cure := fmt.Sprintf(" with data.template = %q: set it to %q", TemplateALBEF, TemplateFile)
	switch {
	case len(m.Vocab) == 0:
		return nil, fmt.Errorf("tokenizer: tokenizer.json has no model.vocab")
	case m.Prefix != nil && *m.Prefix != continuation:
		return nil, fmt.Errorf("tokenizer: model.continuing_subword_prefix must be %q (got %q)%s", continuation,
			*m.Prefix, cure)
	case m.Unk != "" && m.Unk != UnkToken:
		return nil, fmt.Errorf("tokenizer: model.unk_token must be %q (got %q)%s", UnkToken, m.Unk, cure)
	case !none(f.PreTokenizer) && pre != "BertPreTokenizer":
		return nil, fmt.Errorf("tokenizer: pre_tokenizer must be BertPreTokenizer (got %q)%s", pre, cure)
	case !none(f.Normalizer) && n.Type != "BertNormalizer":
		return nil, fmt.Errorf("tokenizer: normalizer must be BertNormalizer (got %q)%s", n.Type, cure)
	}
	opt := n.options()
	opt.MaxWord = m.MaxWord
	ids := m.Vocab
	for _, a := range f.Added {
		if id, ok := ids[a.Content]; ok && id != a.ID {
			return nil, fmt.Errorf("tokenizer: added token %q has id %d, in model.vocab %d", a.Content, a.ID, id)
		}
		ids[a.Content] = a.ID
	}
	tokens, err := byID(ids, len(ids))
	if err != nil {
		return nil, err
	}
	return New(tokens, opt)
}

// byID returns the tokens by id, of which there must be at most size.
func byID(ids map[string]int32, size int) ([]string, error) {
	tokens, taken := make([]string, 0, len(ids)), make([]bool, 0, len(ids)) // a token may be empty
	for s, id := range ids {
		if len(s) > longestToken {
			return nil, tooLong(s)
		}
		if id < 0 || int(id) >= size {
			return nil, fmt.Errorf("tokenizer: token %q has id %d: ids must be 0 to %d without gaps", s, id, size-1)
		}
		for int(id) >= len(tokens) {
			tokens, taken = append(tokens, ""), append(taken, false)
		}
		if taken[id] {
			return nil, fmt.Errorf("tokenizer: id %d belongs to %q and %q", id, min(s, tokens[id]), max(s, tokens[id]))
		}
		tokens[id], taken[id] = s, true
	}
	return tokens, nil
}

// tooLong is the error of a token that a text would be searched for at each of its places.
func tooLong(token string) error {
	return fmt.Errorf("tokenizer: token %q has %d bytes, at most %d are read", words.Cut(token, 60), len(token),
		longestToken)
}

// build is the tokenizer of f with TemplateFile. roles are the names of special tokens that its folder gives.
func (f *jsonFile) build(roles roles) (t *Tokenizer, err error) {
	t = &Tokenizer{unk: -1, cls: -1, sep: -1, mask: -1, knownOnly: f.KnownOnly}
	if t.kind, err = f.Model.kind(); err != nil {
		return nil, err
	}
	if err := f.buildModel(t); err != nil {
		return nil, err
	}
	known := make(map[string]bool, len(f.Added))
	for _, a := range f.Added {
		known[a.Content] = true
	}
	for _, a := range roles.added {
		if !known[a.Content] {
			known[a.Content] = true
			f.Added = append(f.Added, a)
		}
	}
	cloned := false // added tokens are not the model's, whose map this is
	for _, a := range f.Added {
		id, ok := t.ids[a.Content]
		if ok && id != a.ID {
			return nil, fmt.Errorf("tokenizer: added token %q has id %d, in model.vocab %d", a.Content, a.ID, id)
		}
		if !ok && !cloned {
			t.ids, cloned = maps.Clone(t.ids), true
		}
		if !ok {
			t.ids[a.Content] = a.ID
		}
	}
	// Real vocabularies have a few gaps; a wild id would take memory.
	if t.tokens, err = byID(t.ids, 2*len(t.ids)+1024); err != nil {
		return nil, err
	}
	if err := checkGrowth(f.Normalizer, f.PreTokenizer); err != nil {
		return nil, err
	}
	if t.normalize, err = newNormalizer(f.Normalizer, 0); err != nil {
		return nil, err
	}
	if t.split, err = newSplitter(f.PreTokenizer, 0); err != nil {
		return nil, err
	}
	if t.begins, err = f.begins(); err != nil {
		return nil, err
	}
	if t.begin, t.end, err = template(f.PostProcessor, 0); err != nil {
		return nil, err
	}
	for _, id := range slices.Concat(t.begin, t.end) {
		if id < 0 || int(id) >= len(t.tokens) {
			return nil, fmt.Errorf("tokenizer: post_processor: id %d is not in the vocabulary of %d tokens", id,
				len(t.tokens))
		}
	}
	t.raw, t.normal = newAddedTokens(f.Added, false, nil), newAddedTokens(f.Added, true, t.normalize)
	if err := f.pad(t, roles); err != nil {
		return nil, err
	}
	if len(t.begin) > 0 {
		t.cls = t.begin[0]
	}
	if len(t.end) > 0 {
		t.sep = t.end[len(t.end)-1]
	}
	for _, name := range []string{MaskToken, "<mask>"} {
		if id, ok := t.ids[name]; ok && t.mask < 0 {
			t.mask = id
		}
	}
	if f.Truncation != nil && f.Truncation.Direction == "Left" {
		return nil, fmt.Errorf("tokenizer: truncation.direction must be Right (got Left): what is cut is the end of a text")
	}
	f.Truncation = nil
	if none(f.PostProcessor) { // else a WordPiece file would be read with TemplateALBEF
		if err := f.setTemplate("", "", t.ID); err != nil {
			return nil, err
		}
	}
	if f.Added == nil {
		f.Added = []added{} // other readers take no null
	}
	t.stored = sync.OnceValues(func() ([]byte, error) {
		b, err := json.MarshalIndent(f, "", " ")
		if err != nil {
			return nil, fmt.Errorf("tokenizer: %w", err)
		}
		return append(b, '\n'), nil
	})
	return t, nil
}

// buildModel sets model, ids of its vocabulary and unk.
func (f *jsonFile) buildModel(t *Tokenizer) error {
	read := func(to any) error { return f.Model.settings(to, t.kind) }
	switch t.kind {
	case WordPiece:
		var x wordPieceFile
		if err := read(&x); err != nil {
			return err
		}
		x.Vocab = f.Model.ids
		m, err := newWordPiece(&x)
		if err != nil {
			return err
		}
		t.model, t.unk, t.ids = m, m.unk, m.ids
	case BPE:
		var x bpeFile
		if err := read(&x); err != nil {
			return err
		}
		x.Vocab, x.Merges = f.Model.ids, f.Model.merges
		m, err := newBPE(&x)
		if err != nil {
			return err
		}
		t.model, t.unk, t.ids = m, m.unk, m.ids
	case Unigram:
		var x unigramFile
		if err := read(&x); err != nil {
			return err
		}
		x.Vocab = f.Model.scored
		m, err := newUnigram(&x)
		if err != nil {
			return err
		}
		t.model, t.unk, t.ids = m, m.unk, m.ids
	case WordLevel:
		var x wordLevelFile
		if err := read(&x); err != nil {
			return err
		}
		x.Vocab = f.Model.ids
		m, err := newWordLevel(&x)
		if err != nil {
			return err
		}
		t.model, t.unk, t.ids = m, m.unk, m.ids
	default:
		return fmt.Errorf("tokenizer: tokenizer.json holds a %s model: only WordPiece, BPE, Unigram and WordLevel are supported", t.kind)
	}
	return nil
}

// padNames are the usual names of padding, best first; the first ownPads are used for nothing else.
var padNames = []string{PadToken, "<pad>", "<|pad|>", "</s>", "<|endoftext|>", "<end_of_text>"}

const ownPads = 3

// pad finds what pads texts: the token that name or the file names, or one of a usual name.
func (f *jsonFile) pad(t *Tokenizer, roles roles) error {
	p, name := f.Padding, roles.pad
	switch {
	case name != "":
		id, ok := t.ids[name]
		if !ok {
			return fmt.Errorf("tokenizer: pad_token %q is not in the vocabulary", name)
		}
		p = newPadding(id, name)
	case p == nil:
		i := slices.IndexFunc(padNames, func(s string) bool { _, ok := t.ids[s]; return ok })
		switch {
		case i < 0 && roles.bare: // the mean reads no padding
			p = newPadding(0, t.Token(0))
			f.Padding, t.padRow = p, -1
			return nil
		case i < 0:
			return fmt.Errorf("tokenizer: no token to pad with: name it as pad_token in a tokenizer_config.json beside the file")
		}
		p = newPadding(t.ids[padNames[i]], padNames[i])
	}
	if p.Direction == "Left" {
		return fmt.Errorf("tokenizer: padding.direction must be Right (got Left): texts are padded at their end")
	}
	if p.ID < 0 || int(p.ID) >= len(t.tokens) {
		return fmt.Errorf("tokenizer: padding.pad_id must be an id of the %d tokens (got %d)", len(t.tokens), p.ID)
	}
	f.Padding, t.pad, t.padRow = p, p.ID, p.ID
	token := t.tokens[t.pad]
	if slices.Contains(t.begin, t.pad) || slices.Contains(t.end, t.pad) || !f.special(token) &&
		!slices.Contains(padNames[:ownPads], token) {
		t.padRow = -1
	}
	return nil
}

// special reports whether a token is not an ordinary one.
func (f *jsonFile) special(token string) bool {
	return slices.ContainsFunc(f.Added, func(a added) bool { return a.Content == token && a.Special })
}

// JSON returns the tokenizer as a tokenizer.json that Parse reads back equal. With TemplateFile other readers
// encode texts alike. With TemplateALBEF they see the model, the normaliser and the special tokens; the
// missing [SEP] at the end is theirs to keep (it has no post_processor).
func (t *Tokenizer) JSON() ([]byte, error) {
	if !t.albef {
		b, err := t.stored()
		return slices.Clone(b), err
	}
	prefix := continuation
	n := bertNormalizer{"BertNormalizer", t.opt.CleanText, t.opt.SplitChinese, &t.opt.StripAccents, t.opt.Lowercase}
	f := jsonFile{Version: "1.0"}
	for _, s := range specials {
		if id, ok := t.ids[s]; ok {
			f.Added = append(f.Added, added{ID: id, Content: s, Special: true})
		}
	}
	if err := f.set(n, kind{"BertPreTokenizer"}, wordPieceFile{WordPiece, UnkToken, &prefix, t.opt.MaxWord,
		t.ids}); err != nil {
		return nil, err
	}
	b, err := json.MarshalIndent(f, "", " ")
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	return append(b, '\n'), nil
}

// set writes the steps of a file; nil is none.
func (f *jsonFile) set(normalizer, preTokenizer, model any) error {
	for _, x := range []struct {
		to   json.Unmarshaler
		from any
	}{{&f.Normalizer, normalizer}, {&f.PreTokenizer, preTokenizer}, {&f.Model, model}} {
		b, err := json.Marshal(x.from)
		if err == nil {
			err = x.to.UnmarshalJSON(b)
		}
		if err != nil {
			return fmt.Errorf("tokenizer: %w", err)
		}
	}
	return nil
}
