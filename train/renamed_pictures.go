package train

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/geoalign/geoalign/weights"
)

// crossed is what layers with cross-attention have, by the name of a parameter: keys of their own, or those of the
// layer before.
type crossed struct {
	first  int  // number of the first of them
	last   int  // and of the last
	paired bool // every other one has no keys of its own: a text has two pictures (encoders.BERT.Pictures)
}

// cutLayer cuts the name of a parameter of a text layer into the layer's number and the rest.
func cutLayer(name string) (layer int, rest string, ok bool) {
	number, rest, ok := strings.Cut(strings.TrimPrefix(name, textLayers), "/")
	layer, err := strconv.Atoi(number)
	return layer, rest, ok && err == nil && strings.HasPrefix(name, textLayers)
}

const textLayers = "text/layers/"

// crossedBy says what the parameters of so many names have for fusion layers, false where they have none.
func crossedBy(names []string) (x crossed, ok bool) {
	queries, keys := map[int]bool{}, map[int]bool{}
	x.first = -1
	for _, name := range names {
		layer, rest, in := cutLayer(name)
		switch {
		case in && rest == "crossattention/query/weight":
			queries[layer] = true
			x.last = max(x.last, layer)
			if x.first < 0 || layer < x.first {
				x.first = layer
			}
		case in && rest == "crossattention/kv/weight":
			keys[layer] = true
		}
	}
	x.paired = queries[x.first+1] && !keys[x.first+1]
	return x, x.first >= 0
}

// forPictures gives the parameters of a checkpoint the names that those of a model with the given ones have. Where a
// text has two pictures in the model and one in the checkpoint, fusion layer j is both fusion layers 2j and 2j+1, of
// which the second has no keys of its own (ALBEF's Pretrain_nlvr.py). path is the checkpoint's.
func forPictures(list []weights.Param, model []string, path string) ([]weights.Param, error) {
	names := make([]string, len(list))
	for i, p := range list {
		names[i] = p.Name
	}
	was, has := crossedBy(names)
	now, wants := crossedBy(model)
	switch {
	case !has || !wants || was.paired == now.paired:
		return list, nil
	case was.paired:
		return nil, fmt.Errorf("train: %s has fusion layers that read two pictures of a text, and those of this model read one: start from the checkpoint that it was trained from, or set objective.nlvr.weight or objective.assignment.weight", path)
	}
	var all []weights.Param
	for _, p := range list {
		layer, rest, ok := cutLayer(p.Name)
		if !ok || layer < was.first {
			all = append(all, p)
			continue
		}
		for k := range 2 {
			if k == 1 && strings.HasPrefix(rest, "crossattention/kv/") {
				continue
			}
			p.Name = fmt.Sprintf("%s%02d/%s", textLayers, was.first+2*(layer-was.first)+k, rest)
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b weights.Param) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}
