package data

import "context"

// FindExampleFiles looks for the files of the pictures of examples, as Eval.FindFiles does.
func FindExampleFiles(ctx context.Context, x Examples, workers int, progress func(done, of int)) error {
	f, ok := x.(*FileExamples)
	if !ok {
		return nil
	}
	var paths []string
	seen := map[string]bool{}
	for _, list := range f.Paths {
		for _, p := range list {
			if !seen[p] {
				seen[p] = true
				paths = append(paths, p)
			}
		}
	}
	return findFiles(ctx, paths, workers, progress)
}
