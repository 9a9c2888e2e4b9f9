package runlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/check"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func read(t *testing.T, path string) string {
	t.Helper()
	b := check.Get(os.ReadFile(path))(t)
	return string(b)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestMetricsLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), MetricsFile)
	m, err := OpenMetrics(path, -1)
	must(t, err)
	must(t, m.Log(7, map[string]float64{
		"eval/retrieval/i2t_r10": 50, "eval/retrieval/i2t_r5": 25, "eval/retrieval/i2t_r1": 12.5,
		"samples_per_second": 1e21, "loss/itm": math.NaN(), "loss": 0.1, "lr": 1e-5, "loss/itc": math.Inf(1),
		"time": 1700000000.25, "epoch": 2, "temperature": 0.07, "grad_norm": 3, "data_wait": 0.5,
	}))
	must(t, m.Close())
	want := `{"step":7,"epoch":2,"time":1700000000.25,"loss":0.1,"loss/itc":null,"loss/itm":null,"lr":0.00001,` +
		`"temperature":0.07,"grad_norm":3,"samples_per_second":1e+21,"data_wait":0.5,"eval/retrieval/i2t_r1":12.5,"eval/retrieval/i2t_r5":25,"eval/retrieval/i2t_r10":50}` + "\n"
	if got := read(t, path); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	rows, err := ReadMetrics(path)
	must(t, err)
	if len(rows) != 1 || rows[0].Step != 7 || rows[0].Values["lr"] != 1e-5 || !math.IsNaN(rows[0].Values["loss/itc"]) {
		t.Errorf("read back: %+v", rows)
	}
}

// A run killed after step 25 resumes from its checkpoint of step 20.
func TestMetricsResume(t *testing.T) {
	path := filepath.Join(t.TempDir(), MetricsFile)
	m, err := OpenMetrics(path, -1)
	must(t, err)
	for step := 5; step <= 25; step += 5 {
		must(t, m.Log(step, map[string]float64{"loss": float64(step)}))
	}
	must(t, m.Close())
	must(t, os.WriteFile(path, []byte(read(t, path)+`{"step":2`), 0o666)) // cut short

	m, err = OpenMetrics(path, 20)
	must(t, err)
	must(t, m.Log(25, map[string]float64{"loss": 99}))
	want := `{"step":5,"loss":5}` + "\n" + `{"step":10,"loss":10}` + "\n" + `{"step":15,"loss":15}` + "\n" +
		`{"step":20,"loss":20}` + "\n" + `{"step":25,"loss":99}` + "\n"
	if got := read(t, path); got != want {
		t.Errorf("resumed:\n%s\nwant:\n%s", got, want)
	}
	must(t, m.Rewind(10))
	must(t, m.Log(11, nil))
	must(t, m.Close())
	want = `{"step":5,"loss":5}` + "\n" + `{"step":10,"loss":10}` + "\n" + `{"step":11}` + "\n"
	if got := read(t, path); got != want {
		t.Errorf("rewound:\n%s\nwant:\n%s", got, want)
	}
	must(t, os.WriteFile(path, []byte(strings.TrimSuffix(want, "\n")), 0o666)) // cut short behind a whole row
	m, err = OpenMetrics(path, 11)
	must(t, err)
	must(t, m.Log(12, nil))
	must(t, m.Close())
	if got := read(t, path); got != want+`{"step":12}`+"\n" {
		t.Errorf("without its last line feed:\n%s", got)
	}
	m, err = OpenMetrics(path, -1)
	must(t, err)
	must(t, m.Close())
	if got := read(t, path); got != "" {
		t.Errorf("a new run keeps %q", got)
	}
}

func TestReadMetricsErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), MetricsFile)
	must(t, os.WriteFile(path, []byte("{\"step\":1}\nnonsense\n{\"step\":2}\n"), 0o666))
	check.Fails(ReadMetrics(path))(t, "metrics.jsonl:2:")
	must(t, os.WriteFile(path, []byte("{\"step\":1}\n{\"ste"), 0o666))
	if rows, err := ReadMetrics(path); err != nil || len(rows) != 1 {
		t.Errorf("cut line: got %v, %v", rows, err)
	}
	for _, step := range []string{"1.5", "null", "1e300"} {
		must(t, os.WriteFile(path, []byte(`{"step":`+step+"}\n"), 0o666))
		if rows, err := ReadMetrics(path); err == nil {
			t.Errorf("step %s: got %v, want an error", step, rows)
		}
	}
}

func clock() time.Time { return time.Unix(1700000000, 500e6) }

// writeEvents writes the events that the golden file holds.
func writeEvents(t *testing.T, dir string) string {
	t.Helper()
	e, err := NewEvents(dir, 0, clock)
	must(t, err)
	must(t, e.Log(1, map[string]float64{"loss": 2.5, "lr": 1e-5, "time": 1700000001}))
	must(t, e.Log(300, map[string]float64{"eval/retrieval/rsum": 150}))
	must(t, e.Rewind(1))
	must(t, e.Log(2, map[string]float64{"loss": 2.25}))
	must(t, e.Close())
	return filepath.Join(dir, "events.out.tfevents.1700000000.geoalign")
}

// testdata/events.golden was read by the tensorboard package with
// interop/tensorboard_read.py: loss 2.5 at step 1 and 2.25 at step 2, the
// point of step 300 purged.
func TestEventsGolden(t *testing.T) {
	got := read(t, writeEvents(t, t.TempDir()))
	const golden = "testdata/events.golden"
	if *update {
		must(t, os.WriteFile(golden, []byte(got), 0o666))
	}
	if want := read(t, golden); got != want {
		t.Errorf("got  %x\nwant %x", got, want)
	}
}

// The first record by hand: Event{wall_time: 1700000000.5, file_version: "brain.Event:2"}
// is 24 bytes long.
func TestEventsFrame(t *testing.T) {
	got := []byte(read(t, writeEvents(t, t.TempDir())))
	head := []byte{24, 0, 0, 0, 0, 0, 0, 0}
	if !bytes.HasPrefix(got, head) || !bytes.Equal(got[12:14], []byte{0x09, 0x00}) ||
		string(got[23:36]) != "brain.Event:2" {
		t.Errorf("got % x", got[:40])
	}
	// CRC-32C of "123456789" is 0xe3069283 (RFC 3720's polynomial, the usual check value).
	if got, want := maskedCRC([]byte("123456789")), uint32(0xe3069283>>15|0xe3069283<<17&0xffffffff); got != want+
		0xa282ead8 {
		t.Errorf("masked checksum %#x", got)
	}
}

func TestEventsOfTheSameSecond(t *testing.T) {
	dir := t.TempDir()
	for range 3 {
		e, err := NewEvents(dir, 5, clock)
		must(t, err)
		must(t, e.Close())
	}
	names, err := filepath.Glob(filepath.Join(dir, "events.out.tfevents.*"))
	if err != nil || len(names) != 3 {
		t.Errorf("got %v, %v", names, err)
	}
}

// TensorBoard reads event files in the order of their names: those of later sessions come later, of any number in a
// second, and where the clock was set back between them.
func TestEventsSortBySession(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "events.out.tfevents.99999999999999.other"), nil, 0o666))
	var written []string
	for session, seconds := range []int64{0, 0, -3600, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7200, -86400} {
		e, err := NewEvents(dir, session, func() time.Time { return clock().Add(time.Duration(seconds) * time.Second) })
		must(t, err)
		written = append(written, filepath.Base(e.f.Name()))
		must(t, e.Close())
	}
	if !slices.IsSorted(written) || len(slices.Compact(slices.Clone(written))) != len(written) {
		t.Errorf("the files of sessions one after the other are %q", written)
	}
	if want := fmt.Sprintf("events.out.tfevents.%010d.geoalign", clock().Unix()+7200); !slices.Contains(written, want) {
		t.Errorf("no %s among %q: the clock's time where that is later", want, written)
	}
}

// A run that was killed before it saved begins anew in its folder: TensorBoard drops what the first try logged.
func TestEventsBeginAnew(t *testing.T) {
	dir := t.TempDir()
	start := []byte{1 << 3, 1} // SessionLog{status: START}
	for try, resumed := range []int{0, 0, 7} {
		e, err := NewEvents(dir, resumed, func() time.Time { return clock().Add(time.Duration(try) * time.Second) })
		must(t, err)
		must(t, e.Log(resumed+1, map[string]float64{"loss": 1}))
		must(t, e.Close())
		got := read(t, filepath.Join(dir, fmt.Sprintf("events.out.tfevents.%010d.geoalign", clock().Unix()+int64(try))))
		want := string(appendBytes(e.event(resumed+1, math.NaN()), 7, start))
		if strings.Contains(got, want) != (try > 0) {
			t.Errorf("try %d: START of step %d: %v, want %v", try+1, resumed+1, try == 0, try > 0)
		}
	}
}

type fakeLogger struct {
	steps  []int
	err    error
	closed bool
}

func (f *fakeLogger) Log(step int, _ map[string]float64) error {
	f.steps = append(f.steps, step)
	return f.err
}
func (f *fakeLogger) Close() error { f.closed = true; return f.err }

func TestMulti(t *testing.T) {
	bad, good := &fakeLogger{err: errors.New("broken")}, &fakeLogger{}
	path := filepath.Join(t.TempDir(), MetricsFile)
	file, err := OpenMetrics(path, -1)
	must(t, err)
	m := Multi(bad, good, file)
	if err := m.Log(3, nil); err == nil || err.Error() != "broken" {
		t.Errorf("got %v", err)
	}
	must(t, m.(Rewinder).Rewind(2))
	if err := m.Close(); err == nil || !good.closed || !reflect.DeepEqual(good.steps, []int{3}) {
		t.Errorf("close: %v, %+v", err, good)
	}
	if got := read(t, path); got != "" {
		t.Errorf("not rewound: %q", got)
	}
}

func TestPrepare(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	env := CollectEnvironment(Setup{Threads: 2, Kernels: "builtin avx2", Decoder: "builtin"},
		[]string{"train", "--quiet"})
	for range 2 { // again on a resume
		must(t, Prepare(dir, []byte("[run]\n"), env))
	}
	if got := read(t, filepath.Join(dir, ConfigFile)); got != "[run]\n" {
		t.Errorf("config: %q", got)
	}
	var got Environment
	must(t, json.Unmarshal([]byte(read(t, filepath.Join(dir, EnvironmentFile))), &got))
	if !reflect.DeepEqual(got, env) || got.GoVersion != runtime.Version() || got.CPU == "" || got.Threads != 2 {
		t.Errorf("environment: %+v", got)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("left %v, %v", entries, err)
	}
	blocked := filepath.Join(dir, ConfigFile, "x")
	check.Error(t, Prepare(blocked, nil, env), "--out")
	for _, name := range []string{ConfigFile, EnvironmentFile} { // what cannot be written is told with a cure
		dir := t.TempDir()
		must(t, os.Mkdir(filepath.Join(dir, name), 0o777))
		if err := Prepare(dir, nil, env); err == nil || !strings.Contains(err.Error(), name) ||
			!strings.Contains(err.Error(), "choose another folder with --out") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
