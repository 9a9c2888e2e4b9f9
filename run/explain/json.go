package explain

import "github.com/geoalign/geoalign/explain"

// jsonGrid is a map for programs.
type jsonGrid struct {
	Rows    int       `json:"rows"`
	Columns int       `json:"columns"`
	Values  []float64 `json:"values"` // row by row from the top left; below 0: against the score
}

// jsonWord is a word and what it adds, for programs.
type jsonWord struct {
	Text    string    `json:"text"`
	Value   float64   `json:"value"`
	Share   float64   `json:"share"`
	Special bool      `json:"special,omitempty"`
	Patches *jsonGrid `json:"patches,omitempty"` // of a match or an interaction; regions are a row
}

// jsonDirection is what an interaction compares in one direction, for programs: Q queries with K tokens of context.
type jsonDirection struct {
	Direction string      `json:"direction"`
	Attention [][]float64 `json:"attention,omitempty"` // (Q, K) of queries to their context
	Products  [][]float64 `json:"products,omitempty"`  // (Q, K)
	Chosen    []int       `json:"chosen,omitempty"`    // (Q) with products: the context that counts
	Values    []float64   `json:"values"`              // (Q) r
	Weights   []float64   `json:"weights"`             // (Q) w
	Adds      [][]float64 `json:"adds"`                // (Q, K) to the score
	Rest      float64     `json:"rest"`                // to the score: of the pool
}

// jsonComparison is what an interaction compares, for programs.
type jsonComparison struct {
	Image      []string        `json:"image"` // names of tokens
	Text       []string        `json:"text"`
	Directions []jsonDirection `json:"directions"`
}

// jsonScore is an explained score for programs.
type jsonScore struct {
	Name     string          `json:"name"`
	Score    float64         `json:"score"`
	Image    *jsonGrid       `json:"image"`
	With     *jsonGrid       `json:"with,omitempty"`
	Words    []jsonWord      `json:"words,omitempty"`
	Compared *jsonComparison `json:"compared,omitempty"`
}

func jsonGridOf(m *explain.Map) *jsonGrid {
	if m == nil {
		return nil
	}
	return &jsonGrid{m.Rows, m.Columns, m.Values}
}

func jsonComparisonOf(c *Comparison) *jsonComparison {
	if c == nil {
		return nil
	}
	out := &jsonComparison{Image: c.Image, Text: c.Text}
	for _, t := range c.Terms {
		rows := func(x []float64) [][]float64 {
			list := [][]float64{}
			for q := range t.Q {
				list = append(list, x[q*t.K:][:t.K])
			}
			return list
		}
		d := jsonDirection{Direction: Direction(t), Chosen: t.Chosen, Values: t.Values, Weights: t.Weights,
			Adds: rows(t.Adds), Rest: t.Rest}
		if t.Attends {
			d.Attention = rows(t.Matrix)
		} else {
			d.Products = rows(t.Matrix)
		}
		out.Directions = append(out.Directions, d)
	}
	return out
}

func jsonScoreOf(r Relevance) jsonScore {
	s := jsonScore{Name: r.Name, Score: r.Score, Image: jsonGridOf(r.Image), With: jsonGridOf(r.Other),
		Compared: jsonComparisonOf(r.Compared)}
	shares := explain.Shares(r.Words)
	for i, w := range r.Words {
		x := jsonWord{Text: w.Text, Value: w.Value, Share: shares[i], Special: w.Special}
		if r.WordMaps != nil {
			x.Patches = jsonGridOf(&r.WordMaps[i])
		}
		s.Words = append(s.Words, x)
	}
	return s
}

// JSON is the form of an explanation for programs; folder and names are what Write wrote.
func (e *Explanation) JSON(folder string, names []string) any {
	var scores []jsonScore
	for _, r := range e.Scores {
		scores = append(scores, jsonScoreOf(r))
	}
	var row *int
	if e.Split != "" {
		row = &e.Row
	}
	return struct {
		Folder     string        `json:"folder"`
		Checkpoint string        `json:"checkpoint"`
		Step       int           `json:"step"`
		System     string        `json:"system"`
		Measure    string        `json:"score"`
		Formula    string        `json:"formula"`
		Block      int           `json:"block"`
		Layer      int           `json:"layer"`
		Fusion     int           `json:"fusion"`
		Split      string        `json:"split,omitempty"`
		Row        *int          `json:"row,omitempty"`
		Name       string        `json:"name,omitempty"`
		Regions    int           `json:"regions,omitempty"`
		Boxes      []explain.Box `json:"boxes,omitempty"` // left, top, right, bottom as shares of width and height
		Text       string        `json:"text,omitempty"`
		Said       string        `json:"said,omitempty"`  // of a statement
		Truth      string        `json:"truth,omitempty"` // of a statement of a row
		Notes      []string      `json:"notes,omitempty"`
		Scores     []jsonScore   `json:"scores"`
		Tokens     []float64     `json:"tokens,omitempty"`
		Files      []string      `json:"files"`
	}{folder, e.Checkpoint, e.Step, e.System, e.Score, e.Formula, e.Block, e.Layer, e.Fusion, e.Split, row, e.Name,
		e.Regions, e.Boxes, e.Text, e.Said, e.Truth, e.Notes, scores, e.Tokens, names}
}
