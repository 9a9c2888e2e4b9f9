// Package photos keeps a gallery of a folder of pictures, which changes with the folder, and answers what people ask of
// it: texts, pictures, and sums and differences of both. The gallery is one of package gallery, so that search and serve
// read it too.
//
//	u, err := photos.Update(ctx, "pictures", photos.Options{Dir: dir, Model: "runs/clip"})
//	defer u.Close()
//	terms, err := photos.Terms("a dog", "+", "photo.jpg", "-", "grass")
//	a, err := u.Ask(ctx, terms, 10)
package photos
