package examples

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/geoalign/geoalign/data/table"
	"github.com/geoalign/geoalign/internal/names"
)

// VisualGenomeWeight is the weight of the one answer to a question of Visual Genome (ALBEF).
const VisualGenomeWeight = .5

// albefQuestion reads an entry of ALBEF's lists.
func albefQuestion(raw json.RawMessage, imageRoot, genomeRoot string) (x question, err error) {
	var e struct {
		ID       *int64          `json:"question_id"`
		Question string          `json:"question"`
		Answer   json.RawMessage `json:"answer"`
		Image    string          `json:"image"`
		Dataset  string          `json:"dataset"`
	}
	if err := table.Decode(raw, &e); err != nil {
		return x, err
	}
	if e.ID != nil {
		x.ID = strconv.FormatInt(*e.ID, 10)
	}
	switch {
	case e.Image == "":
		return x, errors.New(`field "image" is missing`)
	case e.Dataset == "vg" && genomeRoot != "":
		imageRoot = genomeRoot
	case e.Dataset != "vg" && e.Dataset != "vqa" && e.Dataset != "":
		return x, fmt.Errorf(`field "dataset" must be "vqa" or "vg" (got %q)`, e.Dataset)
	}
	x.Text, x.picture = e.Question, names.Under(imageRoot, e.Image)
	if table.IsNull(e.Answer) {
		return x, nil
	}
	given, err := table.TextOrTexts("answer", e.Answer)
	if err != nil {
		return x, fmt.Errorf(`field "answer" must be a text or a list of texts (got %.60s)`, e.Answer)
	}
	x.Answers = countAnswers(given)
	if e.Dataset == "vg" && len(x.Answers) > 0 {
		if len(x.Answers) > 1 {
			return x, fmt.Errorf("a question of vg has one answer (got %d)", len(x.Answers))
		}
		x.Answers[0].Weight = VisualGenomeWeight
	}
	return x, nil
}

// easyQuestion reads a row of easy-VQA with pictures in a folder.
func easyQuestion(raw json.RawMessage, folder string) (x question, err error) {
	var row []json.RawMessage
	var answer string
	var image *int64
	if json.Unmarshal(raw, &row) != nil || len(row) != 3 || json.Unmarshal(row[0], &x.Text) != nil ||
		json.Unmarshal(row[1], &answer) != nil ||
		json.Unmarshal(row[2], &image) != nil || image == nil {
		return x, fmt.Errorf("want [question, answer, number of the picture] (got %.80s)", raw)
	}
	x.Answers, x.picture = countAnswers([]string{answer}), filepath.Join(folder, strconv.FormatInt(*image, 10)+".png")
	switch {
	case answer == "yes" || answer == "no":
		x.Kind = "yes/no"
	case strings.Contains(x.Text, "color"):
		x.Kind = "colour"
	default:
		x.Kind = "shape"
	}
	return x, nil
}
