// Package licenses holds the licences of the modules that the program is built from.
package licenses

import _ "embed"

//go:generate go run ./gen

// ThirdParty has the text of each licence once, below the modules that are under it.
//
//go:embed third_party.txt
var ThirdParty string
