// Package report draws a training run, or a comparison of several, as one HTML file that
// needs nothing beside it: styles and pictures (SVG) stand in the page, which has no
// script and no address of anything outside. It reads in light and in dark and can be
// printed.
//
//	curves, err := report.ReadCurves(file)          // of a metrics.jsonl
//	err = report.Write(w, report.Data{Title: "run", Curves: curves})
//
// What Data lacks is left out of the page, which says so in a sentence. The package opens
// no file and knows no model: scores of pairs come from a Scorer. Equal data makes an
// equal page, byte for byte.
package report
