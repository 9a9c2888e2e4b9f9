package run

import (
	"context"

	pages "github.com/geoalign/geoalign/report"
)

// Pictured is implemented by scores whose page shows examples, right and wrong.
type Pictured interface {
	Scores
	// ExamplesPage returns the page without its title and facts. It reads pictures, and asks the model for their heat maps. It ends
	// early with the error of ctx.
	ExamplesPage(ctx context.Context) (pages.ExamplesPage, error)
}

// picturedTasks are the titles of tasks whose scores are Pictured and tell no classes.
var picturedTasks = map[string]string{TaskGrounding: "Visual grounding", TaskVQA: "Questions about pictures", TaskCaptioning: "Captions"}

// mostShown is how many examples of a kind, right or wrong, a page has.
const mostShown = 24
