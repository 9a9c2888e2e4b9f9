package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/internal/words"
)

// Version is the version of the configurations that this program writes. It grows when a
// key gets another name or place, or goes: what is older is translated by the table below.
// Files without a version are of version 1.
const Version = 3

// rename is a key that has another name since some version, or that is gone.
type rename struct {
	since    int
	old, now string // now is empty for a key that is gone
	why      string // of a key that is gone: what has taken its place
}

// renames are the keys that had another name, the newest last.
var renames = []rename{
	{2, "data.train_files", "data.captions.train_files", ""},
	{2, "data.val_files", "data.captions.val_files", ""},
	{2, "data.test_files", "data.captions.test_files", ""},
	{2, "data.file", "data.karpathy.file", ""},
	{2, "data.image_root", "data.karpathy.image_root", ""},
	{2, "model.head.hidden", "model.views.hidden", ""},
	{3, "data.decoder", "", "JPEG files have the pixels of libjpeg-turbo on every machine: leave it out"},
	{3, "compute.tune", "", "the built-in kernels compute every product: leave it out"},
}

// upgrades bring a configuration from the version of its file to the next one, where other
// names are not enough. Since a file that a user wrote today may say no version, they must
// do no harm to it.
var upgrades = map[int]func(*Config){
	1: func(c *Config) {
		const width = 768 // the default, which nothing reads in the other systems
		if h := &c.Model.Heads; !c.Has(section.Stored) && h.InImage == width && h.InText == width {
			h.InImage, h.InText = 0, 0
		}
	},
}

// complete sets keys that the file of a run lacks, since the program that wrote it did not have
// them, to what that program did, where today's default is another and something reads the key.
// The file of a run names every key of its time.
func (l *loader) complete(c *Config) {
	if itm := &c.Objective.ITM; itm.Weight > 0 && l.where["objective.itm.negative_floor"] == nil {
		itm.NegativeFloor = 1e-4
	}
}

// settle sets a key that nothing sets, whose default depends on others. Files of earlier versions keep the one default
// that there was.
func (l *loader) settle(c *Config) {
	if key := "model.interaction.class_tokens"; l.where[key] == nil && !l.older && c.Model.Interaction.Attends() {
		c.Model.Interaction.ClassTokens = true
	}
	if itc := &c.Objective.ITC; l.where["objective.itc.temperature"] == nil && !l.older && c.sphereSum() > 1 {
		itc.Temperature *= c.sphereSum()
		if l.where["objective.itc.temperature_max"] == nil {
			itc.TemperatureMax *= c.sphereSum()
		}
	}
}

// upgrade brings c, which the files filled, to this version.
func (l *loader) upgrade(c *Config) {
	for v := l.version; v < Version; v++ {
		if up := upgrades[v]; up != nil {
			up(c)
		}
	}
	if (l.stored || l.older) && c.Compute.ByLibrary() {
		l.note(l.placeOf("compute.backend"), "compute.backend = %q is \"auto\" since configuration version 3: products are built in",
			c.Compute.Backend)
		c.Compute.Backend = "auto"
	}
}

// mostUnknown is how many unknown keys are reported one by one.
const mostUnknown = 20

// countUnknown reports how many unknown keys there are beyond those.
func (l *loader) countUnknown(where string) {
	text := fmt.Sprintf("and %s that are unknown too", words.Count(l.unknown-mostUnknown, "more key"))
	switch {
	case l.unknown <= mostUnknown:
	case l.stored:
		l.note(where, "%s", text)
	default:
		l.errs = append(l.errs, &Error{Msg: text, Hint: "is this the configuration of a run?", Where: where})
	}
	l.unknown = 0
}

// renamed returns the key that an unknown one is now. Without one it reports the key, by a notice in the file of a run
// and, where it is gone, in one that says that it is of an earlier version.
func (l *loader) renamed(path string, where func() string, set map[string]bool) (now string, ok bool) {
	i := slices.IndexFunc(renames, func(r rename) bool { return r.old == path })
	if i < 0 {
		if l.unknown++; l.unknown > mostUnknown {
			return "", false
		}
	}
	switch {
	case i < 0 && l.stored:
		l.note(where(), "%s: is unknown to this version and is not read", path)
		return "", false
	case i < 0:
		l.fail(&Error{Path: path, Msg: "unknown key", Hint: l.nearest(path), Where: where()})
		return "", false
	}
	r := renames[i]
	switch {
	case r.now == "" && (l.stored || l.older):
		l.note(where(), "%s: is gone since configuration version %d: %s", path, r.since, r.why)
	case r.now == "":
		l.fail(&Error{Path: path, Msg: fmt.Sprintf("is gone since configuration version %d", r.since), Hint: r.why,
			Where: where()})
	case set != nil && set[r.now]:
		l.fail(&Error{Path: path, Msg: "is " + r.now + " now, which is set too", Hint: "leave one of them out",
			Where: where()})
	default:
		if !l.stored {
			l.note(where(), "%s is %s since configuration version %d", path, r.now, r.since)
		}
		if l.old != nil {
			l.old[r.now] = path
		}
		return r.now, true
	}
	return "", false
}

// readVersion takes the version of a file, and reports one that cannot be read.
func (l *loader) readVersion(value any, line int) bool {
	n, ok := value.(int64)
	switch {
	case !ok || n < 1:
		l.fail(&Error{Path: "version", Value: value, Where: l.at(line), Msg: "must be an integer > 0",
			Hint: fmt.Sprintf("write %d, or leave it out", Version)})
		return false
	case n > Version:
		e := &Error{Path: "version", Where: l.at(line),
			Msg: fmt.Sprintf("made by a newer version of geoalign (configuration version %d, this one reads up to %d)",
				n, Version), Hint: "update geoalign"}
		if l.stored {
			e.Hint += ": the run folder is untouched"
		}
		l.newer = true
		l.fail(e)
		return false
	}
	l.version, l.older = min(l.version, int(n)), l.older || n < Version
	return true
}

// ParseStored reads the configuration of a run or a checkpoint, whose text it is, with
// overrides over it; name stands for it in messages. Other than Parse it takes what an
// earlier version wrote: keys that have another name since are translated, unknown ones
// are passed over, and a value that the checks of this version refuse is kept, since the
// run was made with it. Of the last two the notices tell, one line each. What is still an
// error: the overrides and what they lead to, a key of the architecture with a value that
// no model can be built of, a value of a wrong type, and a file of a later version.
//
// To train on with the configuration, check it with Validate. Sections of other modules are added, from their defaults.
func ParseStored(name string, text []byte, sets []string, added ...Added) (Config, []string, error) {
	c, errs := add(fresh(added))
	if len(errs) > 0 {
		return c, nil, errs
	}
	l := newLoader(&c)
	l.stored = true
	l.file(name, text)
	if l.newer {
		return c, nil, l.errs.OrNil()
	}
	l.upgrade(&c)
	l.complete(&c)
	known := map[string]string{} // problems that the file has by itself
	for _, e := range c.problems() {
		known[e.Path] = e.Msg
	}
	l.overrides(sets)
	for _, e := range c.problems() {
		if l.broken[e.Path] {
			continue
		}
		e.Where = l.placeOf(e.Path)
		f, is := c.at(e.Path)
		if known[e.Path] == e.Msg && !strings.HasPrefix(e.Where, setPlace) && (!is || f.fixed() < FixedModel) {
			l.note("", "%v: kept, as the run was made with it", e)
			continue
		}
		l.errs = append(l.errs, e)
	}
	return c, l.notices, l.errs.OrNil()
}
