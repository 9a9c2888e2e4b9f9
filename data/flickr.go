package data

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/geoalign/geoalign/data/account"
	"github.com/geoalign/geoalign/data/table"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/names"
)

// LoadFlickr reads the captions of Flickr30k or Flickr8k: lines of image#number, a tab and a caption,
// as in results_20130124.token and Flickr8k.token.txt. Images lie in imageRoot. images names a text file
// with the name of an image on each line, with or without .jpg, which are the images of the data set in
// their order; empty: all images, in the order of the captions. The id of an image is its place there.
func LoadFlickr(file, imageRoot, images string, opt Options) (*Files, error) {
	b, err := table.ReadFile(file, "Flickr file")
	if err != nil {
		return nil, err
	}
	opt = opt.counting()
	written := names.List{Root: imageRoot}
	list, captions, err := parseFlickr(file, b, &written)
	if err != nil {
		return nil, err
	}
	countTurned(opt.Account, written, file)
	if images != "" {
		b, err := table.ReadFile(images, "list of images")
		if err != nil {
			return nil, err
		}
		if list, err = parseImageList(images, b, list, opt.Account); err != nil {
			return nil, err
		}
	}
	items := make([]File, len(list))
	for i, name := range list {
		items[i] = File{Path: filepath.Join(imageRoot, name), ID: int64(i), Captions: captions[name]}
		opt.tell(i+1, len(list))
	}
	return NewFiles(items, opt), nil
}

// eachLine calls f with each line that is not blank.
func eachLine(file string, b []byte, f func(line string) error) error {
	r := bufio.NewReader(bytes.NewReader(files.WithoutMark(b)))
	for n := 1; ; n++ {
		line, end := r.ReadString('\n')
		if line = strings.TrimRight(line, "\r\n"); strings.TrimSpace(line) != "" {
			if err := f(line); err != nil {
				return &table.LineError{File: file, Line: n, Err: err}
			}
		}
		if end == io.EOF {
			return nil
		}
	}
}

// parseFlickr returns the images in their order, and the captions of each.
func parseFlickr(file string, b []byte, written *names.List) (list []string, captions map[string][]string, err error) {
	captions = map[string][]string{}
	err = eachLine(file, b, func(line string) error {
		head, caption, ok := strings.Cut(line, "\t")
		at := strings.LastIndexByte(head, '#')
		if !ok || at <= 0 || strings.Trim(head[at+1:], "0123456789") != "" {
			return fmt.Errorf(
				"want image.jpg#0, a tab and a caption (got %.60q); a table with a line of names is data.kind "+
					"\"csv\"", line)
		}
		name := written.Name(head[:at])
		if _, known := captions[name]; !known {
			list = append(list, name)
		}
		captions[name] = append(captions[name], caption)
		return nil
	})
	if err == nil && list == nil {
		err = table.Whole(file, errors.New("it has no caption"))
	}
	return list, captions, err
}

// parseImageList returns the images that a list names, of those that have captions.
func parseImageList(file string, b []byte, captioned []string, a *account.Account) (list []string, err error) {
	have := names.NewIndex[string]()
	for _, name := range captioned {
		have.Set(name, name)
	}
	seen := map[string]bool{}
	err = eachLine(file, b, func(line string) error {
		said := strings.TrimSpace(line)
		name, how := have.Find(said)
		if how == names.Missing {
			name, how = have.Find(said + ".jpg")
		}
		switch how {
		case names.Missing:
			return fmt.Errorf("image %q has no caption in the file of captions", said)
		case names.Ambiguous:
			return fmt.Errorf(
				"image %q has several names in the file of captions that differ only in Unicode normalisation "+
					"(NFC, NFD): write one of them", said)
		case names.Folded:
			a.Changed(entryUnit, 1, foldedName, file+": "+said)
		}
		a.Used(entryUnit, 1)
		if seen[name] {
			return fmt.Errorf("image %q was named before", name)
		}
		seen[name] = true
		list = append(list, name)
		return nil
	})
	if err == nil && list == nil {
		err = table.Whole(file, errors.New("it names no image"))
	}
	return list, err
}

// foldedName is why a name is not as it is written.
const foldedName = "names found that differ only in Unicode normalisation (NFC, NFD)"
