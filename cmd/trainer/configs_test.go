package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/configs"
	"github.com/geoalign/geoalign/internal/check"
)

// The program has its configurations where no file of it is: by name, as a list, and as copies that are changed.
func TestBuiltInConfigurations(t *testing.T) {
	t.Chdir(t.TempDir())
	stdout, _ := must(t, exitDone, "configs")
	if lines := strings.Count(stdout, "\n"); lines != len(configs.List()) || !strings.Contains(stdout, "\nquickstart  ") {
		t.Errorf("%d lines:\n%s", lines, stdout)
	}
	var list []configs.Shipped
	stdout, _ = must(t, exitDone, "configs", "--json")
	check.OK(t, json.Unmarshal([]byte(stdout), &list))
	if len(list) != len(configs.List()) {
		t.Errorf("%d", len(list))
	}
	stdout, _ = must(t, exitDone, "configs", "ideas/geodesic")
	must(t, exitDone, "validate", "--config", write(t, "own.toml", stdout))
	must(t, exitDone, "validate", "--config", "ideas/geodesic")
	fails(t, exitUsage, []string{"configs", "quickstat"}, `no built-in configuration "quickstat"`)
	fails(t, exitUsage, []string{"train"}, "--config quickstart")
	fails(t, exitUsage, []string{"train", "--max-steps", "3", "--dry-run"}, "train needs a configuration")
	fails(t, exitUsage, []string{"evaluate"}, "eval")
	stdout, _ = must(t, exitDone, "version")
	want, _ := must(t, exitDone, "--version")
	if stdout != want {
		t.Errorf("%q and %q", stdout, want)
	}
	stdout, _ = must(t, exitDone, "licenses")
	for _, module := range []string{"gorgonia.org/gorgonia v", "github.com/spf13/cobra v", "The Go Authors", "Apache License"} {
		if !strings.Contains(stdout, module) {
			t.Errorf("licenses lack %s", module)
		}
	}
}
