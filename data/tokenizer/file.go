package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/strictjson"
)

// Load reads a BERT vocab.txt (one token a line, the line number is the id;
// Default options) or a Hugging Face tokenizer.json of a WordPiece model.
func Load(path string) (*Tokenizer, error) {
	b, err := files.Read(path, files.MaxVocabulary)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: vocabulary: %w", err)
	}
	t, err := Parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// Parse reads what Load reads. The format shows: JSON starts with a brace.
func Parse(b []byte) (*Tokenizer, error) {
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	if bytes.HasPrefix(bytes.TrimSpace(b), []byte("{")) {
		return parseJSON(b)
	}
	return parseVocab(b)
}

// Vocab returns the vocabulary as a vocab.txt. It does not hold the options:
// use JSON for other ones than Default.
func (t *Tokenizer) Vocab() []byte {
	return []byte(strings.Join(t.tokens, "\n") + "\n")
}

// Save writes the tokenizer: as tokenizer.json where path ends in .json, else as
// vocab.txt, which only a tokenizer with Default options fits in.
func (t *Tokenizer) Save(path string) error {
	b := t.Vocab()
	if filepath.Ext(path) == ".json" {
		var err error
		if b, err = t.JSON(); err != nil {
			return err
		}
	} else if t.opt != Default() {
		return fmt.Errorf("tokenizer: %s: a vocab.txt cannot hold options other than the default: save as .json", path)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		return fmt.Errorf("tokenizer: save: %w", err)
	}
	return nil
}

func parseVocab(b []byte) (*Tokenizer, error) {
	if !utf8.Valid(b) {
		return nil, fmt.Errorf("tokenizer: vocab.txt is not UTF-8 text")
	}
	text := strings.TrimRight(string(b), "\r\n")
	if text == "" {
		return nil, fmt.Errorf("tokenizer: vocab.txt is empty")
	}
	lines := strings.Split(text, "\n")
	for i, s := range lines {
		lines[i] = strings.TrimSuffix(s, "\r")
		if lines[i] == "" {
			return nil, fmt.Errorf("tokenizer: vocab.txt: line %d is blank: every line is a token", i+1)
		}
	}
	return New(lines, Default())
}

// file is the part of a tokenizer.json that matters to WordPiece.
type file struct {
	Version       string      `json:"version"`
	Truncation    *struct{}   `json:"truncation"`
	Padding       *struct{}   `json:"padding"`
	Added         []added     `json:"added_tokens"`
	Normalizer    *normalizer `json:"normalizer"`
	PreTokenizer  *kind       `json:"pre_tokenizer"`
	PostProcessor *struct{}   `json:"post_processor"`
	Decoder       *struct{}   `json:"decoder"`
	Model         model       `json:"model"`
}

type added struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	Lstrip     bool   `json:"lstrip"`
	Rstrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

type kind struct {
	Type string `json:"type"`
}

type normalizer struct {
	Type         string `json:"type"`
	CleanText    bool   `json:"clean_text"`
	Chinese      bool   `json:"handle_chinese_chars"`
	StripAccents *bool  `json:"strip_accents"` // null: as lowercase
	Lowercase    bool   `json:"lowercase"`
}

type model struct {
	Type    string           `json:"type"`
	Unk     string           `json:"unk_token"`
	Prefix  *string          `json:"continuing_subword_prefix"`
	MaxWord int              `json:"max_input_chars_per_word"`
	Vocab   map[string]int32 `json:"vocab"`
}

func parseJSON(b []byte) (*Tokenizer, error) {
	var f file
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, fmt.Errorf("tokenizer: tokenizer.json: %w", err)
	}
	if err := strictjson.Check(b); err != nil {
		return nil, fmt.Errorf("tokenizer: tokenizer.json: %w", err)
	}
	switch {
	case f.Model.Type != "" && f.Model.Type != "WordPiece":
		return nil, fmt.Errorf("tokenizer: tokenizer.json holds a %s model: only WordPiece is supported", f.Model.Type)
	case len(f.Model.Vocab) == 0:
		return nil, fmt.Errorf("tokenizer: tokenizer.json has no model.vocab")
	case f.Model.Prefix != nil && *f.Model.Prefix != continuation:
		return nil, fmt.Errorf("tokenizer: model.continuing_subword_prefix must be %q (got %q)", continuation, *f.Model.Prefix)
	case f.Model.Unk != "" && f.Model.Unk != UnkToken:
		return nil, fmt.Errorf("tokenizer: model.unk_token must be %q (got %q)", UnkToken, f.Model.Unk)
	case f.PreTokenizer != nil && f.PreTokenizer.Type != "BertPreTokenizer":
		return nil, fmt.Errorf("tokenizer: pre_tokenizer must be BertPreTokenizer (got %q)", f.PreTokenizer.Type)
	case f.Normalizer != nil && f.Normalizer.Type != "BertNormalizer":
		return nil, fmt.Errorf("tokenizer: normalizer must be BertNormalizer (got %q)", f.Normalizer.Type)
	}
	opt := Options{MaxWord: f.Model.MaxWord}
	if n := f.Normalizer; n != nil {
		opt.CleanText, opt.SplitChinese, opt.Lowercase, opt.StripAccents = n.CleanText, n.Chinese, n.Lowercase, n.Lowercase
		if n.StripAccents != nil {
			opt.StripAccents = *n.StripAccents
		}
	}
	ids := f.Model.Vocab
	for _, a := range f.Added {
		if id, ok := ids[a.Content]; ok && id != a.ID {
			return nil, fmt.Errorf("tokenizer: added token %q has id %d, in model.vocab %d", a.Content, a.ID, id)
		}
		ids[a.Content] = a.ID
	}
	tokens := make([]string, len(ids))
	for s, id := range ids {
		switch {
		case id < 0 || int(id) >= len(tokens):
			return nil, fmt.Errorf("tokenizer: token %q has id %d: ids must be 0 to %d without gaps", s, id, len(tokens)-1)
		case tokens[id] != "":
			return nil, fmt.Errorf("tokenizer: id %d belongs to %q and %q", id, min(s, tokens[id]), max(s, tokens[id]))
		}
		tokens[id] = s
	}
	return New(tokens, opt)
}

// JSON returns the tokenizer as a tokenizer.json that Load reads back equal.
// Other readers see the model, the normaliser and the special tokens; the
// missing [SEP] at the end is theirs to keep (it has no post_processor).
func (t *Tokenizer) JSON() ([]byte, error) {
	prefix := continuation
	f := file{
		Version:      "1.0",
		Normalizer:   &normalizer{"BertNormalizer", t.opt.CleanText, t.opt.SplitChinese, &t.opt.StripAccents, t.opt.Lowercase},
		PreTokenizer: &kind{"BertPreTokenizer"},
		Model:        model{"WordPiece", UnkToken, &prefix, t.opt.MaxWord, t.ids},
	}
	for _, s := range specials {
		if id, ok := t.ids[s]; ok {
			f.Added = append(f.Added, added{ID: id, Content: s, Special: true})
		}
	}
	b, err := json.MarshalIndent(f, "", " ")
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	return append(b, '\n'), nil
}
