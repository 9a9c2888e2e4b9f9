package oncuda

import "embed"

//go:embed *.cu
var files embed.FS
