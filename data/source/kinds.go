package source

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/geoalign/geoalign/config/section"
)

// kinded is the section of a data.kind, or a field of Data that stands for one without keys. Its name is that of the
// section, or the tag kind of the field.
type kinded interface{ kind() Kind }

// kinds are the values of data.kind: the fields of Data that are kinds.
var kinds = sync.OnceValue(func() map[string]Kind {
	list := map[string]Kind{}
	d := reflect.ValueOf(new(Data)).Elem()
	for i := range d.NumField() {
		if x, ok := d.Field(i).Addr().Interface().(kinded); ok {
			tag := d.Type().Field(i).Tag
			name := tag.Get("kind")
			if name == "" {
				name = tag.Get("toml")
			}
			list[name] = x.kind()
		}
	}
	return list
})

// Kinds lists the values of data.kind.
func Kinds() []string { return slices.Sorted(maps.Keys(kinds())) }

func kindOf(cfg Setup) (Kind, error) {
	k, ok := kinds()[cfg.Data.Kind]
	if !ok {
		return k, section.Errors{{Path: "data.kind", Value: cfg.Data.Kind, Msg: "is not a kind of data",
			Hint: "use one of " + strings.Join(Kinds(), ", ")}}
	}
	return k, nil
}
