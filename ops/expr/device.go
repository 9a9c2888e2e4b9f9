package expr

import (
	"fmt"
	"strings"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/expr/internal/oncuda"
)

// onDevice returns the step of a value for the CUDA device, nil where a function has no text for it.
func onDevice(v *Value, l Layout) map[string]exec.DeviceStep {
	axes, views := l.three()
	k := oncuda.Kernel{Axes: axes}
	for _, w := range views {
		k.Views = append(k.Views, oncuda.View{From: w.from, Strides: [3]int{w.outer, w.inner, w.along}})
	}
	var text strings.Builder
	names := map[string]string{}
	known := true
	v.walk(func(u *Value) {
		key := u.String()
		if names[key] != "" {
			return
		}
		switch {
		case u.of == nil && u.leaf == constant:
			names[key] = fmt.Sprint("c", len(k.Numbers))
			k.Numbers = append(k.Numbers, u.number)
		case u.of == nil:
			names[key] = key
			k.Diagonal = k.Diagonal || u.leaf == diagonal
		default:
			args := make([]any, len(u.args))
			for i, a := range u.args {
				args[i] = names[a.String()]
			}
			names[key] = fmt.Sprint("v", len(names))
			fmt.Fprintf(&text, "  float %s = %s;\n", names[key], fmt.Sprintf(u.of.device, args...))
			known = known && u.of.device != ""
		}
	})
	if !known {
		return nil
	}
	fmt.Fprintf(&text, "  return %s;\n", names[v.String()])
	k.Body = text.String()
	return k.Step()
}
