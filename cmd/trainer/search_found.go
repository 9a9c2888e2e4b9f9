package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/geoalign/geoalign/gallery"
	"github.com/geoalign/geoalign/internal/words"
)

// found is what search prints.
type found struct {
	Gallery string     `json:"gallery"`
	Side    string     `json:"side"` // of the rows
	Rows    int        `json:"rows"`
	Metric  string     `json:"metric"`
	Index   bool       `json:"index"`
	Recall  float64    `json:"recall"`   // that was measured of the index, 1 without
	RecallK int        `json:"recall_k"` // neighbours of a query that it was measured with, 0 without
	Codes   string     `json:"index_codes,omitempty"`
	Seconds float64    `json:"seconds"`
	Chosen  *int       `json:"chosen,omitempty"` // rows of the filter
	Queries [][]hitRow `json:"queries"`          // the hits of each query
}

// hitRow is a row that was found.
type hitRow struct {
	gallery.Item
	Score  float32        `json:"score"`
	Fields map[string]any `json:"fields,omitempty"` // of --fields
	Vector []float32      `json:"vector,omitempty"` // (C), of --with-vector
}

// print writes a table for each query.
func (r *found) print(out io.Writer) error {
	for q, hits := range r.Queries {
		if len(r.Queries) > 1 {
			fmt.Fprintf(out, "query %d\n", q)
		}
		t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintf(t, "score\trow\t\n")
		for _, h := range hits {
			name := words.Shown(h.Name + h.Caption)
			if h.Fields != nil {
				b, err := json.Marshal(h.Fields)
				if err != nil {
					return err
				}
				name = words.Shown(string(b))
			}
			if name != "" {
				name = "  " + name
			}
			fmt.Fprintf(t, "%.4f\t%d\t%s\n", h.Score, h.Row, name)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	how := "all rows compared"
	if r.Chosen != nil {
		how = fmt.Sprintf("%s of the filter compared", words.Thousands(*r.Chosen))
	}
	if r.Index {
		how = fmt.Sprintf("by an index of %s with a measured recall@%d of %.3f", r.Codes, r.RecallK, r.Recall)
	}
	_, err := fmt.Fprintf(out, "%s of %s by %s, %s, %.1f ms\n", words.Count(r.Rows, "row"), r.Side, r.Metric, how,
		1e3*r.Seconds)
	return err
}
