package config

// pairLoss checks the weight of a loss over the scores of the pairs of a batch.
func (k *checker) pairLoss(path string, weight float64, c *Config) {
	k.NotNegative(path)
	k.Require(path, weight == 0 || c.Model.traits().captions, "must be 0", c.Model.named()+" reads no captions")
}
