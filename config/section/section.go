// Package section is what a component needs to own its settings: a loss, a tower, a kind of data or a task declares the
// table of the TOML file that configures it beside its code, and package config lists the tables.
//
// A section is a struct whose fields are keys, with a doc comment above each, which becomes its line in docs/config.md,
// and tags for what else is to be known of a key. The keys of an embedded struct are those of the struct around it.
//
//	toml:"margin"             the name of the key
//	when:"negatives=hardest"  what must hold for something to read the key (see When)
//	max:"65536"               the largest value, or of a list the largest item; every integer has one
//	fixed:"meaning"           parameters mean something else with another value
//	fixed:"model"             part of the architecture
//	fixed:"run"               cannot change within a run
//	change:"harmless"         changes nothing that a run computes
//	change:"silent"           harmless, and not worth a word when a run is resumed with another value
//
// What a component needs of others, and what it gives them, is a Fact. Nobody asks for another section by its name.
package section

// A section is the pointer to its struct. It has the methods of those of the following interfaces that it has something
// to say by, and none where its keys are 0 by default and any values will do.

// Defaulter is a section that sets keys which are not zero by default.
type Defaulter interface{ Defaults() }

// Checked is a section that reports what is wrong with its keys.
type Checked interface{ Check(k *Checker) }

// Switched is a section that can be off, such as a loss of weight 0. Nothing reads its keys then but those that switch
// it, its needs are not asked for, and it gives nothing. Numbers that switch it are checked not to be negative.
type Switched interface{ On() bool }

// Weighted is what the section of a loss embeds: its weight, which switches it. A comment above the embedded field
// stands for that of the key.
type Weighted struct {
	// of the loss in the total; 0: off
	Weight float64 `toml:"weight" max:"1000000"`
}

// Weigh returns a weight as a section embeds it.
func Weigh(w float64) Weighted { return Weighted{w} }

// On implements Switched.
func (w Weighted) On() bool { return w.Weight > 0 }

// Switcher is a Switched section that has other keys to switch it than "weight".
type Switcher interface{ Switches() []string }

// Switches are the keys that switch a section.
func Switches(s any) []string {
	if x, ok := s.(Switcher); ok {
		return x.Switches()
	}
	return []string{"weight"}
}

// On says whether a section is on, as one is that cannot be off.
func On(s any) bool {
	x, can := s.(Switched)
	return !can || x.On()
}

// Default sets the defaults of a section.
func Default(s any) {
	if x, ok := s.(Defaulter); ok {
		x.Defaults()
	}
}

// Needer is a section that needs what others give.
type Needer interface{ Needs() []Fact }

// Giver is a section that gives what others need or depend on.
type Giver interface{ Gives() []Fact }

// Deriver is a section that gives what rests on other sections: Derives is asked when all has been given that a Giver
// gives, in the order of the sections.
type Deriver interface{ Derives(v *View) []Fact }
