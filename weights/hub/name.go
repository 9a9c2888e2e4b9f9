package hub

import (
	"fmt"
	"regexp"
	"strings"
)

// Name is a model and its revision.
type Name struct {
	Repo     string // ORGANISATION/NAME, or NAME
	Revision string // a branch, a tag or a commit
}

// Main is the revision of a name without one.
const Main = "main"

var (
	repoName   = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)?$`)
	commitName = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

// Parse reads NAME or ORGANISATION/NAME, with @REVISION behind it or without.
func Parse(text string) (Name, error) {
	repo, revision, given := strings.Cut(text, "@")
	n := Name{Repo: repo, Revision: Main}
	if given {
		n.Revision = revision
	}
	if len(repo) > 96 || !repoName.MatchString(repo) || strings.Contains(repo, "--") || strings.Contains(repo, "..") ||
		strings.HasSuffix(repo, ".git") {
		return n, fmt.Errorf("hub: %q is not a name of a model: want ORGANISATION/NAME or NAME, with @REVISION or "+
			"without", text)
	}
	if n.Revision == "" || strings.Trim(n.Revision, "/") != n.Revision || strings.Contains(n.Revision, "..") ||
		strings.ContainsAny(n.Revision, "\\ ?*[~^:\t\n\x00") {
		return n, fmt.Errorf("hub: %q has no revision behind @: want a branch, a tag or a commit", text)
	}
	return n, nil
}

// String is the name as Parse reads it.
func (n Name) String() string {
	if n.Revision == Main {
		return n.Repo
	}
	return n.Repo + "@" + n.Revision
}

// folder is the name of the folder of a model in a cache.
func (n Name) folder() string { return "models--" + strings.ReplaceAll(n.Repo, "/", "--") }
