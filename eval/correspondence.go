package eval

import "fmt"

// Correspondence says which texts belong to which image, in a gallery of N
// images and T texts. Every text has one image, every image at least one text.
type Correspondence struct {
	imageOf []int   // text -> image
	textsOf [][]int // image -> its texts, ascending
}

// NewCorrespondence matches images and texts by id: imageIDs[i] is the id of
// image i, textIDs[j] the id of the image that text j describes. Images may
// have different numbers of texts, in any order. It fails when an image id
// occurs twice, a text's image is missing, or an image has no text.
func NewCorrespondence[ID comparable](imageIDs, textIDs []ID) (*Correspondence, error) {
	if len(imageIDs) == 0 {
		return nil, fmt.Errorf("eval: no images to retrieve: give a split with at least one sample")
	}
	at := make(map[ID]int, len(imageIDs))
	for i, id := range imageIDs {
		if j, ok := at[id]; ok {
			return nil, fmt.Errorf("eval: images %d and %d have the same id (%v): list each image once", j, i, id)
		}
		at[id] = i
	}
	c := &Correspondence{imageOf: make([]int, len(textIDs)), textsOf: make([][]int, len(imageIDs))}
	for j, id := range textIDs {
		i, ok := at[id]
		if !ok {
			return nil, fmt.Errorf("eval: text %d describes image id %v, which is not among the images: drop the text or add the image", j, id)
		}
		c.imageOf[j] = i
		c.textsOf[i] = append(c.textsOf[i], j)
	}
	for i, texts := range c.textsOf {
		if len(texts) == 0 {
			return nil, fmt.Errorf("eval: image %d (id %v) has no text: drop it from the gallery", i, imageIDs[i])
		}
	}
	return c, nil
}

// NumImages returns N.
func (c *Correspondence) NumImages() int { return len(c.textsOf) }

// NumTexts returns T.
func (c *Correspondence) NumTexts() int { return len(c.imageOf) }
