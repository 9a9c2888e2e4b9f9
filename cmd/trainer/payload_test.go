package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/filetest"
	"github.com/geoalign/geoalign/weights/weightstest"
)

// TestPayload: what is known of inputs goes with them to the hits, chooses rows, and makes shards anew when it changes.
func TestPayload(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, exitDone, "import", "--from", weightstest.Stored(t, "clip"), "--set", "data.tokens=6", "--set", "compute.backend=builtin", "--out", at("run"))
	pics, _ := album(t)
	filetest.Write(t, at("list.txt"), strings.Join([]string{filepath.Join(pics, "c.png"), filepath.Join(pics, "a.png"), filepath.Join(pics, "b.png")}, "\n"))
	filetest.Write(t, at("texts.txt"), "a red square\n\nblue circle\na large triangle\n")
	payload := `{"split": "test", "year": 2019}` + "\n" + `{"split": "val", "tags": ["<x>"]}` + "\n" + `{"split": "test"}` + "\n"
	filetest.Write(t, at("payload.jsonl"), payload)
	for _, in := range [][]string{{"--images", at("list.txt")}, {"--texts", at("texts.txt")}} {
		out := at("gallery" + in[0])
		embed := append([]string{"embed", "--checkpoint", at("run"), "--payload", at("payload.jsonl"), "--out", out, "--shard", "2"}, in...)
		must(t, exitDone, embed...)
		find := func(filter string) (all found) {
			t.Helper()
			stdout, _ := must(t, exitDone, "search", out, "--row", "0", "--json", "--filter", filter)
			check.OK(t, json.Unmarshal([]byte(stdout), &all))
			return all
		}
		all := find(`{"split": "val"}`)
		var b bytes.Buffer
		if check.OK(t, json.Compact(&b, all.Queries[0][0].Payload)); *all.Chosen != 1 || all.Queries[0][0].Row != 1 || b.String() != `{"split":"val","tags":["<x>"]}` {
			t.Errorf("%+v, %s", all, &b)
		}
		if all := find(`{"split": "test"}`); *all.Chosen != 2 || len(all.Queries[0]) != 1 || all.Queries[0][0].Row != 2 {
			t.Errorf("%+v", all)
		}
		if stdout, _ := must(t, exitDone, embed...); !strings.Contains(stdout, "0 made now") {
			t.Error(stdout)
		}
		filetest.Write(t, at("payload.jsonl"), strings.Replace(payload, "val", "new", 1))
		if stdout, _ := must(t, exitDone, embed...); !strings.Contains(stdout, "1 made now") {
			t.Error(stdout)
		}
		if all := find(`{"split": "new"}`); *all.Chosen != 1 {
			t.Errorf("%+v", all)
		}
		for text, want := range map[string]string{"{}\n{}\n": "it has 2 lines, fewer than there are inputs", payload + "{}\n": "line 4 has no input",
			"{}\n[]\n{}\n": "line 2 is not a JSON object", "{}\n{\"a\": 1, \"a\": 2}\n{}\n": "line 2: "} {
			filetest.Write(t, at("payload.jsonl"), text)
			fails(t, exitFailed, embed, "--payload ", want)
		}
		filetest.Write(t, at("payload.jsonl"), payload)
	}
	fails(t, exitUsage, []string{"embed", "--checkpoint", at("run"), "--images", pics, "--out", at("x"), "--payload", at("payload.jsonl")}, "name the images in a list")
	fails(t, exitUsage, []string{"embed", "--checkpoint", at("run"), "--payload", at("payload.jsonl")}, "--payload is of --images, --texts or --rows")
}
