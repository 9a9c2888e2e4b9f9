package features

import (
	"fmt"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/account"
)

var _ data.Reducible = (*Set)(nil)

// Without implements data.Reducible.
func (s *Set) Without(images, texts data.BadRows) (data.Galleries, error) {
	out := &Set{p: s.p, bad: account.New()}
	out.bad.Add(s.bad)
	last := int32(-1) // image of the text before
	for j, row := range s.texts {
		i := s.owner[j]
		_, bad := images[int(i)]
		if _, also := texts[j]; bad || also {
			out.bad.Move("pair", 1, "a row that cannot be read, so the evaluation leaves it out",
				images[int(i)]+texts[j])
			continue
		}
		if i != last {
			out.images, last = append(out.images, s.images[i]), i
		}
		out.texts, out.owner = append(out.texts, row), append(out.owner, int32(len(out.images)-1))
	}
	if len(out.images) == 0 {
		return nil, fmt.Errorf("features: none of the %d images of the split can be read", len(s.images))
	}
	return out, nil
}
