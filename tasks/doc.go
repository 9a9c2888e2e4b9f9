// Package tasks is what models are evaluated on and fine-tuned for. A Task is a value in a folder of its own: how its
// samples are read, its evaluation, its page and its file of results. Package tasks/all lists them.
//
//	scores, err := vqa.Task.Evaluate(ctx, &tasks.Setup{...})
//
// Here is what they share: encoding a split, the outcome of an evaluation (Scores) and cards with heat maps.
//
// Shape letters: N images, M texts, C channels of the features, T tokens of an image of
// width D, L tokens of a text of width E, n rows of a batch or a part of the data, k pairs.
package tasks
