package run

// For the tests of packages above this one, in package run_test.
var (
	Settings     = settings
	TrainedTo    = trained
	PictureList  = pictured
	RegionFiles  = regionFiles
	ParquetPairs = parquetPairs
	Copies       = copies
	Host         = host
)
