// Package section is what a component needs to own its settings: a loss, a tower, a kind of data or a task declares the
// table of the TOML file that configures it beside its code, and package config lists the tables.
//
// A section is a struct whose fields are keys, with a doc comment above each, which becomes its line in docs/config.md,
// and tags for what else is to be known of a key:
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

// Section is a table of the configuration, the pointer to its struct.
type Section interface {
	Defaults()        // sets what is not zero by default
	Check(k *Checker) // reports what is wrong with its keys
}

// Switched is a section that can be off, such as a loss of weight 0. Nothing reads its keys then but those that switch
// it, its needs are not asked for, and it gives nothing.
type Switched interface{ On() bool }

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

// Needer is a section that needs what others give.
type Needer interface{ Needs() []Fact }

// Giver is a section that gives what others need or depend on.
type Giver interface{ Gives() []Fact }

// Deriver is a section that gives what rests on other sections: Derives is asked when all has been given that a Giver
// gives, in the order of the sections.
type Deriver interface{ Derives(v *View) []Fact }
