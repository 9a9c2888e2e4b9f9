package cuda

import "github.com/geoalign/geoalign/internal/exec"

// Keep returns where memory lies that fill made when the key was first asked for, 0 where it made none. It stays until
// the device is closed, so that all steps that read the same values, such as a table of features, share them.
func (d *Device) Keep(key any, fill func() (exec.Memory, error)) (Pointer, error) {
	if at, ok := d.kept[key]; ok {
		return at, nil
	}
	m, err := fill()
	if m == nil || err != nil {
		return 0, err
	}
	if d.kept == nil {
		d.kept = map[any]Pointer{}
	}
	d.kept[key] = m.(*Memory).at
	return d.kept[key], nil
}
