package regions

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/geoalign/geoalign/data/table"
	"github.com/geoalign/geoalign/internal/files"
)

// readLines returns the lines of a text file, of which the last may have no end.
func readLines(path string) ([]string, error) {
	b, err := files.Read(path, files.MaxList)
	if err != nil {
		return nil, fmt.Errorf("regions: %w", err)
	}
	var lines []string
	for l, err := range table.LinesOf(path, b) {
		if err == nil && !utf8.ValidString(l.Text) {
			err = l.Wrong(errors.New("it is not UTF-8 text"))
		}
		if err != nil {
			return nil, err
		}
		lines = append(lines, l.Text)
	}
	if lines == nil {
		return nil, fmt.Errorf("regions: %s is empty", path)
	}
	return lines, nil
}

// readCaptions returns the captions of a file, one a line. With words, a line is the words of a caption with
// commas or blanks between them, as in BFAN's precaps.
func readCaptions(path string, words bool) ([]string, error) {
	lines, err := readLines(path)
	if err != nil || !words {
		return lines, err
	}
	numbers := true
	for i, line := range lines {
		w := strings.FieldsFunc(line, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
		for _, x := range w {
			_, err := strconv.Atoi(x)
			numbers = numbers && err == nil
		}
		lines[i] = strings.Join(w, " ")
	}
	if numbers {
		return nil, &table.LineError{File: path, Line: 1,
			Err: errors.New("all its words are numbers, so it holds the numbers of words in some vocabulary: give a " +
				"file of the words themselves")}
	}
	return lines, nil
}

// readMapping reads id_mapping.json: the name of the file of each image by its id.
func readMapping(path string) (m map[string]string, err error) {
	err = table.ReadJSON(path, "names of images", `want an object of the ids of images with the names of their files, `+
		`such as {"42": "val2014/42.jpg"}`, &m)
	return m, err
}

// numberIDs returns the ids that lines name: whole numbers as they are where all are, else the distinct texts from 0.
func numberIDs(lines []string) []int64 {
	ids := make([]int64, len(lines))
	for i, line := range lines {
		n, err := strconv.ParseInt(line, 10, 64)
		if err != nil {
			seen := map[string]int64{}
			for j, line := range lines {
				if _, ok := seen[line]; !ok {
					seen[line] = int64(len(seen))
				}
				ids[j] = seen[line]
			}
			return ids
		}
		ids[i] = n
	}
	return ids
}
