package runlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Events writes a TensorBoard event file: TFRecord frames around protocol-buffer
// messages of type tensorflow.Event, of which only scalars are needed.
type Events struct {
	f     *os.File
	frame []byte
	now   func() time.Time
}

var (
	_ Logger   = (*Events)(nil)
	_ Rewinder = (*Events)(nil)
)

// eventsPrefix begins the names of event files.
const eventsPrefix = "events.out.tfevents."

// NewEvents creates the file events.out.tfevents.<seconds>.geoalign in the folder
// dir. Where the folder has older ones, of a run that goes on from step resumed or
// of one that begins anew, TensorBoard drops their points of later steps.
func NewEvents(dir string, resumed int, now func() time.Time) (*Events, error) {
	last, older, err := lastEvents(dir)
	if err != nil {
		return nil, fmt.Errorf("runlog: %w", err)
	}
	// TensorBoard reads in the order of the names and never goes back: behind those that are there, whatever the clock
	// says.
	seconds := now().Unix()
	if older {
		seconds = max(seconds, last+1)
	}
	var f *os.File
	for {
		f, err = os.OpenFile(filepath.Join(dir, fmt.Sprintf(eventsPrefix+"%010d.geoalign", seconds)),
			os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if !errors.Is(err, os.ErrExist) {
			break
		}
		seconds++
	}
	if err != nil {
		return nil, fmt.Errorf("runlog: %w", err)
	}
	e := &Events{f: f, now: now}
	// Event{wall_time, file_version = 3}
	err = e.write(appendBytes(e.event(0, math.NaN()), 3, []byte("brain.Event:2")))
	if err == nil && older {
		err = e.Rewind(resumed)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return e, nil
}

// lastEvents returns the largest number of seconds in the names of the event files of a folder; some whether there are
// any.
func lastEvents(dir string) (last int64, some bool, err error) {
	list, err := os.ReadDir(dir)
	for _, e := range list {
		name, ok := strings.CutPrefix(e.Name(), eventsPrefix)
		if !ok {
			continue
		}
		some = true
		digits, _, _ := strings.Cut(name, ".")
		if s, err := strconv.ParseInt(digits, 10, 64); err == nil && len(digits) == 10 { // a longer one sorts otherwise
			last = max(last, s)
		}
	}
	return last, some, err
}

// Rewind makes TensorBoard drop the points of steps after step.
func (e *Events) Rewind(step int) error {
	// Event{wall_time, step, session_log = 7: SessionLog{status = 1: START (1)}}; the
	// points purged are those from the event's step on.
	return e.write(appendBytes(e.event(step+1, math.NaN()), 7, []byte{1 << 3, 1}))
}

// Log writes one event with a scalar per value. The value named time, Unix
// seconds, is the event's time.
func (e *Events) Log(step int, values map[string]float64) error {
	wall, ok := values["time"]
	if !ok {
		wall = math.NaN()
	}
	var summary []byte
	for _, k := range Keys(values) {
		if k == "time" {
			continue
		}
		// Summary.Value{tag = 1, simple_value = 2}
		v := appendBytes(nil, 1, []byte(k))
		v = append(v, 2<<3|5)
		v = binary.LittleEndian.AppendUint32(v, math.Float32bits(float32(values[k])))
		summary = appendBytes(summary, 1, v)
	}
	return e.write(appendBytes(e.event(step, wall), 5, summary))
}

// Close closes the file.
func (e *Events) Close() error {
	if err := e.f.Close(); err != nil {
		return fmt.Errorf("runlog: %w", err)
	}
	return nil
}

// event returns the fields wall_time = 1 and step = 2; a wall of NaN means now.
func (e *Events) event(step int, wall float64) []byte {
	if math.IsNaN(wall) {
		wall = float64(e.now().UnixMilli()) / 1000
	}
	b := binary.LittleEndian.AppendUint64([]byte{1<<3 | 1}, math.Float64bits(wall))
	if step != 0 {
		b = binary.AppendUvarint(append(b, 2<<3), uint64(step))
	}
	return b
}

// appendBytes appends a length-delimited field.
func appendBytes(b []byte, field byte, v []byte) []byte {
	b = binary.AppendUvarint(append(b, field<<3|2), uint64(len(v)))
	return append(b, v...)
}

// write appends one TFRecord: length, masked checksum of the length, data,
// masked checksum of the data.
func (e *Events) write(data []byte) error {
	b := binary.LittleEndian.AppendUint64(e.frame[:0], uint64(len(data)))
	b = binary.LittleEndian.AppendUint32(b, maskedCRC(b[:8]))
	b = append(b, data...)
	b = binary.LittleEndian.AppendUint32(b, maskedCRC(data))
	e.frame = b
	if _, err := e.f.Write(b); err != nil {
		return fmt.Errorf("runlog: %w: free space there or choose another folder with --out", err)
	}
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// maskedCRC is the CRC-32C rotated and shifted, as the TFRecord format asks so
// that checksums of data holding checksums stay good.
func maskedCRC(b []byte) uint32 {
	c := crc32.Checksum(b, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}
