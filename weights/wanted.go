package weights

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/weights/hub"
)

// besides are the files beside weights that Open, a tokenizer or sentence-transformers read.
var besides = []string{
	"config.json", "open_clip_config.json", "preprocessor_config.json", "processor_config.json",
	"tokenizer.json", "vocab.json", "vocab.txt", "merges.txt", "sentencepiece.bpe.model", "spiece.model",
	"tokenizer.model", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
	"modules.json", "sentence_bert_config.json", "config_sentence_transformers.json",
}

// Wanted says which files of a repository make a model that Open reads: those beside the weights, those of the modules of
// sentence-transformers, and the first weights in the order of Open, which may lie in a folder of their own
// (0_Transformer). It is a hub.Wanted.
func Wanted(s hub.Snapshot, names []string) ([]string, error) {
	list := slices.Clone(besides)
	if slices.Contains(names, "modules.json") && !s.Has("modules.json") {
		return list, nil // it says where the weights lie
	}
	var modules []module
	if _, err := readJSON(filepath.Join(s.Dir, "modules.json"), &modules); err != nil {
		return nil, err
	}
	inner := ""
	if i := slices.IndexFunc(modules, module.apart); i >= 0 {
		inner = path.Clean(modules[i].Path)
		for _, name := range besides {
			list = append(list, path.Join(inner, name))
		}
	}
	for _, m := range modules {
		if m.Path == "" || !filepath.IsLocal(m.Path) {
			continue
		}
		list = append(list, path.Join(m.Path, "config.json"))
		if !slices.Contains(harmless, m.kind()) {
			list = append(list, path.Join(m.Path, "model.safetensors"), path.Join(m.Path, "pytorch_model.bin"))
		}
	}
	may := func(name string) bool { // be there, for all that is known
		return s.Has(name) || !s.Lacks(name) && (names == nil || slices.Contains(names, name))
	}
	var candidates []string
	for _, name := range weightFiles {
		candidates = append(candidates, path.Join(inner, name))
	}
	i := slices.IndexFunc(candidates, may)
	if i < 0 {
		return nil, noWeights(names)
	}
	list = append(list, candidates[:i+1]...)
	if name := candidates[i]; strings.HasSuffix(name, indexSuffix) && s.Has(name) {
		text, err := files.Read(filepath.Join(s.Dir, name), maxIndex)
		if err != nil {
			return nil, err
		}
		shards, err := parseIndex(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, shard := range slices.Compact(slices.Sorted(maps.Values(shards))) {
			if shard = path.Join(inner, shard); !may(shard) {
				return nil, fmt.Errorf("%s names the shard %s, which is not there", name, shard)
			}
			list = append(list, shard)
		}
	}
	return list, nil
}

// noWeights says what a repository has in place of weights that are read.
func noWeights(names []string) error {
	large := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return !slices.Contains([]string{".gguf", ".onnx", ".h5", ".msgpack", ".bin", ".pt", ".pth", ".ckpt", ".safetensors"},
			path.Ext(name))
	})
	has := ""
	if len(large) > 0 {
		has = fmt.Sprintf("; it has %s", some(large))
	}
	switch {
	case len(names) == 0:
		return errors.New("it has no files")
	case slices.Contains(names, AdapterConfig):
		return errors.New("it has an adapter and not the weights that it is put into: download it as a folder, and import --from BASE --adapter FOLDER")
	}
	return fmt.Errorf("it has no weights that are read: want %s%s", strings.Join(weightFiles, ", "), has)
}
