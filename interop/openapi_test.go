package interop

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestOpenAPI has the description of the server's API checked by openapi-spec-validator.
func TestOpenAPI(t *testing.T) {
	script := `import json, sys
from openapi_spec_validator import validate
validate(json.load(open(sys.argv[1])))`
	out, err := exec.Command(python(t), "-c", script, filepath.Join("..", "serve", "openapi.json")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
