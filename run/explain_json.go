package run

import "github.com/geoalign/geoalign/explain"

// JSON is the form of an explanation for programs; folder and names are what Write wrote.
func (e *Explanation) JSON(folder string, names []string) any {
	type grid struct {
		Rows    int       `json:"rows"`
		Columns int       `json:"columns"`
		Values  []float64 `json:"values"` // row by row from the top left; below 0: against the score
	}
	type word struct {
		Text    string  `json:"text"`
		Value   float64 `json:"value"`
		Share   float64 `json:"share"`
		Special bool    `json:"special,omitempty"`
		Patches *grid   `json:"patches,omitempty"` // of a match or an interaction; regions are a row
	}
	type direction struct {
		Direction string      `json:"direction"`
		Attention [][]float64 `json:"attention,omitempty"` // (Q, K) of queries to their context
		Products  [][]float64 `json:"products,omitempty"`  // (Q, K)
		Chosen    []int       `json:"chosen,omitempty"`    // (Q) with products: the context that counts
		Values    []float64   `json:"values"`              // (Q) r
		Weights   []float64   `json:"weights"`             // (Q) w
		Adds      [][]float64 `json:"adds"`                // (Q, K) to the score
		Rest      float64     `json:"rest"`                // to the score: of the pool
	}
	type comparison struct {
		Image      []string    `json:"image"` // names of tokens
		Text       []string    `json:"text"`
		Directions []direction `json:"directions"`
	}
	type score struct {
		Name     string      `json:"name"`
		Score    float64     `json:"score"`
		Image    *grid       `json:"image"`
		With     *grid       `json:"with,omitempty"`
		Words    []word      `json:"words,omitempty"`
		Compared *comparison `json:"compared,omitempty"`
	}
	gridOf := func(m *explain.Map) *grid {
		if m == nil {
			return nil
		}
		return &grid{m.Rows, m.Columns, m.Values}
	}
	compared := func(c *Comparison) *comparison {
		if c == nil {
			return nil
		}
		out := &comparison{Image: c.Image, Text: c.Text}
		for _, t := range c.Terms {
			rows := func(x []float64) [][]float64 {
				list := [][]float64{}
				for q := range t.Q {
					list = append(list, x[q*t.K:][:t.K])
				}
				return list
			}
			d := direction{Direction: Direction(t), Chosen: t.Chosen, Values: t.Values, Weights: t.Weights, Adds: rows(t.Adds), Rest: t.Rest}
			if t.Attends {
				d.Attention = rows(t.Matrix)
			} else {
				d.Products = rows(t.Matrix)
			}
			out.Directions = append(out.Directions, d)
		}
		return out
	}
	var scores []score
	for _, r := range e.Scores {
		s := score{Name: r.Name, Score: r.Score, Image: gridOf(r.Image), With: gridOf(r.Other), Compared: compared(r.Compared)}
		shares := explain.Shares(r.Words)
		for i, w := range r.Words {
			x := word{Text: w.Text, Value: w.Value, Share: shares[i], Special: w.Special}
			if r.WordMaps != nil {
				x.Patches = gridOf(&r.WordMaps[i])
			}
			s.Words = append(s.Words, x)
		}
		scores = append(scores, s)
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
		Scores     []score       `json:"scores"`
		Tokens     []float64     `json:"tokens,omitempty"`
		Files      []string      `json:"files"`
	}{folder, e.Checkpoint, e.Step, e.System, e.Score, e.Formula, e.Block, e.Layer, e.Fusion, e.Split, row, e.Name, e.Regions, e.Boxes, e.Text, e.Said, e.Truth, e.Notes, scores, e.Tokens, names}
}
