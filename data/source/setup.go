package source

import (
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/neighbours"
	"github.com/geoalign/geoalign/data/transform"
)

// Setup is [data] and what else of a configuration the samples depend on.
type Setup struct {
	Data   Data
	Seed   uint64 // of the run
	System string // model.system, for messages

	Stored     bool // features are read, and no images and captions
	ByIdentity bool // batches are made of identities
	JointPairs bool // both sentences of a pair are one text
	Mixed      bool // batches of data.sentences stand between those of pairs
	Center     bool // the means of stored features are taken off

	Input      transform.Input // what the image tower wants of images
	ImageSize  int             // of images as the tower reads them, in pixels
	SmallCrops int             // small views of an image
	BatchSize  int             // rows of a batch
	MaxImages  int             // of a split that is evaluated; 0: all
	Folds      int             // that a gallery is divided into
	Classes    int             // identities that a classifier has rows for; 0: there is none
	Answers    data.Answers    // of questions about pictures
	Neighbours Neighbours
	Candidates string // file of the answers that are ranked; empty: none
}

// Neighbours are what the geometric term of alignment heads compares with, of one side or both.
type Neighbours struct {
	neighbours.Config
	Image, Text bool
}
