package run

import (
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/tasks"
)

// cleaner cleans a text as the captions of a configuration are.
func cleaner(cfg config.Config) func(string) string {
	return (&tasks.Setup{Source: cfg.Source()}).Cleaned
}

// Texts is a gallery of texts that no split has, cleaned as captions are: the columns of the tokenizer.
func Texts(cfg config.Config, texts []string, columns *data.Texts) data.Gallery {
	return tasks.List{Texts: texts, Clean: cleaner(cfg), Columned: columns}
}
