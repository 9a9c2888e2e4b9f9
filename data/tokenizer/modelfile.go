package tokenizer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"

	"github.com/geoalign/geoalign/internal/strictjson"
)

// readJSON is parseJSON with errors that name what is read.
func readJSON(b []byte) (*jsonFile, error) {
	f, err := parseJSON(b)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: tokenizer.json: %w", err)
	}
	return f, nil
}

// parseJSON reads a tokenizer.json, a vocab.json or a vocabulary of whole words in one pass.
func parseJSON(b []byte) (*jsonFile, error) {
	r, err := strictjson.NewReader(b)
	if err != nil {
		return nil, err
	}
	var f jsonFile
	if vocabJSON.Match(b) {
		if f.vocab, err = readIDs(r, "vocab.json"); err != nil {
			return nil, err
		}
		return &f, r.End()
	}
	rest, err := r.Except(map[string]func() error{
		"model":    func() error { return f.Model.read(r) },
		"word2idx": func() (err error) { f.words, err = readIDs(r, "word2idx"); return err },
	})
	if err != nil {
		return nil, err
	}
	if err := r.End(); err != nil || f.words != nil {
		return &f, err
	}
	return &f, json.Unmarshal(rest, &f)
}

// vocabJSON is how an object of tokens with their ids begins.
var vocabJSON = regexp.MustCompile(`^\s*\{\s*"(?:[^"\\]|\\.)*"\s*:\s*-?[0-9]`)

// modelFile is the model of a tokenizer.json. Its vocabulary and merges, nearly all of a file, are read once and
// without encoding/json.
type modelFile struct {
	text   string // as the file has it, "": none
	rest   []byte // without vocabulary and merges
	ids    map[string]int32
	scored []scoredText // instead of ids, of Unigram
	merges [][2]string  // nil: none
}

// MarshalJSON implements json.Marshaler.
func (m modelFile) MarshalJSON() ([]byte, error) { return []byte(cmp.Or(m.text, "null")), nil }

// UnmarshalJSON implements json.Unmarshaler.
func (m *modelFile) UnmarshalJSON(b []byte) error {
	r, err := strictjson.NewReader(b)
	if err != nil {
		return err
	}
	return m.read(r)
}

// read reads the model that r is at.
func (m *modelFile) read(r *strictjson.Reader) error {
	if none, err := r.Null(); none || err != nil {
		return err
	}
	start := r.At()
	var err error
	m.rest, err = r.Except(map[string]func() error{
		"vocab": func() (err error) {
			switch r.Peek() {
			case 'n':
				_, err = r.Null()
			case '[':
				m.scored, err = readScored(r)
			default:
				m.ids, err = readIDs(r, "model.vocab")
			}
			return err
		},
		"merges": func() (err error) {
			if none, err := r.Null(); none || err != nil {
				return err
			}
			m.merges, err = readMerges(r)
			return err
		},
	})
	m.text = r.Since(start)
	return err
}

// kind tells the kind of the model; old files do not name it.
func (m *modelFile) kind() (string, error) {
	if m.text == "" {
		return "", fmt.Errorf("tokenizer: tokenizer.json has no model.vocab")
	}
	k, err := typeOf(m.rest)
	switch {
	case err != nil || k != "":
		return k, err
	case m.merges != nil:
		return BPE, nil
	case m.scored != nil:
		return Unigram, nil
	}
	return WordPiece, nil
}

// settings reads all but vocabulary and merges. It is an error where the vocabulary is not that of the kind.
func (m *modelFile) settings(to any, kind string) error {
	if kind == Unigram && m.ids != nil {
		return fmt.Errorf("tokenizer: model.vocab of %s must be a list of [token, score] (got an object)", kind)
	}
	if kind != Unigram && m.scored != nil {
		return fmt.Errorf("tokenizer: model.vocab of %s must be an object of tokens with their ids (got a list)", kind)
	}
	if err := json.Unmarshal(m.rest, to); err != nil {
		return fmt.Errorf("tokenizer: tokenizer.json: %w", err)
	}
	return nil
}

// readIDs reads an object of tokens with their ids. key names it in errors.
func readIDs(r *strictjson.Reader, key string) (map[string]int32, error) {
	type entry struct {
		token string
		id    int32
	}
	var list []entry
	err := r.Members(func(token string) error {
		r.Peek()
		at := r.At()
		text, err := r.Value()
		if err != nil {
			return err
		}
		id, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return fmt.Errorf("%s: the id of %q must be a whole number (got %.60s at byte %d)", key, token, text, at+1)
		}
		list = append(list, entry{token, int32(id)})
		return nil
	})
	if err != nil {
		return nil, err
	}
	ids := make(map[string]int32, len(list))
	for i, x := range list {
		if ids[x.token] = x.id; len(ids) <= i {
			return nil, strictjson.Twice(x.token)
		}
	}
	return ids, nil
}

// readScored reads a list of [token, score].
func readScored(r *strictjson.Reader) ([]scoredText, error) {
	list, x, n := []scoredText{}, scoredText{}, 0
	bad := func() error {
		return fmt.Errorf("model.vocab: element %d must be a token and its score, such as [\"a\", -1.5]", len(list))
	}
	part := func() (err error) {
		switch n++; {
		case n == 1 && r.Peek() == '"':
			x.text, err = r.String()
			return err
		case n == 2 && (r.Peek() == '-' || r.Peek() >= '0' && r.Peek() <= '9'):
			text, err := r.Number()
			if err != nil {
				return err
			}
			if x.score, err = strconv.ParseFloat(text, 64); err != nil {
				return fmt.Errorf("model.vocab: element %d: the score %.60s is out of range", len(list), text)
			}
			return nil
		}
		return bad()
	}
	err := r.Array(func() error {
		if r.Peek() != '[' {
			return bad()
		}
		n = 0
		err := r.Array(part)
		if err == nil && n != 2 {
			err = bad()
		}
		list = append(list, x)
		return err
	})
	return list, err
}

// readMerges reads merges: ["a b", ...] in old files and [["a", "b"], ...] in new ones.
func readMerges(r *strictjson.Reader) ([][2]string, error) {
	if r.Peek() != '[' {
		return nil, fmt.Errorf("model.merges must be a list of pairs of tokens")
	}
	list, p, n := [][2]string{}, [2]string{}, 0
	part := func() error {
		s, err := r.String()
		if n < 2 {
			p[n] = s
		}
		n++
		return err
	}
	err := r.Array(func() error {
		switch r.Peek() {
		case '"':
			s, err := r.String()
			if err == nil {
				p, err = parseMerge(s)
			}
			if err != nil {
				return fmt.Errorf("model.merges: merge %d: %w", len(list), err)
			}
		case '[':
			n = 0
			if err := r.Array(part); err != nil {
				return err
			}
			if n != 2 {
				return fmt.Errorf("model.merges: merge %d is of %d tokens: it must be of two", len(list), n)
			}
		default:
			return fmt.Errorf("model.merges: merge %d must be a pair of tokens", len(list))
		}
		list = append(list, p)
		return nil
	})
	return list, err
}
