package gallery

import (
	"encoding/json"
	"fmt"
	"path/filepath"
)

// Item is what a gallery says of a row.
type Item struct {
	Row     int    `json:"row"`
	ID      string `json:"id"`                // of its own, else its name, else the number of its row
	Name    string `json:"name,omitempty"`    // of an image
	Caption string `json:"caption,omitempty"` // of a text
	Image   *int   `json:"image,omitempty"`   // row of the image of a caption, of a split
	ImageID *int64 `json:"image_id,omitempty"`
	Line    int    `json:"line,omitempty"` // of the file of a text, from 1

	Payload json.RawMessage `json:"payload,omitempty"` // an object of what else is known of the row
}

// Item returns what is known of row i of a side.
func (g *Gallery) Item(side string, i int) (Item, error) {
	if n := g.Rows(side); i < 0 || i >= n {
		return Item{}, fmt.Errorf("gallery: there is no row %d among the %d of the side %q: count from 0", i, n, side)
	}
	item := Item{}
	line, err := g.line(side, i)
	if err == nil {
		err = json.Unmarshal(line, &item)
	}
	if err != nil {
		return item, err
	}
	item.Row, item.ID = i, idOf(i, item.ID, item.Name, item.Payload)
	return item, nil
}

// line returns what the gallery says of row i of a side, an object of JSON.
func (g *Gallery) line(side string, i int) (json.RawMessage, error) {
	if l := g.liveOf(side); l != nil && i >= l.base && i < l.rows {
		return l.lines[i-l.base], nil
	}
	line := json.RawMessage("{}")
	if l := g.names[side]; l != nil {
		return line, l.read(i, &line)
	}
	return line, nil
}

// ImageFile returns the file of an image of a gallery, as far as its name is one; it need not be
// there.
func (g *Gallery) ImageFile(i int) (string, error) {
	item, err := g.Item(Image, i)
	switch {
	case err != nil:
		return "", err
	case item.Name == "":
		return "", fmt.Errorf("gallery: row %d has no name", i)
	case filepath.IsAbs(item.Name):
		return item.Name, nil
	}
	return filepath.Join(g.Root, item.Name), nil
}
