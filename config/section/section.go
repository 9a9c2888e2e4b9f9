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

// Switched is a section that can be off, such as a loss of weight 0. Nothing reads its keys then but "weight", and its
// needs are not asked for.
type Switched interface{ On() bool }

// Needer is a section that needs what others give.
type Needer interface{ Needs() []Fact }

// Giver is a section that gives what others need.
type Giver interface{ Gives() []Fact }
