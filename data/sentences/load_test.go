package sentences

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/internal/budget/budgettest"
	"github.com/geoalign/geoalign/internal/filetest"
)

// texts are all rows of a set.
func texts(s *Set) (list []string) {
	for i := range s.Len() {
		list = append(list, strings.Join(append(s.Captions(i), data.OtherTexts(s, i)...), "|"))
	}
	return list
}

// TestLoad: every form of file gives the same rows.
func TestLoad(t *testing.T) {
	type row struct {
		Sent0   string `parquet:"sent0"`
		Other   int64  `parquet:"other"`
		Sent1   string `parquet:"sent1"`
		HardNeg string `parquet:"hard_neg"`
	}
	table := filepath.Join(t.TempDir(), "x.parquet")
	if err := parquet.WriteFile(table, []row{{"a dog, runs", 1, "a dog moves", "a cat runs"}, {"zwei", 2, "two", "drei"}}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		filetest.Temp(t, "nli.csv", "sent0,sent1,hard_neg\n\"a dog, runs\",a dog moves,a cat runs\nzwei,two,drei\n"),
		filetest.Temp(t, "nli.tsv", "sent0\tother\tsent1\thard_neg\na dog, runs\t-\ta dog moves\ta cat runs\nzwei\t-\ttwo\tdrei\n"),
		filetest.Temp(t, "nli.jsonl", `{"sent0": "a dog, runs", "sent1": "a dog moves", "hard_neg": "a cat runs"}`+"\n"+`{"hard_neg": "drei", "sent0": "zwei", "sent1": "two"}`+"\n"),
		table,
	} {
		for _, x := range []struct {
			cfg  Config
			want []string
		}{
			{Config{Sentence: "sent0", Positive: "sent1", Negative: "hard_neg"}, []string{"a dog, runs|a dog moves|a cat runs", "zwei|two|drei"}},
			{Config{Sentence: "sent0", Positive: "sent1"}, []string{"a dog, runs|a dog moves", "zwei|two"}},
			{Config{Sentence: "sent1"}, []string{"a dog moves", "two"}},
		} {
			s, err := Load([]string{path}, x.cfg)
			if err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			if got := texts(s); !slices.Equal(got, x.want) || !s.Account().Whole() || s.Counts().Rows != 2 {
				t.Errorf("%s: rows %q and counts %+v, want %q", path, got, s.Counts(), x.want)
			}
		}
	}
	_, err := Load([]string{filetest.Temp(t, "wiki.txt", "\xef\xbb\xbfOne.\r\n\n  two three \nlast, \"line\""), filetest.Temp(t, "more", "four\n")}, Config{})
	if err == nil || !strings.Contains(err.Error(), "set data.sentences.sentence") {
		t.Fatalf("no column: %v", err)
	}
	s, err := Load([]string{filetest.Temp(t, "wiki.txt", "\xef\xbb\xbfOne.\r\n\n  two three \nlast, \"line\""), filetest.Temp(t, "more", "four\n")}, Config{Sentence: "sentence"})
	if err != nil || !slices.Equal(texts(s), []string{"One.", "two three", `last, "line"`, "four"}) {
		t.Errorf("lines: %q, %v", texts(s), err)
	}
}

// TestCounts: rows that cannot be used are left out and told, over-long ones are told.
func TestCounts(t *testing.T) {
	cfg := Config{Sentence: "a", Positive: "b", MaxBadShare: 0.5, Clean: "albef", MaxWords: 3}
	path := filetest.Temp(t, "x.csv", "a,b\none,two\n,three\nfour,...\nfive\nb\xffd,six\none two three four,ok\n")
	s, err := Load([]string{path}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	c := s.Counts()
	if got := texts(s); !slices.Equal(got, []string{"one|two", "b\uFFFDd|six", "one two three four|ok"}) || c.Rows != 6 || c.Empty != 2 || c.Bad != 1 || c.Garbled != 1 || c.Long != 1 {
		t.Errorf("rows %q, counts %+v", got, c)
	}
	const want = "6 rows: 3 used; left out: an empty text: 2, it cannot be read: 1 ("
	if got := c.Account().String(); !strings.HasPrefix(got, want) || !strings.Contains(got, "note: bytes that are not UTF-8, read as U+FFFD: 1") || !strings.HasSuffix(got, "it is cut: 1") {
		t.Errorf("the account is %q, want %q", got, want)
	}
}

// TestLoadErrors: what cannot be read is named with its place and what to do.
func TestLoadErrors(t *testing.T) {
	one := Config{Sentence: "text"}
	for _, x := range []struct {
		name, text string
		cfg        Config
		want       []string
	}{
		{"a.csv", "title,words\na,b\n", one, []string{"a.csv", "line 1", `data.sentences.sentence: there is no column "text": the columns are ["title" "words"]`}},
		{"a.jsonl", `{"text": "a"}`, Config{Sentence: "text", Positive: "p"}, []string{"a.jsonl", `data.sentences.positive: there is no column "p"`, `"text"`}},
		{"a.txt", "x\n", Config{Sentence: "text", Positive: "p"}, []string{"a.txt", `no data.sentences.positive "p": name a table`}},
		{"a.txt", "\n \n", one, []string{"a.txt", "there is no sentence in 2 rows"}},
		{"a.txt", "", one, []string{"a.txt", "there is no sentence in 0 rows"}},
		{"a.txt", "caf\xe9\nb\n", one, []string{"a.txt", "line 1", "not UTF-8", "1 of 2 rows", "data.max_bad_share"}},
		{"a.txt", "\xff\xfea\x00b\x00\n\x00", one, []string{"a.txt", "line 1", "UTF-16", "iconv"}},
		{"a.txt", "\x1f\x8b\x08junk", one, []string{"a.txt", "compressed", "gunzip"}},
		{"a.txt", strings.Repeat("x", 16<<20+1), one, []string{"a.txt", "line 1", "16 MiB"}},
	} {
		_, err := Load([]string{filetest.Temp(t, x.name, x.text)}, x.cfg)
		for _, want := range x.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s with %.20q: want an error with %q, got %v", x.name, x.text, want, err)
			}
		}
	}
	if _, err := Load([]string{filepath.Join(t.TempDir(), "none.txt")}, one); err == nil || !strings.Contains(err.Error(), "none.txt") {
		t.Errorf("a file that is not there: %v", err)
	}
}

// letters is a tokenizer of letters.
type letters struct{}

func (letters) Encode(text string, most int) []int32 {
	ids := []int32{1}
	for _, r := range text {
		ids = append(ids, r)
	}
	return ids[:min(len(ids), most)]
}
func (letters) PadID() int32 { return 0 }

// TestStream: a sample has the columns of its three texts and none of images, each sentence once an epoch.
func TestStream(t *testing.T) {
	s, err := Load([]string{filetest.Temp(t, "x.csv", "a,b,c\nA,B,C\nD,E,F\nG,HI,J\n")}, Config{Sentence: "a", Positive: "b", Negative: "c"})
	if err != nil {
		t.Fatal(err)
	}
	stream, err := data.NewTrain(s, data.TrainConfig{Seed: 3, Transform: transform.Train{Size: 8}, Text: &data.Texts{Tokenizer: letters{}, Tokens: 3}, Clean: "none"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range stream.Columns() {
		names = append(names, c.Name)
	}
	want := []string{batch.IDs, batch.Labels, batch.Tokens, batch.Lengths, batch.SecondTokens, batch.SecondLengths, batch.ThirdTokens, batch.ThirdLengths}
	if !slices.Equal(names, want) {
		t.Fatalf("columns %q, want %q", names, want)
	}
	b := batch.New(1, stream.Columns()...)
	rows := map[[3]int32]int{}
	for c := range uint64(6) {
		if err := stream.Sample(c, b.Row(0)); err != nil {
			t.Fatal(err)
		}
		rows[[3]int32{b.Ints(batch.Tokens)[1], b.Ints(batch.SecondTokens)[1], b.Ints(batch.ThirdTokens)[1]}]++
		if two := b.Ints(batch.SecondTokens)[1] == 'H'; b.Ints(batch.Lengths)[0] != 2 || b.Ints(batch.ThirdLengths)[0] != 2 || (b.Ints(batch.SecondLengths)[0] == 3) != two {
			t.Errorf("sample %d has %v, %v, %v tokens", c, b.Ints(batch.Lengths), b.Ints(batch.SecondLengths), b.Ints(batch.ThirdLengths))
		}
	}
	for _, r := range [][3]int32{{'A', 'B', 'C'}, {'D', 'E', 'F'}, {'G', 'H', 'J'}} {
		if rows[r] != 2 {
			t.Errorf("row %c came %d times in two epochs", r, rows[r])
		}
	}
	if _, err := s.Image(0); err == nil {
		t.Error("a sentence has an image")
	}
}

// FuzzLoad: a file of any bytes is sentences that are whole, or an error that names the file.
func FuzzLoad(f *testing.F) {
	f.Add("x.txt", "One.\n\ntwo\n")
	f.Add("x.csv", "a,b\n\"x\",y\n")
	f.Add("x.jsonl", `{"a": "x", "b": 1}`)
	f.Add("x.parquet", "PAR1")
	f.Fuzz(func(t *testing.T, name, text string) {
		defer budgettest.Within(t, len(name)+len(text))()
		if strings.ContainsAny(name, "/\\\x00") || name == "" || len(name) > 20 || strings.Trim(name, ".") == "" {
			t.Skip()
		}
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Skip()
		}
		for _, cfg := range []Config{{Sentence: "a", MaxBadShare: 1}, {Sentence: "a", Positive: "b", Clean: "albef", MaxWords: 2}} {
			s, err := Load([]string{path}, cfg)
			if err != nil {
				if !strings.Contains(err.Error(), name) {
					t.Errorf("%v names no file", err)
				}
				continue
			}
			for _, row := range texts(s) {
				if strings.TrimSpace(row) == "" || !strings.Contains(row, "|") && cfg.Positive != "" {
					t.Errorf("row %q is not whole", row)
				}
			}
		}
	})
}

// TestCheck: a sentence is in two splits by what it says, not by its number; rows that were left out are findings.
func TestCheck(t *testing.T) {
	load := func(text string) *Set {
		s, err := Load([]string{filetest.Temp(t, "x.tsv", "a\tb\n"+text)}, Config{Sentence: "a", MaxBadShare: 1, Clean: "albef"})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	train, val := load("One.\t1\nTwo.\t2\n\tx\nlost\n...\t3\ncaf\xe9\t4\n"), load("two\t1\nthree\t2\n")
	found, err := data.Check(t.Context(), train, data.CheckConfig{Clean: "albef", Images: true, Others: map[string]data.Dataset{"val": val}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range found {
		got = append(got, fmt.Sprint(f.Kind, " ", f.Count, " ", f.Grave(), " ", f.Examples))
	}
	if len(got) != 3 || !strings.Contains(got[0], "bad row 2 true") || !strings.Contains(got[0], "line 5: it has 1 columns, not 2") ||
		got[1] != `leak 1 true [sentence 1 equals sentence 0 of val: "two"]` || !strings.HasPrefix(got[2], "empty caption 2 false") {
		t.Errorf("found %q", got)
	}
}
