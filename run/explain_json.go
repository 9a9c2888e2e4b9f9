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
		Patches *grid   `json:"patches,omitempty"` // of a match
	}
	type score struct {
		Name  string  `json:"name"`
		Score float64 `json:"score"`
		Image *grid   `json:"image"`
		With  *grid   `json:"with,omitempty"`
		Words []word  `json:"words,omitempty"`
	}
	gridOf := func(m *explain.Map) *grid {
		if m == nil {
			return nil
		}
		return &grid{m.Rows, m.Columns, m.Values}
	}
	var scores []score
	for _, r := range e.Scores {
		s := score{Name: r.Name, Score: r.Score, Image: gridOf(r.Image), With: gridOf(r.Other)}
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
	return struct {
		Folder     string    `json:"folder"`
		Checkpoint string    `json:"checkpoint"`
		Step       int       `json:"step"`
		System     string    `json:"system"`
		Measure    string    `json:"score"`
		Formula    string    `json:"formula"`
		Block      int       `json:"block"`
		Layer      int       `json:"layer"`
		Fusion     int       `json:"fusion"`
		Text       string    `json:"text,omitempty"`
		Notes      []string  `json:"notes,omitempty"`
		Scores     []score   `json:"scores"`
		Tokens     []float64 `json:"tokens,omitempty"`
		Files      []string  `json:"files"`
	}{folder, e.Checkpoint, e.Step, e.System, e.Score, e.Formula, e.Block, e.Layer, e.Fusion, e.Text, e.Notes, scores, e.Tokens, names}
}
