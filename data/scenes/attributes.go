package scenes

// Shape is the outline of an object.
type Shape uint8

// The shapes. Config.Shapes = n uses the first n.
const (
	Circle Shape = iota
	Square
	Triangle
	Star
	Cross
	Ring
	Heart
	Diamond
	numShapes = iota
)

var shapeNames = [numShapes]string{"circle", "square", "triangle", "star", "cross", "ring", "heart", "diamond"}

// String returns the shape's word in captions.
func (s Shape) String() string { return shapeNames[s] }

// Colour is the colour of an object.
type Colour uint8

// The colours, far apart in RGB and from every background.
// Config.Colours = n uses the first n.
const (
	Red Colour = iota
	Blue
	Green
	Yellow
	Black
	Purple
	Orange
	Cyan
	numColours = iota
)

var colourNames = [numColours]string{"red", "blue", "green", "yellow", "black", "purple", "orange", "cyan"}

var colourRGB = [numColours][3]uint8{
	{214, 32, 38}, {36, 72, 222}, {28, 146, 58}, {246, 206, 22},
	{24, 24, 26}, {134, 44, 176}, {246, 126, 16}, {38, 196, 222},
}

// String returns the colour's word in captions.
func (c Colour) String() string { return colourNames[c] }

// RGB returns the colour before the tint of one object is added.
func (c Colour) RGB() [3]uint8 { return colourRGB[c] }

// Size is the size class of an object.
type Size uint8

// The sizes. With Config.Sizes = 1 every object is small; captions still say so.
const (
	Small Size = iota
	Big
	numSizes = iota
)

var sizeNames = [numSizes]string{"small", "big"}

// sizeRadius is the radius as a share of the picture's width. Big objects in
// neighbouring cells at full jitter keep 1/3 - 2*(0.13+jitter) = 0.013 apart.
var sizeRadius = [numSizes]float64{0.085, 0.13}

// String returns the size's word in captions.
func (s Size) String() string { return sizeNames[s] }

// Place is a cell of the 3 x 3 grid, row by row from the top left.
type Place uint8

const numPlaces = 9

var placeNames = [numPlaces]string{
	"top left", "top", "top right",
	"left", "centre", "right",
	"bottom left", "bottom", "bottom right",
}

// String returns the place's words in compact captions, such as "top left".
func (p Place) String() string { return placeNames[p] }

// Phrase returns the place with its preposition, such as "at the top left".
func (p Place) Phrase() string {
	switch p {
	case 3, 5:
		return "on the " + placeNames[p]
	case 4:
		return "in the centre"
	}
	return "at the " + placeNames[p]
}

// Row returns the row of the place, 0 to 2 from the top.
func (p Place) Row() int { return int(p) / 3 }

// Column returns the column of the place, 0 to 2 from the left.
func (p Place) Column() int { return int(p) % 3 }

// Background is the shade behind the objects.
type Background uint8

const numBackgrounds = 6

var backgroundRGB = [numBackgrounds][3]uint8{
	{252, 252, 252}, {226, 226, 228}, {250, 243, 224},
	{222, 234, 250}, {224, 241, 224}, {249, 226, 231},
}

// RGB returns the shade.
func (b Background) RGB() [3]uint8 { return backgroundRGB[b] }
