package weights

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/strictjson"
)

// indexSuffix is how the name of an index of shards ends.
const indexSuffix = ".index.json"

// weightFiles are the names of weights in a folder. The first that is there is taken.
var weightFiles = []string{
	"model.safetensors", "model.safetensors" + indexSuffix, "open_clip_model.safetensors",
	"pytorch_model.bin", "pytorch_model.bin" + indexSuffix, "open_clip_pytorch_model.bin",
}

// locate returns the file of weights or the index of shards at path.
func locate(path string) (string, error) {
	st, err := os.Stat(path)
	if err != nil || !st.IsDir() {
		return path, err
	}
	for _, name := range weightFiles {
		at := filepath.Join(path, name)
		if _, err := os.Stat(at); err == nil {
			return at, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	var found []string
	for _, ending := range []string{"*.safetensors", "*.bin", "*.pt", "*.pth", "*.ckpt"} {
		list, err := filepath.Glob(filepath.Join(files.Literal(path), ending))
		if err != nil {
			return "", err
		}
		found = append(found, list...)
	}
	if i := slices.IndexFunc(found, func(name string) bool { return slices.Contains(adapterFiles, filepath.Base(name)) }); i >= 0 {
		found = slices.Delete(found, i, i+1)
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		var c adapter
		if ok, err := readJSON(filepath.Join(path, AdapterConfig), &c); ok && err == nil {
			return "", adapterAlone(path, c)
		}
		return "", fmt.Errorf("%s has no weights: want %s, or one other file ending in .safetensors, .bin, .pt, .pth or .ckpt", path, strings.Join(weightFiles, ", "))
	}
	return "", fmt.Errorf("%s has %d files that may be the weights (%s, ...): give one of them", path, len(found),
		strings.Join(found[:2], ", "))
}

// maxIndex is the largest index of shards that is read: those of models have some hundred bytes a tensor.
const maxIndex = 64 << 20

// maxShards is the most shards that are opened, which are open files.
const maxShards = 512

// parseIndex reads an index of shards: which file has which tensor.
func parseIndex(text []byte) (map[string]string, error) {
	var index struct {
		Map map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(text, &index); err != nil {
		return nil, err
	}
	if err := strictjson.Check(text); err != nil {
		return nil, err
	}
	if len(index.Map) == 0 {
		return nil, errors.New(`it has no "weight_map"`)
	}
	for _, tensor := range slices.Sorted(maps.Keys(index.Map)) {
		name := index.Map[tensor]
		if name == "" || name == "." || strings.ContainsAny(name, `/\`) || !filepath.IsLocal(name) {
			return nil, fmt.Errorf("tensor %q is in %q, which is no file beside the index", tensor, name)
		}
	}
	return index.Map, nil
}

// openShards opens the shards of an index.
func (f *File) openShards() error {
	text, err := files.Read(f.Path, maxIndex)
	if err != nil {
		return err
	}
	index, err := parseIndex(text)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	names := slices.Compact(slices.Sorted(maps.Values(index)))
	if len(names) > maxShards {
		return fmt.Errorf("%s names %d shards, more than the %d that are opened", f.Path, len(names), maxShards)
	}
	has := map[string]bool{}
	for _, name := range names {
		list, err := f.add(filepath.Join(filepath.Dir(f.Path), name), true)
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s names the shard %s, which is not beside it: download it", f.Path, name)
		}
		if err != nil {
			return err
		}
		for _, t := range list {
			has[name+"/"+t.Name] = true
		}
	}
	for _, tensor := range slices.Sorted(maps.Keys(index)) {
		name := index[tensor]
		if x := unwrapped([]*Tensor{{Name: tensor}})[0]; !has[name+"/"+x.Name] {
			return fmt.Errorf("%s says that tensor %q is in %s, and it is not: download both again", f.Path, tensor,
				name)
		}
	}
	return nil
}
