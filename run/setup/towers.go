package setup

import (
	"errors"
	"fmt"
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/train"
	"github.com/geoalign/geoalign/weights"
)

// Towers opens the files of init.image and init.text and compares the configuration with them. The error for
// keys that do not fit names all of them. Close the result after use.
func Towers(cfg config.Config) (t train.Towers, err error) {
	defer func() {
		if err != nil {
			t.Close() // what failed first says why
		}
	}()
	var all config.Errors
	open := func(p Purpose, path, family string) (*weights.Model, error) {
		if path == "" {
			return nil, nil
		}
		m, err := weights.OpenAs(path, family)
		if err != nil {
			return nil, fmt.Errorf("%s.path: %w", p, err)
		}
		if !HasSide(m, p.side()) {
			return m, config.Errors{{Path: string(p) + ".path", Value: path,
				Msg:  fmt.Sprintf("is %s, which has no %s tower", m.Family, p.side()),
				Hint: "name a model with one, or use the other key"}}
		}
		errs, _, err := Disagreements(cfg, m, p)
		all = append(all, errs...)
		return m, err
	}
	image, text := cfg.Towers()
	if t.Image, err = open(forImage, image, cfg.Init.Image.Family); err != nil {
		return t, err
	}
	if t.Text, err = open(forText, text, cfg.Init.Text.Family); err != nil {
		return t, err
	}
	return t, OneError(all)
}

// HasSide says whether weights have a tower of a side, image or text.
func HasSide(m *weights.Model, side string) bool {
	return m.Encoder.Side == "" || m.Encoder.Side == side
}

// CheckTowers tells what was read of the towers' files, and fails where they lack a parameter that they should have.
func CheckTowers(cfg config.Config, t train.Towers, p *model.Params, say func(format string, args ...any)) error {
	fresh, missing := t.Lacks(p)
	var errs []error
	for _, x := range []struct {
		p     Purpose
		m     *weights.Model
		allow bool
	}{{forImage, t.Image, cfg.Init.Image.AllowMissing}, {forText, t.Text, cfg.Init.Text.AllowMissing}} {
		if x.m == nil {
			continue
		}
		new, lacks := ofSide(fresh, x.p), ofSide(missing, x.p)
		if len(lacks) > 0 && !x.allow {
			errs = append(errs, config.Errors{{Path: string(x.p) + ".path", Value: x.m.Path(),
				Msg:  "lacks " + FirstNames(lacks),
				Hint: setFlag(string(x.p)+".allow_missing", true) + " starts these from random numbers"}})
			continue
		}
		say("%s from %s: %s", x.p, x.m.Path(), took(x.m.Report(), x.p.side(), append(new, lacks...)))
	}
	return errors.Join(errs...)
}

// took is a report of weights in lines: what was read of a side, or of all with an empty one, and what starts from
// random numbers.
func took(r weights.Report, side string, fresh []string) string {
	of := func(names []string) (list []string) {
		for _, name := range names {
			if side == "" || strings.HasPrefix(name, side+"/") {
				list = append(list, name)
			}
		}
		return list
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %d parameters read", r.Family, r.Read)
	for _, l := range []struct {
		what  string
		names []string
	}{{"resampled", r.Resampled}, {"cut", r.Cut}, {"random", fresh}, {"left out", of(r.Unread)},
		{"not known", r.Unexpected}} {
		if len(l.names) > 0 {
			fmt.Fprintf(&b, ", %d %s (%s)", len(l.names), l.what, FirstNames(l.names))
		}
	}
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "\nnote: %s", note)
	}
	return b.String()
}

// ofSide returns the names of the parameters of a tower.
func ofSide(names []string, p Purpose) (list []string) {
	for _, name := range names {
		if strings.HasPrefix(name, p.side()+"/") {
			list = append(list, name)
		}
	}
	return list
}

// FirstNames names the first parameters of a list.
func FirstNames(names []string) string {
	s := strings.Join(names[:min(3, len(names))], ", ")
	if len(names) > 3 {
		s += fmt.Sprintf(" and %d more", len(names)-3)
	}
	return s
}
