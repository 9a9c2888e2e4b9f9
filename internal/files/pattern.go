package files

import "strings"

// Literal is a path as a pattern of filepath.Glob that matches nothing else (but on Windows, whose patterns have no
// escapes).
func Literal(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}
