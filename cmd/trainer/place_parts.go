package main

import (
	"fmt"
	"reflect"

	"github.com/geoalign/geoalign/config"
)

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
			Msg: fmt.Sprintf("%s with %v and %s, which %s now", was, show(earlier), either(before, "a learned metric", "no learned metric"), either(after, "a score reads", "no score reads"))})
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
		Msg: fmt.Sprintf("%s with %v: its queue lacks the features before the head", was, show(earlier))}}
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
