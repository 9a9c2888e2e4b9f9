package tokenizer

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/geoalign/geoalign/internal/files"
)

// Vocab returns the vocabulary as a vocab.txt. It does not hold the options:
// use JSON for other ones than Default.
func (t *Tokenizer) Vocab() []byte {
	return []byte(strings.Join(t.tokens, "\n") + "\n")
}

// Save writes the tokenizer: as tokenizer.json where path ends in .json, else as
// vocab.txt, which only a tokenizer with TemplateALBEF and Default options fits in.
func (t *Tokenizer) Save(path string) error {
	b := t.Vocab()
	if filepath.Ext(path) == ".json" {
		var err error
		if b, err = t.JSON(); err != nil {
			return err
		}
	} else if !t.albef || t.opt != Default() {
		return fmt.Errorf("tokenizer: %s: a vocab.txt cannot hold options other than the default: save as .json", path)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		return fmt.Errorf("tokenizer: save: %w", err)
	}
	return nil
}

// vocabLines are the tokens of a vocab.txt.
func vocabLines(b []byte) ([]string, error) {
	b = files.WithoutMark(b)
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
	return lines, nil
}

// parseVocab reads a vocab.txt with TemplateALBEF.
func parseVocab(b []byte) (*Tokenizer, error) {
	lines, err := vocabLines(b)
	if err != nil {
		return nil, err
	}
	return New(lines, Default())
}

// parseBERTVocab reads a vocab.txt as BERT and MPNet do: their special tokens stand around a text.
func parseBERTVocab(b []byte, c folderConfig) (*jsonFile, error) {
	lines, err := vocabLines(b)
	if err != nil {
		return nil, err
	}
	vocab := make(map[string]int32, len(lines))
	for i, s := range lines {
		if first, ok := vocab[s]; ok {
			return nil, fmt.Errorf("tokenizer: token %q has two ids (%d and %d): remove one", s, first, i)
		}
		vocab[s] = int32(i)
	}
	id := func(s string) (int32, bool) { x, ok := vocab[s]; return x, ok }
	unk, before, behind := UnkToken, ClsToken, SepToken
	if _, ok := id(ClsToken); !ok {
		before, behind = "<s>", "</s>"
	}
	if c.Unk != "" {
		unk = string(c.Unk)
	}
	yes := func(b *bool) bool { return b == nil || *b }
	f := &jsonFile{Version: "1.0"}
	for _, s := range []string{before, behind, unk, PadToken, "<pad>", MaskToken, "<mask>"} {
		if x, ok := id(s); ok && !f.special(s) {
			// MPNet's mask takes the space before it.
			f.Added = append(f.Added, added{ID: x, Content: s, Special: true, Lstrip: s == "<mask>"})
		}
	}
	prefix := continuation
	if err := f.set(bertNormalizer{"BertNormalizer", true, yes(c.Chinese), c.Accents, yes(c.Lowercase)},
		kind{"BertPreTokenizer"}, wordPieceFile{WordPiece, unk, &prefix, defaultMaxWord, vocab}); err != nil {
		return nil, err
	}
	return f, f.setTemplate(before, behind, id)
}
