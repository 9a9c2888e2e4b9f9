package run

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/train"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// Keys that a checkpoint fixes.
var (
	// headKeys change what the same parameters compute.
	headKeys = []string{"model.system", "model.image.heads", "model.text.heads"}
	// modelKeys are the architecture.
	modelKeys = append(slices.Clone(headKeys), "model.image.size", "model.image.patch", "model.image.depth", "model.image.width",
		"model.image.mlp", "model.text.layers", "model.text.fusion_layers", "model.text.width", "model.text.mlp",
		"model.text.positions", "model.head.dim", "model.head.topology", "model.head.token_blocks", "model.head.hidden",
		"objective.itc.log_temperature", "objective.gssf.form", "objective.gssf.blocks", "objective.swav.prototypes")
	// runKeys cannot change within a run.
	runKeys = append(slices.Clone(modelKeys), "run.seed", "queue.size", "momentum.enabled", "init.checkpoint")
	// freeKeys are not worth a word when a run goes on with another value.
	freeKeys = []string{"run.name", "run.out"}
)

// Difference is a setting that two configurations give another value.
type Difference struct {
	Path     string
	Was, Now any
}

// ownConfig returns the configuration that a checkpoint was made with.
func ownConfig(ck *checkpoint.Checkpoint) (config.Config, error) {
	old, err := train.OpenConfig(ck)
	if err != nil {
		return old, fmt.Errorf("the checkpoint's own configuration: %w", err)
	}
	return old, nil
}

// Differences compares an earlier configuration with cfg. Values that mean the same are
// the same.
func Differences(old, cfg config.Config) (list []Difference) {
	old, cfg = explicit(old), explicit(cfg)
	if old.Model.Head.Topology == cfg.Model.Head.Topology { // which 0 blocks follow
		old.Objective.GSSF.Blocks, cfg.Objective.GSSF.Blocks = old.MetricBlocks(), cfg.MetricBlocks()
	}
	for _, p := range config.Paths() {
		was, _ := old.Get(p)
		now, _ := cfg.Get(p)
		if !reflect.DeepEqual(was, now) && fmt.Sprint(was) != fmt.Sprint(now) { // a nil list is an empty one
			list = append(list, Difference{p, was, now})
		}
	}
	return list
}

// StartDifferences lists the settings that a run must have in common with the one whose
// checkpoint it starts from (init.checkpoint) and has not.
func StartDifferences(old, cfg config.Config) []Difference {
	return slices.DeleteFunc(Differences(old, cfg), func(d Difference) bool { return !slices.Contains(headKeys, d.Path) })
}

// explicit replaces values that stand for another.
func explicit(c config.Config) config.Config {
	for _, m := range []struct {
		mlp   *int
		width int
	}{{&c.Model.Image.MLP, c.Model.Image.Width}, {&c.Model.Text.MLP, c.Model.Text.Width}} {
		if *m.mlp == 0 {
			*m.mlp = 4 * m.width
		}
	}
	return c
}

// sameKeys returns an error that lists the keys of which ck has another value.
func sameKeys(ck *checkpoint.Checkpoint, cfg config.Config, keys []string) error {
	old, err := ownConfig(ck)
	if err != nil {
		return err
	}
	was := fmt.Sprintf("the checkpoint %s was made", ck.Path)
	var errs config.Errors
	if slices.Contains(keys, "objective.gssf.form") {
		errs = scoreParts(old, cfg, was, "use its value, or another checkpoint")
	}
	for _, d := range Differences(old, cfg) {
		if slices.Contains(keys, d.Path) {
			errs = append(errs, &config.Error{Path: d.Path, Value: d.Now, Msg: fmt.Sprintf("%s with %v", was, Show(d.Was)),
				Hint: "use its value, or another checkpoint"})
		}
	}
	if errs != nil {
		return errs
	}
	return nil
}

// checkResume refuses to go on with what a run cannot change and tells what else
// has changed.
func checkResume(from *checkpoint.Checkpoint, cfg config.Config, say func(format string, args ...any)) error {
	old, err := ownConfig(from)
	if err != nil {
		return err
	}
	const hint = "go on with that value, choose another folder with --out, or start anew with --resume never"
	was := fmt.Sprintf("the run in %s was started", from.Path)
	errs := slices.Concat(scoreParts(old, cfg, was, hint), queueParts(old, cfg, was, hint))
	for _, d := range Differences(old, cfg) {
		switch {
		case slices.Contains(runKeys, d.Path):
			errs = append(errs, &config.Error{Path: d.Path, Value: d.Now, Msg: fmt.Sprintf("%s with %v", was, Show(d.Was)), Hint: hint})
		case !slices.Contains(freeKeys, d.Path):
			say("changed since the checkpoint: %s = %v (was %v)", d.Path, Show(d.Now), Show(d.Was))
		}
	}
	if errs != nil {
		return errs
	}
	return nil
}

// Show formats a value of a configuration.
func Show(v any) string {
	switch v := v.(type) {
	case string, []string:
		return fmt.Sprintf("%q", v)
	case []config.ScoreTerm:
		items := make([]string, len(v))
		for i, t := range v {
			items[i] = t.String()
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	return fmt.Sprint(v)
}

// scoreKeys are where a score is named.
var scoreKeys = []string{"objective.itc.scores", "objective.itc.score", "objective.itc.target_score", "objective.itm.negatives"}

// scoreParts lists the parameters of scores that only one of two configurations has, the
// old one of a checkpoint and the one it is to go on with. Each problem begins with was
// and ends with hint.
func scoreParts(old, now config.Config, was, hint string) (errs config.Errors) {
	learned := func(c config.Config) bool { return c.UsesMetric() && c.Objective.GSSF.Form != "cosine" }
	if before, after := learned(old), learned(now); before != after && (old.UsesMetric() != now.UsesMetric()) { // else the form tells
		path := changed(old, now, scoreKeys)
		value, _ := now.Get(path)
		earlier, _ := old.Get(path)
		errs = append(errs, &config.Error{Path: path, Value: value, Hint: hint,
			Msg: fmt.Sprintf("%s with %v and %s, which %s now", was, Show(earlier), either(before, "a learned metric", "no learned metric"), either(after, "a score reads", "no score reads"))})
	}
	own := func(c config.Config) bool { return c.Objective.Geodesic.Temperature > 0 && c.Objective.UsesGeodesic() }
	if before, after := own(old), own(now); before != after {
		errs = append(errs, &config.Error{Path: "objective.geodesic.temperature", Value: now.Objective.Geodesic.Temperature, Hint: hint,
			Msg: fmt.Sprintf("%s with %v, %s", was, old.Objective.Geodesic.Temperature, either(before, "a temperature of the geodesic's own", "without a temperature of the geodesic's own"))})
	}
	return errs
}

// queueParts lists what the geometric term reads and the queue of a checkpoint lacks.
// A term that is switched off needs nothing.
func queueParts(old, now config.Config, was, hint string) config.Errors {
	lacks := func(other string) bool {
		has := func(c config.Config) bool {
			return c.Objective.UsesGeometric() && c.Objective.Geometric.Modalities != other
		}
		return has(now) && !has(old)
	}
	if !lacks("image") && !lacks("text") {
		return nil
	}
	path := "objective.geometric.weight"
	if old.Objective.UsesGeometric() {
		path = "objective.geometric.modalities"
	}
	value, _ := now.Get(path)
	earlier, _ := old.Get(path)
	return config.Errors{{Path: path, Value: value, Hint: hint,
		Msg: fmt.Sprintf("%s with %v: its queue lacks the features before the head", was, Show(earlier))}}
}

// changed returns the first of some keys that has another value, or the first of all.
func changed(old, now config.Config, keys []string) string {
	for _, k := range keys {
		was, _ := old.Get(k)
		is, _ := now.Get(k)
		if !reflect.DeepEqual(was, is) {
			return k
		}
	}
	return keys[0]
}

func either(yes bool, a, b string) string {
	if yes {
		return a
	}
	return b
}
