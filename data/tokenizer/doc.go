// Package tokenizer turns texts into ids as the tokenizers of BERT, RoBERTa, CLIP and SigLIP do:
// WordPiece, BPE and Unigram, read from their files or learned from captions.
//
//	t, err := tokenizer.Load("vocab.txt", tokenizer.TemplateALBEF)
//	t, err := tokenizer.Load("models/roberta-base", tokenizer.TemplateFile)
//	t, err := tokenizer.Learn(slices.Values(captions), 4000)
//	ids := t.Encode("a brown dog", 25) // [CLS] a brown dog
//
// A text passes the steps of a tokenizer.json of Hugging Face, which every other file is
// turned into: added tokens are found (added.go), the rest is normalised (normalizer.go), split into
// words (splitter.go) and cut into tokens by the model (wordpiece.go, bpe.go, unigram.go); what stands around
// a text is put there (template.go).
//
// TemplateALBEF differs from that as ALBEF's code does: it has BERT's steps, there
// is not a [SEP] at the end, and the name of a special token
// in a text is ordinary text, so no caption can smuggle in a [MASK].
package tokenizer
