package run

import (
	"errors"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/run/console"
	"github.com/geoalign/geoalign/tasks/probe"
	"github.com/geoalign/geoalign/tasks/reid"
	"github.com/geoalign/geoalign/tasks/sentencepairs"
	"github.com/geoalign/geoalign/tasks/sentences"
	"github.com/geoalign/geoalign/tasks/sentiment"
)

// TestTasksNeedWords: tasks of texts are refused for a system that reads none, with one that it has.
func TestTasksNeedWords(t *testing.T) {
	cfg := config.Default()
	cfg.Model.System = "moco"
	for _, task := range []string{probe.TextName, sentences.Name, sentiment.Name, reid.SiblingsName} {
		_, err := Evaluate(t.Context(), Evaluation{Task: task, Config: cfg})
		want := "the task " + task + ` needs a model that reads words, which model.system "moco" does not: use --task probe`
		if usage := (*console.ArgumentError)(nil); !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	_, err := Evaluate(t.Context(), Evaluation{Task: sentencepairs.Name, Config: cfg})
	if usage := (*console.ArgumentError)(nil); !errors.As(err, &usage) || !strings.Contains(err.Error(), `which model.system "moco" is not: use --task probe`) {
		t.Errorf("%v", err)
	}
}
