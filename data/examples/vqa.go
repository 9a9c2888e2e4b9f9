package examples

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/account"
	"github.com/geoalign/geoalign/data/table"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/strictjson"
)

// VQA says how questions about pictures are read.
type VQA struct {
	// file of a picture of VQA v2, with %d or %012d for its image_id; "": COCO_<data_subtype>_%012d.jpg
	ImageName    string
	GenomeRoot   string // folder of the pictures of "dataset": "vg"; "": Options.ImageRoot
	QuestionType bool   // the kind of a question of VQA v2 is its question_type, else its answer_type
	NeedAnswers  bool   // questions without answers are left out
	// Share says in which split a question of a file is, by its file and the picture's name; nil: in this one.
	Share func(file, picture string) bool
}

// question is a question with its picture, and where it was read.
type question struct {
	data.Example
	picture string
	number  int64 // question_id of VQA v2
	wants   bool  // an annotation is looked for
	at      func(error) error
}

// questions are the files of a split being read.
type questions struct {
	VQA
	o         Options
	counts    table.Counts
	list      []question
	answers   map[int64]annotation
	annotated bool // a file of annotations was read
	before    int  // rows of questions in the files that were read before
}

// LoadVQA reads questions about pictures in the order of the files. A file is one of
//
//	{"data_subtype", "questions": [{"image_id", "question", "question_id"}]}  VQA v2
//	{"annotations": [{"question_id", "answer_type", "question_type", "answers": [{"answer"}]}]}  VQA v2
//	[{"question_id", "question", "answer": text or [texts], "image", "dataset": "vqa" or "vg"}]  ALBEF
//	[[question, answer, number of the picture], ...]  easy-VQA
//
// The answers of a question weigh the share of those who gave them, the one of vg VisualGenomeWeight. The pictures of
// easy-VQA are images/<number>.png beside the file, and its kinds are yes/no, colour and shape. The ID of a row without
// question_id is its number, from 0 and on from file to file. Without "answer" or annotations nobody knows the answer.
// Rows that cannot be used are counted, a question that the annotations lack among them, and so is an annotation
// without a question. Of a file that several splits name all rows count, since nobody knows of which split a row is
// that cannot be read.
func LoadVQA(paths []string, v VQA, o Options) (*data.FileExamples, error) {
	if v.ImageName != "" && !imageNumber.MatchString(v.ImageName) {
		return nil, fmt.Errorf("data: names of pictures must have %%d or %%012d once, for the image_id (got %q)",
			v.ImageName)
	}
	q := questions{VQA: v, o: o, answers: map[int64]annotation{}}
	for _, path := range paths {
		b, err := table.ReadFile(path, "file of questions")
		if err == nil {
			err = q.read(path, b)
		}
		if err != nil {
			return nil, err
		}
	}
	return q.finish(paths[0])
}

// read adds what a file has.
func (q *questions) read(file string, b []byte) error {
	l := table.Entries{File: file}
	if b = bytes.TrimSpace(files.WithoutMark(b)); len(b) > 0 && b[0] == '[' {
		if err := table.ParseJSON(file, b, "not a JSON list of questions", &l.Raw); err != nil {
			return err
		}
		return q.rows(l, q.listed)
	}
	var doc struct {
		Subtype     string            `json:"data_subtype"`
		Questions   []json.RawMessage `json:"questions"`
		Annotations []json.RawMessage `json:"annotations"`
	}
	if err := table.ParseJSON(
		file, b, `no questions: want a JSON list of them, or an object with the list "questions" or "annotations" `+
			`of VQA v2`,
		&doc); err != nil {
		return err
	}
	switch {
	case len(doc.Questions) > 0:
		name, err := q.pictureName(doc.Subtype)
		if err != nil {
			return table.Whole(file, err)
		}
		asked := make(map[int64]bool, len(doc.Questions))
		l.Raw = doc.Questions
		return q.rows(l, func(file string, raw json.RawMessage) (question, error) {
			x, err := vqaQuestion(raw, name)
			if err == nil && asked[x.number] {
				err = fmt.Errorf("question_id %d is there twice", x.number)
			}
			asked[x.number] = true
			return x, err
		})
	case len(doc.Annotations) > 0:
		l.Raw = doc.Annotations
		q.annotations(l)
		return nil
	}
	return table.Whole(
		file, errors.New(
			`list "questions" or "annotations" is missing or empty: take OpenEnded_*_questions.json and `+
				`*_annotations.json of VQA v2`))
}

// rows reads each row by read and keeps those of the split.
func (q *questions) rows(l table.Entries, read func(file string, raw json.RawMessage) (question, error)) error {
	if len(l.Raw) == 0 {
		return table.Whole(l.File, errors.New("the list is empty"))
	}
	for i, raw := range l.Raw {
		q.counts.Rows++
		err := strictjson.Check(raw)
		var x question
		if err == nil {
			x, err = read(l.File, raw)
		}
		if err == nil && strings.TrimSpace(x.Text) == "" {
			err = errors.New("the question is missing or blank")
		}
		if err != nil {
			q.counts.Refuse(l.Wrong(i, err))
			continue
		}
		if x.ID == "" {
			x.ID = fmt.Sprint(q.before + i)
		}
		x.Label, x.at = data.UnknownLabel, func(err error) error { return l.Wrong(i, err) }
		if q.Share == nil || q.Share(l.File, x.picture) {
			q.list = append(q.list, x)
		} else {
			q.counts.Other++
		}
	}
	q.before += len(l.Raw)
	return nil
}

// finish joins questions with their annotations.
func (q *questions) finish(file string) (*data.FileExamples, error) {
	f := &data.FileExamples{MaxPixels: q.o.MaxPixels, Met: account.New()}
	for _, x := range q.list {
		if x.wants && q.annotated {
			a, ok := q.answers[x.number]
			if !ok {
				q.counts.Refuse(x.at(fmt.Errorf("question_id %d has no annotation: name both files of a split",
					x.number)))
				continue
			}
			delete(q.answers, x.number)
			x.Answers, x.Kind = a.answers, a.kind
		}
		if x.Answers == nil && q.NeedAnswers {
			q.counts.Unlabelled++
			continue
		}
		f.Add(x.Example, x.picture)
	}
	if len(q.answers) > 0 && q.Share == nil {
		f.Met.LeftOut("annotation", len(q.answers), "its question is not there")
	}
	return f, finish(&q.counts, f, file, q.o)
}

// listed reads a row of a list: of easy-VQA or of ALBEF.
func (q *questions) listed(file string, raw json.RawMessage) (question, error) {
	if len(raw) > 0 && raw[0] == '[' {
		return easyQuestion(raw, filepath.Join(filepath.Dir(file), "images"))
	}
	return albefQuestion(raw, q.o.ImageRoot, q.GenomeRoot)
}

// Split is the split of a picture in a file that several splits name, one of these: that of data.FolderSplit of "vqa"
// and the picture's name without folders, or where it is not named the first one.
func Split(picture string, named []string) string {
	if own := data.FolderSplit("vqa", filepath.Base(picture)); slices.Contains(named, own) {
		return own
	}
	return named[0]
}
