package config

// Parquet names the tables of data.kind = "parquet", as Hugging Face's datasets exports them.
type Parquet struct {
	TrainFiles []string `toml:"train_files"`             // training tables: file names, ranges such as train-{00000..00009}-of-00010.parquet or patterns such as train-*.parquet
	ValFiles   []string `toml:"val_files"`               // validation tables
	TestFiles  []string `toml:"test_files"`              // test tables
	Image      string   `toml:"image"`                   // column of the image: a group of bytes and path, bytes, or a path below data.root
	Caption    string   `toml:"caption"`                 // column of the caption, a string or a list of strings
	Shuffle    int      `toml:"shuffle" max:"100000000"` // samples that are mixed with each other, see data.webdataset.shuffle; twice as many encoded images are kept in memory, and a page of the file more
}

func (f *Parquet) defaults() { *f = Parquet{Image: "image", Caption: "caption", Shuffle: 1000} }

func (f *Parquet) check(k *checker, c *Config) {
	k.splitFiles("parquet", f.Split, c)
	k.Require("data.parquet.image", f.Image != "", "must name a column")
	k.Require("data.parquet.caption", f.Caption != "", "must name a column")
	k.Positive("data.parquet.shuffle")
}

// Split returns the tables of a split: train, val or test.
func (f Parquet) Split(name string) []string {
	return filesOf(name, f.TrainFiles, f.ValFiles, f.TestFiles)
}
