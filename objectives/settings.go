package objectives

import "github.com/geoalign/geoalign/config/section"

// Settings is a loss that is its own section of the configuration, [objective.NAME]: a Loss, or a Fused. It is built
// where it is on.
//
// What it reads it tells by Gives, by which it is known what else is read: the score and temperature of objective.itc,
// the teacher, the queue. A loss that tells nothing reads the features of both sides.
type Settings interface {
	section.Section
	section.Switched
}

// Group returns losses in their order, with all that are Fused as one at the place of the first.
func Group(all []any) (list []Loss) {
	fused, at := Fusing(nil), -1
	for _, x := range all {
		switch x := x.(type) {
		case Loss:
			list = append(list, x)
		case Fused:
			if fused = append(fused, x); at < 0 {
				at, list = len(list), append(list, nil)
			}
		}
	}
	if at >= 0 {
		list[at] = fused
	}
	return list
}
