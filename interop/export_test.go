package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/export"
	"github.com/geoalign/geoalign/export/exporttest"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/safetensors"
)

// exportJob is a folder that export_load.py loads.
type exportJob struct {
	Name   string   `json:"name"`
	Form   string   `json:"form"`
	Folder string   `json:"folder"`
	Inputs string   `json:"inputs"`
	Text   string   `json:"text"`
	IDs    []int32  `json:"ids"`
	Mean   []string `json:"mean"`   // sides whose tokens' mean stands for a row
	Pooler bool     `json:"pooler"` // the layer behind the first token stands for a text
}

// TestExport writes tiny models of every style in every form that holds them. The programs that they are for load them
// and compute the same.
func TestExport(t *testing.T) {
	interpreter := python(t)
	dir := t.TempDir()
	var jobs []exportJob
	for _, c := range slices.Concat(exporttest.Cases(), exporttest.Blocks()) {
		x := exporttest.New(t, c)
		mean := []string{}
		for side, pool := range map[string]string{"image": x.Config.Model.Image.Pooling(),
			"text": x.Config.Model.Text.Pooling()} {
			if pool == "mean" {
				mean = append(mean, side)
			}
		}
		inputs := filepath.Join(dir, c.Name+".safetensors")
		check.OK(t, files.ReplaceFrom(inputs,
			func(w io.Writer) error { return safetensors.Write(w, x.Inputs(t), nil) }))
		for _, o := range []export.Options{
			{To: export.HF}, {To: export.HF, Side: "image"}, {To: export.HF, Side: "text"}, {To: export.Timm}, {To: export.OpenCLIP}, {To: export.ALBEF}, {To: export.ONNX},
		} {
			name := strings.TrimSuffix(c.Name+"-"+o.To+"-"+o.Side, "-")
			o.Out = filepath.Join(dir, name)
			if _, err := export.Write(x.Model, o); err != nil {
				if o.To == export.ONNX && !slices.Contains([]string{"block", "convnet"}, x.Config.Model.Image.Style) || !strings.Contains(err.Error(), "cannot be told to") {
					t.Errorf("%s: %v", name, err)
				}
				continue
			}
			const text = "w7 w9 w8"
			ids := []int32{}
			if x.Tokenizer != nil {
				ids = x.Tokenizer.Encode(text, 0)
			}
			jobs = append(jobs, exportJob{name, o.To, o.Out, inputs, text, ids, mean,
				x.Config.Model.Text.Pooling() == "pooler"})
		}
	}
	list := filepath.Join(dir, "jobs.json")
	text := check.Get(json.Marshal(jobs))(t)
	check.OK(t, os.WriteFile(list, text, 0o666))
	var out, messages bytes.Buffer
	script := exec.CommandContext(t.Context(), interpreter, "export_load.py", list)
	script.Stdout, script.Stderr = &out, &messages
	script.Env = append(os.Environ(), "HF_HUB_OFFLINE=1", "CUDA_VISIBLE_DEVICES=")
	if err := script.Run(); err != nil {
		t.Fatalf("%v\n%s", err, messages.String())
	}
	forms := map[string]string{} // by the name of a job
	for _, j := range jobs {
		forms[j.Name] = j.Form
	}
	worst, loaded, skipped := map[string]float64{}, map[string]int{}, map[string]string{} // by form
	done := 0
	for d := json.NewDecoder(&out); d.More(); done++ {
		var r struct {
			Name, Error, Skipped string
			Differences          map[string]float64
		}
		check.OK(t, d.Decode(&r))
		if r.Skipped != "" {
			skipped[forms[r.Name]] = r.Skipped
			continue
		}
		if r.Error != "" || len(r.Differences) == 0 {
			t.Errorf("%s: %s", r.Name, r.Error)
		}
		for what, difference := range r.Differences {
			if !(difference <= 1e-4) {
				t.Errorf("%s: %s differs by %g", r.Name, what, difference)
			}
		}
		for _, difference := range r.Differences {
			worst[forms[r.Name]] = max(worst[forms[r.Name]], difference)
		}
		loaded[forms[r.Name]]++
	}
	rows := []string{"| --to | folders | largest difference |", "|---|---|---|"}
	for _, form := range []string{export.HF, export.Timm, export.OpenCLIP, export.ALBEF, export.ONNX} {
		if skipped[form] != "" {
			rows = append(rows, fmt.Sprintf("| `%s` | skipped: %s | |", form, skipped[form]))
			continue
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %d | %.1e |", form, loaded[form], worst[form]))
	}
	t.Log("\n" + strings.Join(rows, "\n"))
	if done != len(jobs) {
		t.Errorf("%d of %d folders were loaded\n%s", done, len(jobs), messages.String())
	}
}
