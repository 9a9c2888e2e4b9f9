package tokenizer

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/words"
)

// Files of a folder, best first. Those that stand beside others have their own place.
var folderFiles = []string{"tokenizer.json", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model", "vocab.json",
	"vocab.txt"}

// Load reads the tokenizer of a file, or of a folder that has one of a usual name:
//
//   - a Hugging Face tokenizer.json
//   - a BERT vocab.txt: one token a line, the line number is the id
//   - a vocab.json with its merges.txt beside it (RoBERTa, CLIP)
//   - CLIP's bpe_simple_vocab_16e6.txt, as it is or .gz
//   - a SentencePiece .model of a unigram model
//   - a vocabulary of whole words {"word2idx": ...} of VSE++, SCAN and their successors
//
// With TemplateALBEF it is read as a BERT vocabulary: only WordPiece fits. With TemplateFile a
// tokenizer_config.json beside the file is read too, which names the padding and the class and may add tokens.
func Load(path, template string) (*Tokenizer, error) {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		var err error
		if path, err = inFolder(path); err != nil {
			return nil, err
		}
	}
	b, err := files.Read(path, files.MaxVocabulary)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: vocabulary: %w", err)
	}
	t, err := read(path, template, b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, words.Short(err))
	}
	return t, nil
}

// inFolder returns the file of a folder that its tokenizer is read from.
func inFolder(dir string) (string, error) {
	for _, name := range folderFiles {
		if path := filepath.Join(dir, name); isFile(path) {
			return path, nil
		}
	}
	return "", fmt.Errorf("tokenizer: vocabulary: %s has none of %s: name the file", dir,
		strings.Join(folderFiles, ", "))
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}

func read(path, template string, b []byte) (*Tokenizer, error) {
	if template == TemplateALBEF {
		f, err := plainFile(b)
		var t *Tokenizer
		switch {
		case err != nil:
		case f == nil:
			t, err = parseVocab(b)
		case f.words != nil:
			return nil, fmt.Errorf("tokenizer: a vocabulary of words has <start> and <end> around a text, which data.template = %q does not fit: set it to %q", TemplateALBEF, TemplateFile)
		case f.vocab != nil:
			err = errors.New("tokenizer: a vocab.json beside merges.txt is of BPE")
		default:
			return f.albef()
		}
		if err != nil {
			err = fmt.Errorf("%w: data.template = %q is for BERT vocabularies, and %q for others", err, TemplateALBEF,
				TemplateFile)
		}
		return t, err
	}
	if !slices.Contains(Templates, template) {
		return nil, fmt.Errorf("tokenizer: no template %q: the templates are %s", template, strings.Join(Templates, ", "))
	}
	c, err := readConfigBeside(path)
	if err != nil {
		return nil, err
	}
	name := strings.ToLower(filepath.Base(path))
	if strings.HasSuffix(name, ".gz") {
		if b, err = unzip(b); err != nil {
			return nil, err
		}
		name = strings.TrimSuffix(name, ".gz")
	}
	var f *jsonFile
	switch {
	case name == "sentencepiece.bpe.model" && c.Class == "": // a name of XLM-RoBERTa and its relatives
		return nil, errors.New("tokenizer: the pieces of a file of this name have other numbers in XLM-RoBERTa and its relatives: save it as a tokenizer.json, or name it otherwise")
	case filepath.Ext(name) == ".model":
		f, err = parseSentencePiece(b, c)
	case bytes.HasPrefix(b, []byte("#version")), bytes.HasPrefix(b, []byte(clipHeader)):
		if f, err = parseCLIPMerges(b); err == nil && c.roles.pad == "" {
			c.roles.pad = "!" // id 0
		}
	default:
		f, err = plainFile(b)
		switch {
		case err != nil:
		case f == nil:
			f, err = parseBERTVocab(b, c)
		case f.words != nil:
			f, err = wordFile(f.words)
		case f.vocab != nil:
			var merges []byte
			if merges, err = files.Read(filepath.Join(filepath.Dir(path), "merges.txt"), files.MaxVocabulary); err != nil {
				return nil, fmt.Errorf("tokenizer: a vocab.json needs its merges.txt beside it: %w", err)
			}
			f, err = withMerges(f.vocab, merges, c)
		}
	}
	if err != nil {
		return nil, err
	}
	if template != TemplateFile {
		f.PostProcessor, f.KnownOnly, c.roles.bare = nil, template == TemplateKnown, true
	}
	return f.build(c.roles)
}

// plainFile reads a JSON file, nil where b is another. JSON starts with a brace.
func plainFile(b []byte) (*jsonFile, error) {
	b = files.WithoutMark(b)
	if !bytes.HasPrefix(bytes.TrimSpace(b), []byte("{")) {
		return nil, nil
	}
	return readJSON(b)
}

// unzip undoes gzip, up to the size of a vocabulary.
func unzip(b []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	out, err := io.ReadAll(io.LimitReader(z, files.MaxVocabulary+1))
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	if len(out) > files.MaxVocabulary {
		return nil, fmt.Errorf("tokenizer: more than %d bytes when unpacked: this is not a vocabulary",
			files.MaxVocabulary)
	}
	return out, nil
}

// Parse reads a tokenizer as a checkpoint stores it (JSON), or a vocab.txt with TemplateALBEF. A
// WordPiece tokenizer.json without a post_processor has TemplateALBEF.
func Parse(b []byte) (*Tokenizer, error) {
	f, err := plainFile(b)
	if err != nil {
		return nil, err
	}
	if f == nil {
		return parseVocab(b)
	}
	k, err := f.Model.kind()
	if err != nil {
		return nil, err
	}
	if k == WordPiece && none(f.PostProcessor) {
		return f.albef()
	}
	return f.build(roles{})
}

// roles are names of special tokens, "" where nothing says them, and the tokens that the folder of a file adds to it.
type roles struct {
	pad, unk string
	added    []added
	bare     bool // a text may be without a token to pad with
}

// folderConfig is a tokenizer_config.json.
type folderConfig struct {
	Class       string `json:"tokenizer_class"`
	Lowercase   *bool  `json:"do_lower_case"`
	Accents     *bool  `json:"strip_accents"`
	Chinese     *bool  `json:"tokenize_chinese_chars"`
	PrefixSpace bool   `json:"add_prefix_space"`
	Pad         name   `json:"pad_token"`
	Unk         name   `json:"unk_token"`
	Side        string `json:"padding_side"`
	Cut         string `json:"truncation_side"`

	Added map[int32]added `json:"added_tokens_decoder"` // by id

	roles roles
}

// is reports whether the class is that of a family, in any of its forms.
func (c folderConfig) is(family string) bool {
	return c.Class == family+"Tokenizer" || c.Class == family+"TokenizerFast"
}

// name is a token: a text, or an object with its content.
type name string

// UnmarshalJSON implements json.Unmarshaler.
func (n *name) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	var s string
	if json.Unmarshal(b, &s) == nil {
		*n = name(s)
		return nil
	}
	var o struct {
		Content string `json:"content"`
	}
	err := json.Unmarshal(b, &o)
	*n = name(o.Content)
	return err
}

// readConfigBeside reads the tokenizer_config.json in the folder of path, and special_tokens_map.json for the names of
// tokens that it does not say.
func readConfigBeside(path string) (c folderConfig, err error) {
	for _, file := range []string{"tokenizer_config.json", "special_tokens_map.json"} {
		beside := filepath.Join(filepath.Dir(path), file)
		b, err := files.Read(beside, files.MaxVocabulary)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return c, fmt.Errorf("tokenizer: %w", err)
		}
		var next folderConfig
		if err := json.Unmarshal(b, &next); err != nil {
			return c, fmt.Errorf("tokenizer: %s: %w", beside, err)
		}
		if file == "tokenizer_config.json" {
			c = next
			continue
		}
		c.Pad, c.Unk = cmp.Or(c.Pad, next.Pad), cmp.Or(c.Unk, next.Unk)
	}
	if c.Side == "left" {
		return c, fmt.Errorf("tokenizer: tokenizer_config.json: padding_side must be right (got left): texts are padded at their end")
	}
	if c.Cut == "left" {
		return c, fmt.Errorf("tokenizer: tokenizer_config.json: truncation_side must be right (got left): what is cut is the end of a text")
	}
	if c.Added == nil {
		if err := c.oldAdded(filepath.Join(filepath.Dir(path), "added_tokens.json")); err != nil {
			return c, err
		}
	}
	c.roles = roles{pad: string(c.Pad), unk: string(c.Unk)}
	for _, id := range slices.Sorted(maps.Keys(c.Added)) {
		a := c.Added[id]
		a.ID = id
		c.roles.added = append(c.roles.added, a)
	}
	return c, nil
}

// oldAdded reads an added_tokens.json, which older folders have instead of added_tokens_decoder: {"<token>": id}.
func (c *folderConfig) oldAdded(path string) error {
	b, err := files.Read(path, files.MaxVocabulary)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var ids map[string]int32
	if err == nil {
		err = json.Unmarshal(b, &ids)
	}
	if err != nil {
		return fmt.Errorf("tokenizer: %s: %w", path, err)
	}
	c.Added = map[int32]added{}
	for s, id := range ids {
		if a, ok := c.Added[id]; ok {
			return fmt.Errorf("tokenizer: %s: id %d belongs to %q and %q", path, id, min(s, a.Content),
				max(s, a.Content))
		}
		c.Added[id] = added{Content: s, Normalized: true}
	}
	return nil
}
