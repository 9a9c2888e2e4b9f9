package data

import (
	"strings"
	"testing"
)

// TestIdentityStats: identities, cameras, roles and queries without a match of a list, which a check tells too.
func TestIdentityStats(t *testing.T) {
	cfg := CSVConfig{Image: "image", ID: "person", Camera: "camera", Role: "role"}
	table, err := loadCSV(t, "root", cfg, "image,person,camera,role\na.jpg,1,c1,query\nb.jpg,1,c1,gallery\nc.jpg,2,c1,query\nd.jpg,2,c2,gallery\ne.jpg,3,,\nf.jpg,4,,\ng.jpg,4,,\n")
	if err != nil {
		t.Fatal(err)
	}
	s := NewIdentityStats(table)
	if s.Identities != 4 || s.Cameras != 2 || s.Queries != 5 || s.Gallery != 5 || s.Unmatched != 2 || s.PerIdentity.Max != 2 {
		t.Errorf("got %+v", s)
	}
	found, err := Check(t.Context(), table, CheckConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if f.Kind == UnmatchedQuery {
			if f.Count != 2 || f.Grave() || !strings.HasSuffix(f.Examples[0], "a.jpg") || !strings.HasSuffix(f.Examples[1], "e.jpg") {
				t.Errorf("got %+v", f)
			}
			return
		}
	}
	t.Errorf("no query without a match was found: %+v", found)
}
