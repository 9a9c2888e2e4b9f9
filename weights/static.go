package weights

import (
	"encoding/binary"
	"fmt"

	"github.com/geoalign/geoalign/encoders"
)

// static is a table of tokens whose mean stands for a text: StaticEmbedding of sentence-transformers, model2vec
// (Tulkens and van Dongen 2024) and WordLlama. The table of model2vec may be one of fewer rows, with the row of each
// token (mapping), and a weight of each token (weights).
var static = family{
	name:  "static",
	types: []string{"model2vec"},
	find: func(f *File) []part {
		p := part{prefixes: []string{""}, marks: []string{"embeddings"}, needs: []rule{{"text/embeddings/word/weight",
			"{embeddings,mapping,weights} | {embeddings,mapping} | {embeddings,weights} | embeddings | embedding.weight",
			&shaping{join: joinTable}}}}
		if _, ok := f.Lookup("embedding.weight"); ok && len(f.Names()) == 1 { // of other models it is one of many
			p.marks = []string{"embedding.weight"}
		}
		if _, ok := p.prefix(f); !ok {
			return nil
		}
		return []part{p}
	},
	describe: func(d *description) error {
		rows, err := d.size("text/embeddings/word/weight", 0)
		if err != nil {
			return err
		}
		width, err := d.size("text/embeddings/word/weight", 1)
		if err != nil {
			return err
		}
		k := d.keys()
		tokens := k.whole("max_length")
		if k.err != nil {
			return k.err
		}
		if tokens == 0 {
			tokens = staticTokens
			d.note("texts are cut at %d tokens, which no file says: set data.tokens for longer ones", tokens)
		}
		if _, ok := d.file.Lookup("embeddings"); ok && len(d.modules) > 0 {
			d.note("unknown tokens are left out, as model2vec does; sentence-transformers averages them too")
		}
		d.set("model.text.style", encoders.StyleBlock)
		d.set("model.text.layers", 0)
		d.set("model.text.fusion_layers", 0)
		d.set("model.text.width", width)
		d.set("model.text.heads", 1)
		d.set("model.text.positions", max(tokens, staticPositions))
		d.set("model.text.pool", string(encoders.PoolMean))
		d.set("model.text.block.places", encoders.PlacesNone)
		d.set("model.text.block.final_norm", false)
		d.set("data.tokens", tokens)
		if rows < 1 {
			return fmt.Errorf("its table has no rows")
		}
		return nil
	},
}

// Of a table, which has no positions: where texts are cut unless a file says it, and the most that data.tokens may be.
const (
	staticTokens    = 512
	staticPositions = 8192
)

// joinTable is a row for each token: of a table (N, D), of which a mapping (V) names one, times a weight (V).
func joinTable(in []*Tensor) (value, error) {
	table := in[0]
	if len(table.Shape) != 2 {
		return value{}, odd(table, "(rows, width)")
	}
	n, d := table.Shape[0], table.Shape[1]
	var mapping, factors *Tensor
	for _, t := range in[1:] {
		if len(t.Shape) != 1 {
			return value{}, odd(t, "one number for each token")
		}
		if t.Name == "mapping" {
			mapping = t
		} else {
			factors = t
		}
	}
	tokens := n
	if mapping != nil {
		tokens = mapping.Len()
	}
	if factors != nil && factors.Len() != tokens {
		return value{}, odd(factors, fmt.Sprintf("a weight for each of %d tokens", tokens))
	}
	return value{shape: []int{tokens, d}, read: func(dst []float32) error {
		var places []int64
		if mapping != nil {
			var err error
			if places, err = mapping.integers(mapping.Len(), 0); err != nil {
				return err
			}
		}
		if mapping == nil {
			if err := table.row(dst, 0); err != nil {
				return err
			}
		}
		for i, p := range places {
			if p < 0 || p >= int64(n) {
				return fmt.Errorf("weights: %s: tensor %q has the row %d, and %q has %d", mapping.file.path, mapping.Name,
					p, table.Name, n)
			}
			if err := table.row(dst[i*d:(i+1)*d], int(p)*d); err != nil {
				return err
			}
		}
		if factors == nil {
			return nil
		}
		by := make([]float32, tokens)
		if err := factors.Read(by, 0); err != nil {
			return err
		}
		for i := range dst {
			dst[i] *= by[i/d]
		}
		return nil
	}}, nil
}

// row is Read for tables that may be of I8, as model2vec stores them: numbers without a scale.
func (t *Tensor) row(dst []float32, from int) error {
	if t.DType != "I8" {
		return t.Read(dst, from)
	}
	list, err := t.integers(len(dst), from)
	for i, x := range list {
		dst[i] = float32(x)
	}
	return err
}

// integers reads n integers from element from on.
func (t *Tensor) integers(n, from int) ([]int64, error) {
	size := map[string]int{"I64": 8, "I32": 4, "I8": 1}[t.DType]
	if size == 0 || t.strides != nil {
		return nil, fmt.Errorf("weights: %s: tensor %q has numbers of type %s, and I64, I32 and I8 are read", t.file.path,
			t.Name, t.DType)
	}
	b := make([]byte, n*size)
	if err := t.bytes(b, t.offset+int64(from*size)); err != nil {
		return nil, err
	}
	list := make([]int64, n)
	for i := range list {
		switch at := b[i*size:]; size {
		case 8:
			list[i] = int64(binary.LittleEndian.Uint64(at))
		case 4:
			list[i] = int64(int32(binary.LittleEndian.Uint32(at)))
		default:
			list[i] = int64(int8(at[0]))
		}
	}
	return list, nil
}
