package tokenizer

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// clipHeader begins CLIP's list of merges.
const clipHeader = `"bpe_simple_vocab_16e6.txt#version`

// clipMerges is how many of CLIP's merges are used: a vocabulary of 49152 tokens without the bytes, alone
// and at the end of a word, and without two special ones.
const clipMerges = 49152 - 256 - 2

// Steps of tokenizers that are written here; other types are only read.
type (
	sequenceOf struct {
		Type  string `json:"type"`
		Steps []any  `json:"normalizers"`
	}
	splittersOf struct {
		Type  string `json:"type"`
		Steps []any  `json:"pretokenizers"`
	}
	replaceStep struct {
		Type    string    `json:"type"`
		Pattern regexStep `json:"pattern"`
		Content string    `json:"content"`
	}
	regexStep struct {
		Regex string
	}
	splitStep struct {
		Type     string    `json:"type"`
		Pattern  regexStep `json:"pattern"`
		Behavior string    `json:"behavior"`
		Invert   bool      `json:"invert"`
	}
	byteLevelStep struct {
		Type        string `json:"type"`
		PrefixSpace bool   `json:"add_prefix_space"`
		TrimOffsets bool   `json:"trim_offsets"`
		UseRegex    bool   `json:"use_regex"`
	}
	bpeStep struct {
		Type    string           `json:"type"`
		Unk     *string          `json:"unk_token"`
		Suffix  string           `json:"end_of_word_suffix"`
		FuseUnk bool             `json:"fuse_unk"`
		Vocab   map[string]int32 `json:"vocab"`
		Merges  [][2]string      `json:"merges"`
	}
)

func replaceRegex(regex, with string) replaceStep {
	return replaceStep{"Replace", regexStep{regex}, with}
}

// parseMerges reads a list of merges: one a line, the first line may be a version.
func parseMerges(b []byte) ([][2]string, error) {
	if !utf8.Valid(b) {
		return nil, fmt.Errorf("tokenizer: merges are not UTF-8 text")
	}
	var merges [][2]string
	for i, s := range strings.Split(string(b), "\n") {
		s = strings.TrimSuffix(s, "\r")
		if s == "" || i == 0 && (strings.HasPrefix(s, "#version") || strings.HasPrefix(s, clipHeader)) {
			continue
		}
		p, err := parseMerge(s)
		if err != nil {
			return nil, fmt.Errorf("tokenizer: merges: line %d: %w", i+1, err)
		}
		merges = append(merges, p)
	}
	return merges, nil
}

// withMerges is a vocab.json with its merges.txt: of CLIP where tokens end in </w>, else of RoBERTa or GPT-2.
func withMerges(ids map[string]int32, merges []byte, c folderConfig) (*jsonFile, error) {
	list, err := parseMerges(merges)
	if err != nil {
		return nil, err
	}
	for s := range ids {
		if strings.HasSuffix(s, wordEnd) {
			return newCLIP(ids, list, "<|startoftext|>", "<|endoftext|>", false)
		}
	}
	return newGPT2(ids, list, c)
}

// parseCLIPMerges reads CLIP's merges, which number the tokens: bytes, bytes that end a word, what the merges
// make, and the two special ones, with their names in open_clip.
func parseCLIPMerges(b []byte) (*jsonFile, error) {
	merges, err := parseMerges(b)
	if err != nil {
		return nil, err
	}
	merges = merges[:min(len(merges), clipMerges)]
	ids := map[string]int32{}
	add := func(s string) error {
		if _, ok := ids[s]; ok {
			return fmt.Errorf("tokenizer: merges make %q twice", s)
		}
		ids[s] = int32(len(ids))
		return nil
	}
	alphabet := clipAlphabet()
	for _, end := range []string{"", wordEnd} {
		for _, r := range alphabet {
			if err := add(string(r) + end); err != nil {
				return nil, err
			}
		}
	}
	for _, m := range merges {
		if err := add(m[0] + m[1]); err != nil {
			return nil, err
		}
	}
	begin, end := "<start_of_text>", "<end_of_text>"
	for _, s := range []string{begin, end} {
		if err := add(s); err != nil {
			return nil, err
		}
	}
	return newCLIP(ids, merges, begin, end, true)
}

// clipAlphabet are the characters of all bytes, those that are themselves first.
func clipAlphabet() []rune {
	var own, others []rune
	for b, r := range byteRunes {
		if r == rune(b) {
			own = append(own, r)
		} else {
			others = append(others, r)
		}
	}
	return slices.Concat(own, others)
}

// newCLIP is the tokenizer of CLIP. anyCase says that the special tokens are found in any case.
func newCLIP(ids map[string]int32, merges [][2]string, begin, end string, anyCase bool) (*jsonFile, error) {
	f := &jsonFile{Version: "1.0"}
	for _, s := range []string{begin, end} {
		if id, ok := ids[s]; ok {
			f.Added = append(f.Added, added{ID: id, Content: s, Special: true, Normalized: anyCase})
		}
	}
	n := sequenceOf{"Sequence", []any{kind{"NFC"}, replaceRegex(`\s+`, " "), kind{"Lowercase"}}}
	p := splittersOf{"Sequence", []any{splitStep{"Split", regexStep{clipWords}, "Removed", true},
		byteLevelStep{Type: "ByteLevel"}}}
	if err := f.set(n, p, bpeStep{Type: BPE, Unk: &end, Suffix: wordEnd, Vocab: ids, Merges: merges}); err != nil {
		return nil, err
	}
	return f, f.setTemplate(begin, end, func(s string) (int32, bool) { id, ok := ids[s]; return id, ok })
}

// newGPT2 is the byte-level tokenizer of GPT-2, with RoBERTa's special tokens where the vocabulary has them.
func newGPT2(ids map[string]int32, merges [][2]string, c folderConfig) (*jsonFile, error) {
	id := func(s string) (int32, bool) { x, ok := ids[s]; return x, ok }
	f := &jsonFile{Version: "1.0"}
	for _, s := range []string{"<s>", "<pad>", "</s>", "<unk>", "<mask>", "<|endoftext|>"} {
		if x, ok := id(s); ok {
			// RoBERTa's mask takes the space before it.
			f.Added = append(f.Added, added{ID: x, Content: s, Special: true, Lstrip: s == "<mask>"})
		}
	}
	p := byteLevelStep{Type: "ByteLevel", PrefixSpace: c.PrefixSpace, TrimOffsets: true, UseRegex: true}
	if err := f.set(nil, p, bpeStep{Type: BPE, Vocab: ids, Merges: merges}); err != nil {
		return nil, err
	}
	begin, end := "<s>", "</s>"
	if _, ok := id(begin); !ok {
		begin, end = "", ""
	}
	return f, f.setTemplate(begin, end, id)
}
