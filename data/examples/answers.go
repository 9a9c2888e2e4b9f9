package examples

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/table"
	"github.com/geoalign/geoalign/internal/files"
)

// countAnswers returns distinct answers, each with the share of those who gave it as its weight (ALBEF), the heaviest
// first and of equally heavy ones the first that was given. Blank ones count and are left out; nil where nothing is
// left.
func countAnswers(given []string) []data.Answer {
	var out []data.Answer
	at := map[string]int{}
	for _, g := range given {
		if strings.TrimSpace(g) == "" {
			continue
		}
		k, ok := at[g]
		if !ok {
			k = len(out)
			at[g] = k
			out = append(out, data.Answer{Text: g})
		}
		out[k].Weight++
	}
	for k := range out {
		out[k].Weight /= float32(len(given))
	}
	slices.SortStableFunc(out, func(a, b data.Answer) int { return cmp.Compare(b.Weight, a.Weight) })
	return out
}

// LoadAnswers reads a list of answers: JSON, a list of texts as ALBEF's answer_list.json, or text with one on each
// line. It fails on an empty list and on answers that are blank or there twice.
func LoadAnswers(path string) ([]string, error) {
	b, err := files.Read(path, files.MaxVocabulary)
	if err != nil {
		return nil, fmt.Errorf("data: list of answers: %w", err)
	}
	return parseAnswers(path, b)
}

func parseAnswers(file string, b []byte) (answers []string, err error) {
	b = files.WithoutMark(b)
	if text := bytes.TrimSpace(b); len(text) > 0 && text[0] == '[' {
		if err := table.Decode(text, &answers); err != nil {
			return nil, table.Whole(file, fmt.Errorf("not a JSON list of answers: %w", err))
		}
	} else {
		for line := range strings.Lines(string(b)) {
			if line = strings.TrimSpace(line); line != "" {
				answers = append(answers, line)
			}
		}
	}
	if len(answers) == 0 {
		return nil, table.Whole(file, errors.New("the list of answers is empty: write one answer on each line"))
	}
	first := map[string]int{}
	l := table.Entries{File: file}
	for i, a := range answers {
		if strings.TrimSpace(a) == "" {
			return nil, l.Wrong(i, errors.New("the answer is blank: take it out"))
		}
		if k, ok := first[a]; ok {
			return nil, l.Wrong(i, fmt.Errorf("answer %q is that of entry %d already: take one out", a, k))
		}
		first[a] = i
	}
	return answers, nil
}

// CommonAnswers returns the most frequent heaviest answers of samples, n of them at most (0: all), the most frequent
// first and of equally frequent ones the first in the alphabet. Of an endless split it counts Len samples, as one
// epoch.
func CommonAnswers(ex data.Examples, n int) []string {
	count := map[string]int{}
	for i := range ex.Len() {
		if a := ex.Example(i).Answers; len(a) > 0 && strings.TrimSpace(a[0].Text) != "" {
			count[a[0].Text]++
		}
	}
	all := make([]string, 0, len(count))
	for a := range count {
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b string) int {
		return cmp.Or(cmp.Compare(count[b], count[a]),
			strings.Compare(a, b))
	})
	if n > 0 && len(all) > n {
		all = all[:n]
	}
	return all
}
