package main

import (
	"path/filepath"
	"slices"
	"testing"
)

// TestExplainStatement: of a model of statements about two pictures both are shown, each with a map of its own, of a
// row of a split and of files; what is of pairs is refused.
func TestExplainStatement(t *testing.T) {
	dir := t.TempDir()
	base, tuned, out := filepath.Join(dir, "base"), filepath.Join(dir, "tuned"), filepath.Join(dir, "why")
	must(t, exitDone, tinyArgs(base, "--max-steps", "2", "--quiet")...)
	must(t, exitDone, "finetune", "--checkpoint", base, "--task", "nlvr", "--max-steps", "2", "--quiet", "--out", tuned)
	e := explainJSON(t, "--checkpoint", tuned, "--split", "val", "--row", "1", "--out", out)
	if len(e.Scores) != 1 || e.Scores[0].Name != "statement" || e.Formula != "attention" || e.Block != -1 || e.Fusion != 0 || e.Text == "" {
		t.Fatalf("%+v", e)
	}
	if want := []string{"explain.html", "image.png", "with.png", "statement.png", "statement-with.png"}; !slices.Equal(e.Files, want) {
		t.Errorf("files %q, want %q", e.Files, want)
	}
	answers := []string{"false", "true"}
	if !slices.Contains(answers, e.Said) || !slices.Contains(answers, e.Truth) {
		t.Errorf("said %q, truth %q", e.Said, e.Truth)
	}
	left, right := picture(t, 30, 20), picture(t, 21, 40)
	text := []string{"--text", "there is a red circle on the left", "--out", out}
	a := explainJSON(t, append([]string{"--checkpoint", tuned, "--image", left, "--with", right}, text...)...)
	b := explainJSON(t, append([]string{"--checkpoint", tuned, "--image", left, "--with", left}, text...)...)
	for _, x := range []explained{a, b} {
		if x.Truth != "" || x.Scores[0].With == nil || len(x.Scores[0].With.Values) != 4 || len(x.Scores[0].Image.Values) != 4 {
			t.Fatalf("%+v", x)
		}
	}
	if slices.Equal(a.Scores[0].With.Values, b.Scores[0].With.Values) || slices.Equal(a.Scores[0].Image.Values, a.Scores[0].With.Values) {
		t.Errorf("the maps of other pictures are the same: %+v, %+v", a.Scores[0], b.Scores[0])
	}
	stdout, _ := must(t, exitDone, "explain", "--checkpoint", tuned, "--row", "0", "--out", out)
	contains(t, stdout, "statement ", "answer ", "right ", "4 pictures beside it")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--image", left, "--text", "x"}, "give --image, --with and --text, or a statement of --split with --row"},
		{[]string{"--row", "0", "--fusion", "1"}, "leave out --block, --layer, --fusion and --formula"},
		{[]string{"--row", "9999"}, "--row must be below"},
		{[]string{"--split", "val", "--pairs", "3"}, "which have no score of a pair"},
	} {
		fails(t, exitUsage, append([]string{"explain", "--checkpoint", tuned, "--out", out}, c.args...), c.want)
	}
	// A statement is about pictures of several scenes, whose facts are no colours of its point.
	fails(t, exitUsage, []string{"report", tuned, "--color", "shape"}, `--color "shape": `)
	fails(t, exitUsage, []string{"explain", "--checkpoint", base, "--image", left, "--with", right, "--text", "x", "--out", out}, "--with is for systems of images alone, and for statements about two pictures")
}
