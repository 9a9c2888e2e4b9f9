package data

import (
	"fmt"
	"strings"
)

// roles are the words of a column of roles.
var roles = map[string]Role{"": Either, "query": Query, "gallery": Searched}

// seen takes the camera and the role of a row of an image, which is known from an earlier row or not.
func (b *tableBuilder) seen(row []string, at columns, image int, known bool, path string) error {
	t := b.t
	if at.camera >= 0 {
		camera, name := int32(-1), strings.TrimSpace(row[at.camera])
		if name != "" {
			var old bool
			if camera, old = b.cameras[name]; !old {
				camera = int32(len(b.cameras))
				b.cameras[strings.Clone(name)] = camera
			}
		}
		switch {
		case !known:
			t.cameras = append(t.cameras, camera)
		case t.cameras[image] != camera:
			return fmt.Errorf("image %q has another camera here (%q) than in an earlier row: one image, one camera", path, name)
		}
	}
	if at.role >= 0 {
		name := strings.TrimSpace(row[at.role])
		role, ok := roles[name]
		switch {
		case !ok:
			return fmt.Errorf("column %q: there is no role %q: write query, gallery, or nothing for an image that is both", t.cfg.Role, name)
		case !known:
			t.roles = append(t.roles, role)
		case t.roles[image] != role:
			return fmt.Errorf("image %q has another role here (%q) than in an earlier row: one image, one role", path, name)
		}
	}
	return nil
}

// Camera implements Seen.
func (t *Table) Camera(i int) int32 {
	if t.cameras == nil {
		return -1
	}
	return t.cameras[i]
}

// Role implements Seen.
func (t *Table) Role(i int) Role {
	if t.roles == nil {
		return Either
	}
	return t.roles[i]
}
