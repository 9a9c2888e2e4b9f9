package config

// Identities says how batches are made of images with identities, for model.system "identities": of
// train.batch_size / images identities with so many images each.
type Identities struct {
	Images int    `toml:"images" max:"65536"` // of each identity in a batch, a divisor of train.batch_size; an epoch visits every identity once
	Short  string `toml:"short"`              // identities with fewer images: repeat (their images are drawn again, each with its own augmentation) | leave_out
}

func (d *Identities) defaults() { *d = Identities{Images: 4, Short: "repeat"} }

func (d *Identities) check(k *checker, c *Config) {
	k.OneOf("data.identities.short", "repeat", "leave_out")
	k.Positive("data.identities.images")
	if c.Model.traits().identities && d.Images > 0 {
		k.Require("data.identities.images", c.Train.BatchSize%d.Images == 0 && c.Train.BatchSize/d.Images >= 2,
			"must divide train.batch_size into at least 2 identities", "a batch is so many images of each of some identities")
	}
}

// BatchIdentities returns the number of identities of a batch.
func (c Config) BatchIdentities() int { return c.Train.BatchSize / max(1, c.Data.Identities.Images) }

// DropsLast says whether samples that do not fill a batch at the end of an epoch are left out. By identities
// they are: after a bad sample the next epoch has whole identities again.
func (c Config) DropsLast() bool { return c.Data.DropLast || c.Model.ByIdentity() }
