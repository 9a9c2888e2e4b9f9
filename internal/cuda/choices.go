package cuda

import (
	"fmt"
	"maps"

	"github.com/geoalign/geoalign/internal/usercache"
)

// choicesFile keeps what was measured of products on the devices of this machine: a run that goes on, or is made again,
// takes the algorithms that it had, and so has the bits that it had.
const choicesFile = "cuda-products.json"

// choices are the algorithms of products by the words of their keys.
type choices map[string][8]uint64

// choicesKey says for which device and library choices hold: cuBLASLt may read an algorithm of its own version alone.
func (d *Device) choicesKey() string {
	return fmt.Sprintf("%s, cuBLASLt %s, tf32 %t", d.info.Name, d.info.CuBLASLt, d.options.TF32)
}

// known reads the choices for this device, none where there is no file or it is damaged.
func (d *Device) known() choices {
	all := map[string]choices{}
	if file := usercache.File(choicesFile); file == "" || usercache.Read(file, &all) != nil {
		return choices{}
	}
	c := all[d.choicesKey()]
	if c == nil {
		c = choices{}
	}
	return c
}

// keepChoices writes what was measured since, beside what other programs have written meanwhile. A file that cannot be
// written costs the time of the next measurement alone.
func (d *Device) keepChoices() {
	if !d.measured {
		return
	}
	file := usercache.File(choicesFile)
	if file == "" {
		return
	}
	defer usercache.Lock(file)()
	var all map[string]choices
	_ = usercache.Read(file, &all) // else there is nothing to keep
	if all == nil {
		all = map[string]choices{}
	}
	c := d.known()
	maps.Copy(c, d.chosen)
	all[d.choicesKey()] = c
	if usercache.Write(file, all) == nil {
		d.measured = false
	}
}

// String is the key of a product in the file.
func (k productKey) String() string { return fmt.Sprintf("%+v %v", k.Product, k.align) }
