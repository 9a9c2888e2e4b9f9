package examples

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/table"
)

// imageNumber is a name of pictures with a verb for their number.
var imageNumber = regexp.MustCompile(`^[^%]*%(?:0[1-9]\d?)?d[^%]*$`)

// pictureName is the path of the pictures of VQA v2 with a verb for image_id. test-dev2015 are pictures of test2015.
func (q *questions) pictureName(subtype string) (string, error) {
	name := q.ImageName
	if name == "" {
		if subtype == "" || strings.ContainsAny(subtype, `%/\`) {
			return "", fmt.Errorf(
				`field "data_subtype" must tell of which pictures the questions are (got %q): or set `+
					`data.vqa.image_name, such as "%%012d.jpg"`, subtype)
		}
		part, rest, _ := strings.Cut(subtype, "-")
		name = "COCO_" + part + strings.TrimLeft(rest, "abcdefghijklmnopqrstuvwxyz") + "_%012d.jpg"
	}
	return filepath.Join(strings.ReplaceAll(q.o.ImageRoot, "%", "%%"), name), nil
}

// vqaQuestion reads a question of VQA v2.
func vqaQuestion(raw json.RawMessage, name string) (x question, err error) {
	var e struct {
		Image    *int64 `json:"image_id"`
		Question string `json:"question"`
		ID       *int64 `json:"question_id"`
	}
	if err := table.Decode(raw, &e); err != nil {
		return x, err
	}
	if e.ID == nil || e.Image == nil {
		return x, errors.New(`field "question_id" or "image_id" is missing`)
	}
	return question{
		Example: data.Example{ID: strconv.FormatInt(*e.ID, 10), Text: e.Question},
		picture: fmt.Sprintf(name, *e.Image), number: *e.ID, wants: true,
	}, nil
}

// annotation is what is known of a question of VQA v2.
type annotation struct {
	answers []data.Answer
	kind    string
}

// annotations reads those of a file.
func (q *questions) annotations(l table.Entries) {
	q.annotated = true
	for i, raw := range l.Raw {
		q.counts.Rows++
		number, a, err := q.annotation(raw)
		if _, twice := q.answers[number]; err == nil && twice {
			err = fmt.Errorf("question_id %d is there twice", number)
		}
		if err != nil {
			q.counts.Refuse(l.Wrong(i, err))
			continue
		}
		q.answers[number] = a
	}
}

func (q *questions) annotation(raw json.RawMessage) (number int64, a annotation, err error) {
	var e struct {
		ID           *int64 `json:"question_id"`
		AnswerType   string `json:"answer_type"`
		QuestionType string `json:"question_type"`
		Answers      []struct {
			Answer *string `json:"answer"`
		} `json:"answers"`
	}
	if err := table.Decode(raw, &e); err != nil {
		return 0, a, err
	}
	if e.ID == nil {
		return 0, a, errors.New(`field "question_id" is missing`)
	}
	given := make([]string, len(e.Answers))
	for i, x := range e.Answers {
		if x.Answer == nil {
			return 0, a, fmt.Errorf(`answer %d lacks "answer" (question %d)`, i, *e.ID)
		}
		given[i] = *x.Answer
	}
	a = annotation{countAnswers(given), e.AnswerType}
	if q.QuestionType {
		a.kind = e.QuestionType
	}
	return *e.ID, a, nil
}
