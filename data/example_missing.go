package data

import "context"

// FindExampleFiles looks for the files of the pictures of examples, as Eval.FindFiles does.
func FindExampleFiles(ctx context.Context, x Examples, workers int, progress func(done, of int)) error {
	if !areFiles(x) {
		return nil
	}
	var paths []string
	seen := map[string]bool{}
	for i := range x.Len() {
		for k := range x.Pictures() {
			if p := x.PictureName(i, k); !seen[p] {
				seen[p] = true
				paths = append(paths, p)
			}
		}
	}
	return findFiles(ctx, paths, workers, progress)
}

// areFiles says whether the pictures of examples are files.
func areFiles(x Examples) bool {
	switch part := x.(type) {
	case firstExamples:
		return areFiles(part.Examples)
	case someExamples:
		return areFiles(part.Examples)
	case *FileExamples:
		return true
	}
	return false
}
