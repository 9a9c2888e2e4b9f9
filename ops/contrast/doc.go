// Package contrast has what contrastive losses are made of: cross-entropy over scores with
// labels, ids and soft targets, accuracy, negatives and new labels for them, the contrast of
// patches, and balanced codes.
package contrast
