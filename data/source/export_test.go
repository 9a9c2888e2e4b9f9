package source

// Patience and VocabularyPhase are for the tests of progress.
var (
	Patience        = &patience
	VocabularyPhase = vocabularyPhase
)
