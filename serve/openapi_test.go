package serve

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/gallery"
	"github.com/geoalign/geoalign/internal/check"
)

// namesOf are the keys that a struct has in JSON.
func namesOf(t reflect.Type) (list []string) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous:
			list = append(list, namesOf(f.Type)...)
		case f.IsExported():
			list = append(list, name)
		}
	}
	return slices.Sorted(slices.Values(list))
}

// TestOpenAPI: the description has each route of both addresses and each key of requests and answers, and nothing else.
// Interop has it checked by a validator of others.
func TestOpenAPI(t *testing.T) {
	s := newServer(t, makeGallery(t, 5), Options{})
	code, text := s.do("GET", "/openapi.json", "")
	var doc struct {
		OpenAPI    string
		Paths      map[string]map[string]json.RawMessage
		Components struct {
			Schemas map[string]struct {
				Properties map[string]json.RawMessage
			}
		}
	}
	if check.OK(t, json.Unmarshal([]byte(text), &doc)); code != 200 {
		t.Fatal(text)
	}
	var got, want []string
	for path, methods := range doc.Paths {
		for m := range methods {
			if m != "servers" {
				got = append(got, strings.ToUpper(m)+" "+path)
			}
		}
	}
	for _, p := range s.patterns {
		want = append(want, strings.NewReplacer("{$}", "", "...", "").Replace(p))
	}
	slices.Sort(got)
	slices.Sort(want)
	if want = slices.Compact(want); !slices.Equal(got, want) {
		t.Errorf("it has the routes\n%v, the server\n%v", got, want)
	}
	types := map[string]any{"SearchRequest": searchRequest{}, "SearchReply": searchReply{}, "Hit": hit{}, "Item": struct {
		gallery.Item
		Thumbnail string `json:"thumbnail"`
	}{}, "PutRequest": putRequest{}, "PutItem": putItem{}, "PutReply": putReply{}, "DeleteRequest": deleteRequest{}, "DeleteReply": deleteReply{},
		"EmbeddingsRequest": embeddingsRequest{}, "EmbeddingsReply": embeddingsReply{}, "Embedding": embeddingReply{}, "Info": infoReply{}, "Limits": infoLimits{}}
	for name, v := range types {
		keys := slices.Sorted(maps.Keys(doc.Components.Schemas[name].Properties))
		if names := namesOf(reflect.TypeOf(v)); !slices.Equal(keys, names) {
			t.Errorf("%s has the keys\n%v, the server's\n%v", name, keys, names)
		}
	}
	for name, keys := range map[string][]string{"SearchRequest": searchKeys, "PutRequest": putKeys, "PutItem": itemKeys, "DeleteRequest": deleteKeys, "EmbeddingsRequest": embeddingsKeys} {
		if list := slices.Sorted(maps.Keys(doc.Components.Schemas[name].Properties)); !slices.Equal(list, slices.Sorted(slices.Values(keys))) {
			t.Errorf("%s has the keys %v, the server reads %v", name, list, keys)
		}
	}
}
