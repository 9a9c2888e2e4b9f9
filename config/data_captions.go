package config

// Captions names the ALBEF-style JSON lists of data.kind = "captions".
type Captions struct {
	TrainFiles []string `toml:"train_files"` // training lists
	ValFiles   []string `toml:"val_files"`   // validation lists
	TestFiles  []string `toml:"test_files"`  // test lists
}

func (f *Captions) defaults() {}

func (f *Captions) check(k *checker, c *Config) {
	k.splitFiles("captions", c.Data.Split.files(f.Split), c)
}

// Split returns the lists of a split: train, val or test.
func (f Captions) Split(name string) []string {
	return filesOf(name, f.TrainFiles, f.ValFiles, f.TestFiles)
}
