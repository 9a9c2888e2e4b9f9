package data

// TextPair is two texts with the class of their relation.
type TextPair struct{ A, B, Label string }
