package config

// WebDataset names the shards of data.kind = "webdataset": tar files in which the members of a pair follow each other and share the name up
// to the first dot, such as 000017.jpg and 000017.txt.
type WebDataset struct {
	TrainFiles []string `toml:"train_files"`             // training shards: file names, ranges such as train-{000..099}.tar or patterns such as train-*.tar
	ValFiles   []string `toml:"val_files"`               // validation shards
	TestFiles  []string `toml:"test_files"`              // test shards
	JSONKey    string   `toml:"json_key"`                // key of the .json member that holds the caption, a text or a list of texts; empty: the caption is the .txt member
	Shuffle    int      `toml:"shuffle" max:"100000000"` // samples that are mixed with each other: an epoch visits the shards in random order, and draws the order within each so many samples; 1: as they lie
}

func (f *WebDataset) defaults() { *f = WebDataset{Shuffle: 5000} }

func (f *WebDataset) check(k *checker, c *Config) {
	k.splitFiles("webdataset", f.Split, c)
	k.Positive("data.webdataset.shuffle")
}

// Split returns the shards of a split: train, val or test.
func (f WebDataset) Split(name string) []string {
	return filesOf(name, f.TrainFiles, f.ValFiles, f.TestFiles)
}
