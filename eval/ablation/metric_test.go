package ablation

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// TestSentenceMetrics: numbers of sentence pairs and of other tasks and losses are known, and which way each is better.
func TestSentenceMetrics(t *testing.T) {
	for name, want := range map[string]string{
		"eval/sts/stsb/spearman": "higher", "eval/pairs/mrpc/tuned": "higher",
		"eval/isotropy/stsb/effective_rank": "higher", "eval/isotropy/stsb/isoscore": "higher",
		"eval/isotropy/stsb/mean_cosine": "lower", "eval/isotropy/stsb/uniformity": "lower",
		"eval/isotropy/stsb/alignment": "lower", "eval/isotropy/stsb/rank": "", "eval/sentiment/mae": "lower",
		"eval/sentiment/constant_mae": "lower", "eval/sentiment/accuracy7": "higher",
		"eval/sentence_pairs/accuracy": "higher", "online_weight": "none",
		// no scores
		"eval/probe/top1": "higher", "eval/probe/decay": "none", "eval/vqa/accuracy": "higher",
		"eval/vqa/outside": "none", "itm_accuracy": "higher", "siglip_scale": "none", "itc_i2i": "lower",
		"siglip_scales": "",
	} {
		if got, known := direction(name); got != want || known != (want != "") {
			t.Errorf("%s: %q (%v), want %q", name, got, known, want)
		}
	}
}

// TestMeasuresOfLosses: what a loss logs beside itself can be a column, as any key of metrics.jsonl.
func TestMeasuresOfLosses(t *testing.T) {
	sources := slices.Concat(check.Get(filepath.Glob("../../objectives/*.go"))(t),
		check.Get(filepath.Glob("../../tasks/*/*.go"))(t))
	measure := regexp.MustCompile(`Name: "([a-z0-9_]+)",[^\n]*Measure: true|add\("(itc_[a-z0-9_]+)",`)
	found := map[string]bool{}
	for _, path := range sources {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text := check.Get(os.ReadFile(path))(t)
		for _, m := range measure.FindAllSubmatch(text, -1) {
			name := string(m[1]) + string(m[2])
			found[name] = true
			if _, known := direction(name); !known {
				t.Errorf("%s logs %q, which no column can be", filepath.Base(path), name)
			}
		}
	}
	for _, name := range []string{"itc_local_text", "klot_off", "vqa_left_out", "itm_accuracy"} {
		if !found[name] {
			t.Errorf("%q is not found among %d measures", name, len(found))
		}
	}
}
