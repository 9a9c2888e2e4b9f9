package eval

import (
	"fmt"
	"slices"
)

// Correspondence says which texts and images are right answers for each other, in a
// gallery of N images and T texts. Every text describes one image, every image has at
// least one text, and images of one id share their texts: an image and a text are a
// positive pair where the text's image has the id of the image.
type Correspondence struct {
	imageOf  []int   // text -> the image that it describes
	imageID  []int   // image -> number of its id, from 0
	textID   []int   // text -> number of the id of its image
	textsOf  [][]int // id -> its texts, ascending
	imagesOf []int   // id -> how many images have it
}

// NewCorrespondence takes the id of every image, and for every text the index of the image
// that it describes. Images may have different numbers of texts, in any order. It fails
// when there is no image, a text's image is not among them, or an image has no text.
func NewCorrespondence[ID comparable](imageIDs []ID, textImage []int) (*Correspondence, error) {
	n := len(imageIDs)
	if n == 0 {
		return nil, fmt.Errorf("eval: no images to retrieve: give a split with at least one sample")
	}
	c := &Correspondence{imageOf: slices.Clone(textImage), imageID: make([]int, n), textID: make([]int, len(textImage))}
	number := make(map[ID]int, n)
	for i, id := range imageIDs {
		k, known := number[id]
		if !known {
			k = len(number)
			number[id] = k
			c.imagesOf = append(c.imagesOf, 0)
		}
		c.imageID[i] = k
		c.imagesOf[k]++
	}
	c.textsOf = make([][]int, len(number))
	described := make([]bool, n)
	for j, i := range textImage {
		if i < 0 || i >= n {
			return nil, fmt.Errorf("eval: text %d describes image %d, which is not among the %d images: drop the text or add the image", j, i, n)
		}
		described[i] = true
		k := c.imageID[i]
		c.textID[j] = k
		c.textsOf[k] = append(c.textsOf[k], j)
	}
	for i, ok := range described {
		if !ok {
			return nil, fmt.Errorf("eval: image %d (id %v) has no text: drop it from the gallery", i, imageIDs[i])
		}
	}
	return c, nil
}

// NumImages returns N.
func (c *Correspondence) NumImages() int { return len(c.imageID) }

// NumTexts returns T.
func (c *Correspondence) NumTexts() int { return len(c.textID) }

// right reports whether an image and a text are right answers for each other.
func (c *Correspondence) right(image, text int) bool { return c.imageID[image] == c.textID[text] }

// texts returns the right texts of an image, ascending.
func (c *Correspondence) texts(image int) []int { return c.textsOf[c.imageID[image]] }

// images returns the number of right images of a text.
func (c *Correspondence) images(text int) int { return c.imagesOf[c.textID[text]] }
