package oncuda

import "embed"

//go:embed *.cu *.cuh
var files embed.FS
