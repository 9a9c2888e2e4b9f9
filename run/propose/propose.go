// Package propose looks at data that somebody has and writes the configuration that trains on them.
//
//	p, err := propose.Look("photos/captions.csv")
//	os.Stdout.WriteString(p.Text("photos", nil, 0, ""))
package propose

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/internal/words"
)

// A Key is a key of a configuration with its value in TOML and, where it is not plain, why it has that.
type Key struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Why   string `json:"why,omitempty"`
}

// A Proposal is what was found.
type Proposal struct {
	Kind  string   `json:"kind"`  // data.kind
	Of    string   `json:"of"`    // what was looked at
	Root  string   `json:"root"`  // folder that the names of images start from
	Keys  []Key    `json:"keys"`  // below [data], such as csv.image
	Notes []string `json:"notes"` // what is left to do
}

// Look says what data lie at path: a table (.csv, .tsv, .parquet), a list (.json, .token), shards (.tar), or a folder
// with one of these.
func Look(path string) (*Proposal, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if st.IsDir() {
		return folder(path)
	}
	p := &Proposal{Of: path, Root: filepath.Dir(path)}
	switch name := strings.ToLower(filepath.Base(path)); filepath.Ext(name) {
	case ".csv", ".tsv":
		return p, p.table(path)
	case ".json":
		return p, p.list(path)
	case ".parquet":
		return p, p.parquet([]string{path})
	case ".tar":
		return p, p.shards([]string{path})
	case ".token", ".txt":
		if strings.Contains(name, "token") {
			return p, p.tokens(path)
		}
	}
	return nil, fmt.Errorf("%s is none of the files that list images with captions: give a table (.csv, .tsv, .parquet), a list (.json), shards (.tar), or a folder with one of these", words.Shown(path))
}

// folder looks for the files that lists are usually called in a folder and those in it.
func folder(dir string) (*Proposal, error) {
	p := &Proposal{Of: dir, Root: dir}
	for _, known := range []struct {
		pattern string
		look    func(found []string) error
	}{
		{"dataset*.json", func(found []string) error { return p.list(found[0]) }},
		{"annotations/captions_*.json", func(found []string) error { return p.list(found[0]) }},
		{"train.json", func(found []string) error { return p.list(found[0]) }},
		{"*.token*", func(found []string) error { return p.tokens(found[0]) }},
		{"*.tar", p.shards},
		{"*.parquet", p.parquet},
		{"data/*.parquet", p.parquet},
		{"*.csv", func(found []string) error { return p.table(found[0]) }},
		{"*.tsv", func(found []string) error { return p.table(found[0]) }},
		{"*.json", func(found []string) error { return p.list(found[0]) }},
	} {
		found, err := filepath.Glob(filepath.Join(escaped(dir), known.pattern))
		if err != nil || len(found) == 0 {
			continue
		}
		slices.SortFunc(found, func(a, b string) int { // a table of training first
			first := func(s string) bool { return strings.Contains(filepath.Base(s), "train") }
			if first(a) != first(b) {
				return map[bool]int{true: -1, false: 1}[first(a)]
			}
			return strings.Compare(a, b)
		})
		err = known.look(found)
		if err == nil && len(found) > 1 && strings.HasSuffix(known.pattern, "sv") && !p.Has("val") {
			p.Notes = append(p.Notes, fmt.Sprintf("of %d tables %s was looked at: give the path of another one",
				len(found), filepath.Base(found[0])))
		}
		return p, err
	}
	return nil, fmt.Errorf("%s holds no list of images with captions (.csv, .tsv, .json, .parquet, .tar): write a table with the columns image and caption, or search photos without captions by a pretrained model (trainer embed --images)", words.Shown(dir))
}

// escaped is a folder as part of a pattern.
func escaped(dir string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(dir)
}

func (p *Proposal) key(name string, value any, why string) {
	text, err := json.Marshal(value) // texts and lists of texts are the same in TOML
	if err != nil {
		panic(err)
	}
	p.Keys = append(p.Keys, Key{name, strings.ReplaceAll(string(text), `","`, `", "`), why})
}

// below is a file as it is named from Root.
func (p *Proposal) below(file string) string {
	root, err1 := filepath.Abs(p.Root)
	abs, err2 := filepath.Abs(file)
	if err1 == nil && err2 == nil {
		if rel, err := filepath.Rel(root, abs); err == nil {
			return filepath.ToSlash(rel)
		}
	}
	return filepath.ToSlash(file)
}

// mostFolders is how many folders are tried as the place of images.
const mostFolders = 200

// rooted makes the folder Root that from which the names of some images lead to files: the one of the list, one in it,
// or the one above. Where none does, it stays, with a note.
func (p *Proposal) rooted(names []string) {
	if len(names) == 0 {
		return
	}
	at := p.Root
	candidates := []string{at}
	for _, pattern := range []string{"*", "*/*"} {
		found, _ := filepath.Glob(filepath.Join(escaped(at), pattern))
		candidates = append(candidates, found[:min(len(found), mostFolders)]...)
	}
	for _, dir := range append(candidates, filepath.Dir(filepath.Clean(at))) {
		for _, name := range names[:min(len(names), 5)] {
			file := filepath.FromSlash(strings.ReplaceAll(name, `\`, "/"))
			if !filepath.IsAbs(file) {
				file = filepath.Join(dir, file)
			}
			if st, err := os.Stat(file); err == nil && !st.IsDir() {
				p.Root = dir
				return
			}
		}
	}
	p.Notes = append(p.Notes, fmt.Sprintf("no image %s was found near %s: set data.root to the folder that names of images start from", words.Shown(names[0]), words.Shown(at)))
}

// divided says how samples without splits are divided.
func (p *Proposal) divided() {
	p.key("split.val", 5, "percent of the images, by a hash of their names; all captions of an image are in one split")
	p.key("split.test", 5, "")
}

// list looks at a file in JSON: a list of objects with image and caption, or an object with images.
func (p *Proposal) list(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	d := json.NewDecoder(f)
	wrong := func(what string) error {
		return fmt.Errorf("%s %s: want a list of {\"image\", \"caption\"}, a dataset_*.json of Karpathy, or a captions_*.json of COCO", words.Shown(path), what)
	}
	first, err := d.Token()
	switch {
	case err != nil:
		return wrong("is not JSON")
	case first == json.Delim('['):
		var entry map[string]json.RawMessage
		if !d.More() || d.Decode(&entry) != nil || entry["image"] == nil || entry["caption"] == nil {
			return wrong("is a list of something else")
		}
		return p.captions(path, entry["image"])
	case first != json.Delim('{'):
		return wrong("is neither a list nor an object")
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return wrong("is not JSON")
		}
		if name != "images" {
			var skipped json.RawMessage
			if d.Decode(&skipped) != nil {
				return wrong("is not JSON")
			}
			continue
		}
		var image struct {
			Filename  string            `json:"filename"`
			Filepath  string            `json:"filepath"`
			File      string            `json:"file_name"`
			Sentences []json.RawMessage `json:"sentences"`
		}
		if begin, err := d.Token(); err != nil || begin != json.Delim('[') || !d.More() || d.Decode(&image) != nil {
			return wrong("has no list of images")
		}
		switch {
		case image.Sentences != nil && image.Filename != "":
			p.Kind = "karpathy"
			p.rooted([]string{strings.TrimPrefix(image.Filepath+"/"+image.Filename, "/")})
			p.key("karpathy.file", p.below(path), "has all splits")
			return nil
		case image.File != "":
			return p.coco(path, image.File)
		}
		return wrong("has images of another form")
	}
	return wrong("has no images")
}

// captions is a list of {image, caption}, those of other splits beside it.
func (p *Proposal) captions(path string, image json.RawMessage) error {
	p.Kind = "captions"
	var name string
	if err := json.Unmarshal(image, &name); err != nil {
		return fmt.Errorf("%s: entry 1: image is not a text", words.Shown(path))
	}
	p.rooted([]string{name})
	p.key("captions.train_files", []string{p.below(path)}, "")
	if !p.splits("captions", path, "train") {
		p.divided()
	}
	return nil
}

// splits names the files beside that of training, if its name has the word for it, and says whether there are any.
func (p *Proposal) splits(kind, path, word string) bool {
	dir, name := filepath.Split(path)
	found := false
	for _, other := range []struct{ key, word string }{{"val", "val"}, {"val", "dev"}, {"test", "test"}} {
		file := filepath.Join(dir, strings.Replace(name, word, other.word, 1))
		if _, err := os.Stat(file); err == nil && strings.Contains(name, word) {
			p.key(kind+"."+other.key+"_files", []string{p.below(file)}, "")
			found = true
		}
	}
	return found
}

// coco is captions_*.json: images lie in a folder for each split or in one.
func (p *Proposal) coco(path, image string) error {
	p.Kind = "coco"
	dir, name := filepath.Split(path)
	if filepath.Base(dir) == "annotations" {
		p.Root = filepath.Dir(filepath.Clean(dir))
	}
	above := p.Root
	p.rooted([]string{image})
	if p.Root != above { // a folder for each split
		p.Root = above
	}
	for split, words := range map[string][]string{"train": {"train"}, "val": {"val"}, "test": {"test"}} {
		for _, word := range words {
			file := filepath.Join(dir, strings.NewReplacer("train", word, "val", word).Replace(name))
			if _, err := os.Stat(file); err != nil {
				continue
			}
			p.key("coco."+split+"_file", p.below(file), "")
			year := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "captions_"), ".json")
			if st, err := os.Stat(filepath.Join(p.Root, year)); err == nil && st.IsDir() {
				p.key("coco."+split+"_images", year, "")
			}
		}
	}
	slices.SortFunc(p.Keys, func(a, b Key) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// tokens is the list of captions of Flickr: image.jpg#0, a tab, a caption.
func (p *Proposal) tokens(path string) error {
	head, err := begin(path)
	if err != nil {
		return err
	}
	name, _, ok := strings.Cut(head, "#")
	if !ok || !images.IsName(name) {
		return fmt.Errorf("%s: its first line is not image.jpg#0, a tab and a caption", words.Shown(path))
	}
	p.Kind = "flickr"
	p.rooted([]string{name})
	p.key("flickr.file", p.below(path), "")
	found := false
	for _, split := range []string{"train", "val", "test"} {
		for _, pattern := range []string{"*" + split + "Images.txt",
			"*" + strings.Replace(split, "val", "dev", 1) + "Images.txt", split + ".txt"} {
			if list, _ := filepath.Glob(filepath.Join(escaped(filepath.Dir(path)), pattern)); len(list) > 0 {
				p.key("flickr."+split+"_list", p.below(list[0]), "")
				found = true
				break
			}
		}
	}
	if !found {
		p.Notes = append(p.Notes, "no lists of splits (Flickr_8k.trainImages.txt ...) lie beside it: all images are training images, and nothing is evaluated")
	}
	return nil
}

// begin is the first 64 KiB of a file.
func begin(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b := make([]byte, 1<<16)
	n, err := io.ReadFull(f, b)
	if n == 0 {
		return "", fmt.Errorf("%s is empty (%w)", words.Shown(path), err)
	}
	return strings.TrimPrefix(string(b[:n]), "\ufeff"), nil
}
