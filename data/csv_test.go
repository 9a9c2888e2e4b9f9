package data

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/budget/budgettest"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/filetest"
)

// plainCSV are the columns of tests.
var plainCSV = CSVConfig{Image: "filepath", Caption: "title"}

// loadCSV opens tables with the given texts, named 0.csv, 1.csv and so on, or .tsv where they have a tab.
func loadCSV(t testing.TB, root string, cfg CSVConfig, texts ...string) (*Table, error) {
	t.Helper()
	dir := t.TempDir()
	var paths []string
	for i, text := range texts {
		name := fmt.Sprint(i, ".csv")
		if strings.Contains(text, "\t") {
			name = fmt.Sprint(i, ".TSV")
		}
		paths = append(paths, filepath.Join(dir, name))
		filetest.Write(t, paths[i], []byte(text))
	}
	table, err := LoadCSV(root, paths, cfg, Options{})
	if err == nil {
		t.Cleanup(func() { table.Close() })
	}
	return table, err
}

// Two tables with quotes, lines in cells, blank captions, and images that come back in another table.
func TestCSV(t *testing.T) {
	root := pngFolder(t, 5)
	table, err := loadCSV(t, root, plainCSV,
		"\ufefftitle,more, filepath \n\"One, \"\"two\"\"\nthree\",x,images/0.png\n\n . ,x,images/1.png\r\nfour,x,images/2.png\r\n",
		"filepath\ttitle\nimages/0.png\tfive\nimages/3.png\tsix\n images/2.png\tseven\nimages/9.png\tnobody")
	if err != nil {
		t.Fatal(err)
	}
	want := naive{Memory: &Memory{}}
	want.Images = append(want.Images, pixelsOf(0), pixelsOf(1), pixelsOf(2), pixelsOf(3), nil)
	want.Texts = [][]string{{"One, \"two\"\nthree", "five"}, nil, {"four", "seven"}, {"six"}, {"nobody"}}
	checkSame(t, table, want)
	if table.EmptyCaptions() != 1 || table.Name(2) != filepath.Join(root, "images/2.png") {
		t.Errorf("%d empty captions, image 2 is %s", table.EmptyCaptions(), table.Name(2))
	}
	e := evalOf(t, table, EvalConfig{ImageSize: 4})
	if err := e.FindFiles(t.Context(), 2, nil); err == nil || !strings.Contains(err.Error(), "1 of 4 image files") || !strings.Contains(err.Error(), "9.png") {
		t.Errorf("got %v", err)
	}
}

// A byte order mark may stand before a name in quotation marks, as spreadsheets and pandas write it.
func TestCSVMarkBeforeQuotes(t *testing.T) {
	table, err := loadCSV(t, "", plainCSV, "\ufeff\"filepath\",\"title\"\r\n\"a\",\"one\r\ntwo\"\r\n\"b\",\"three\"\r\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := slices.Concat(table.Captions(0), table.Captions(1)); !slices.Equal(got, []string{"one\ntwo", "three"}) || table.Name(1) != "b" {
		t.Errorf("%q of %d images", got, table.Len())
	}
}

// Ids are those of the column where all are numbers, and else number the texts.
func TestCSVIDs(t *testing.T) {
	cfg := plainCSV
	cfg.ID = "id"
	for text, want := range map[string][]int64{
		"filepath,title,id\na,x,7\nb,y,-3\na,z,7\n":             {7, -3},
		"filepath,title,id\na,x,7\nb,y,cat\nc,z,7\nd,z,cat\n":   {0, 1, 0, 1},
		"filepath,title,id\na,x, 7\nb,y,cat \na,z,7\nd,z,cat\n": {0, 1, 1}, // spaces around an id are none of it
	} {
		table, err := loadCSV(t, "", cfg, text)
		if err != nil {
			t.Fatal(err)
		}
		var got []int64
		for i := range table.Len() {
			got = append(got, table.ImageID(i))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

// Where a table is refused, those before it are closed.
func TestCSVRefusedIsClosed(t *testing.T) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("no list of open files on this system")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	good, bad := filepath.Join(dir, "good.csv"), filepath.Join(dir, "bad.csv")
	filetest.Write(t, good, []byte("filepath,title\na,b\n"))
	filetest.Write(t, bad, []byte("filepath,title\na\n"))
	open := func() (n int) {
		fds, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		for _, fd := range fds {
			if path, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && filepath.Dir(path) == dir {
				n++
			}
		}
		return n
	}
	table, err := LoadCSV("", []string{good}, plainCSV, Options{})
	if err != nil || open() != 1 {
		t.Fatalf("%d open files, %v", open(), err)
	}
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadCSV("", []string{good, bad}, plainCSV, Options{}); err == nil || open() != 0 {
		t.Errorf("%d open files, %v", open(), err)
	}
}

// A table without quoting has a row for each line, whatever marks its cells have; the advice of the error that it gives else is followed
// here. Rows that lazy quotes merge are counted.
func TestCSVUnquoted(t *testing.T) {
	unquoted, lazy := plainCSV, plainCSV
	unquoted.Unquoted, lazy.LazyQuotes = true, true
	const text = "filepath\ttitle\n./a.png\tplain\na.png\t\"stop\" on a sign\r\n\nd//b.png\t\"go\nc.png\tan inch is 1\"\nd/../e.png\t\"\"\"\nf.png\tthe last \"word\""
	path := filepath.Join(t.TempDir(), "t.tsv")
	filetest.Write(t, path, []byte(text))
	if _, err := LoadCSV("r", []string{path}, plainCSV, Options{}); err == nil || !strings.Contains(err.Error(), `data.csv.quoting = "none" if the table has no quoting`) {
		t.Errorf("quoted: %v", err)
	}
	table, err := LoadCSV("r", []string{path}, unquoted, Options{Clean: CleanNone})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	var got []string
	for i := range table.Len() {
		got = append(got, table.Name(i)+": "+strings.Join(table.Captions(i), "|"))
	}
	want := []string{`r/a.png: plain|"stop" on a sign`, `r/d/b.png: "go`, `r/c.png: an inch is 1"`, `r/e.png: """`, `r/f.png: the last "word"`}
	if !slices.Equal(got, want) || !table.Account().Whole() || table.Account().Units[0].Used != 6 {
		t.Errorf("got %q, want %q, %s", got, want, table.Account())
	}
	filetest.Write(t, path, []byte("filepath\ttitle\na\tb\nc\t\"d\" e\nf\tg\"\nh\ti\nj\n"))
	if _, err := LoadCSV("", []string{path}, unquoted, Options{}); err == nil || !strings.Contains(err.Error(), "line 6: it has more or fewer columns than the first line: without quoting") {
		t.Errorf("a short row: %v", err)
	}
	filetest.Write(t, path, []byte("filepath\ttitle\na\tb\nc\t\"d\" e\nf\tg\"\nh\ti\n"))
	merged, err := LoadCSV("", []string{path}, lazy, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer merged.Close()
	if got := merged.Account().String(); merged.Len() != 3 || !strings.Contains(got, "note: cells that span lines, which may be rows merged by data.csv.lazy_quotes: 1 ("+path+": line 3)") {
		t.Errorf("%d images, %s", merged.Len(), got)
	}
}

// The rows of a table without quoting are pictures each with its caption as it stands.
func TestUnquotedCase(t *testing.T) {
	path := "../../shared/cases/tables/unquoted.tsv"
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is not there", path)
	}
	unquoted := plainCSV
	unquoted.Unquoted = true
	table, err := LoadCSV("", []string{path}, unquoted, Options{Clean: CleanNone})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	var got []string
	for i := range table.Len() {
		got = append(got, table.Captions(i)...)
	}
	if want := []string{"a plain one", `"stop" on a sign`, `"go`, `an inch is 1"`, `the last "word"`, "plain"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestCSVRefuses(t *testing.T) {
	withID, semicolon, lazy := plainCSV, plainCSV, plainCSV
	withID.ID, semicolon.Comma, lazy.LazyQuotes = "id", ';', true
	head := "filepath,title,id\n"
	for _, c := range []struct {
		cfg        CSVConfig
		text, want string
	}{
		{plainCSV, "", "it is empty: begin with a line that names the columns"},
		{plainCSV, head, "it has no row behind the line"},
		{plainCSV, "image,title\na,b\n", `line 1: data.csv.image: there is no column "filepath": the columns are ["image" "title"], by the separator ','`},
		{plainCSV, "filepath,text\na,b\n", `line 1: data.csv.caption: there is no column "title": the columns are ["filepath" "text"]`},
		{withID, "filepath,title\na,b\n", `line 1: data.csv.id: there is no column "id"`},
		{semicolon, "filepath,title\na,b\n", `by the separator ';'`},
		{plainCSV, "title,filepath,title\na,b,c\n", `line 1: data.csv.caption: there are two columns "title"`},
		{plainCSV, head + "a,b,1\n,c,2\n", `line 3: column "filepath" is empty`},
		{plainCSV, head + "a,b,1\na,c,d,2\n", "line 3: it has more or fewer columns than the first line"},
		{plainCSV, head + "a,5\" wide,1\n", "line 2: bare \" in non-quoted-field: put the cell in quotation marks"},
		{plainCSV, head + "a,b,1\na,\"b,1\na,c,1\n", "line 3: extraneous or missing \" in quoted-field: a cell that begins with a quotation mark ends with one"},
		{plainCSV, head + "a,b,1\na,caf\xe9,1\n", "line 3: column \"title\": it is not UTF-8: save the table as UTF-8"},
		{plainCSV, "\xff\xfef\x00i\x00l\x00e\x00", "line 1: it is UTF-16 or not text: save it as UTF-8"},
		{plainCSV, "f\x00i\x00l\x00e\x00,\x00", "line 1: it is UTF-16 or not text: save it as UTF-8"},
		{plainCSV, "\x1f\x8b\x08,\x00", "line 1: it is compressed: unpack it"},
		{plainCSV, "filepath,title\ra,b\r", "line 1: data.csv.caption: there is no column \"title\": the columns are [\"filepath\" \"title\\ra\""},
		{plainCSV, head + "a,\"b\"c,1\n", "line 2: extraneous or missing \" in quoted-field"},
		{lazy, "filepath,title\na,b\nc,\"d\" e\nf,g\nh,i\n", "line 3: a quotation mark is never closed: a cell that begins with one ends with one"},
		{lazy, "filepath,title\na,\"b", "line 2: a quotation mark is never closed"},
		{withID, head + "a,b, \n", `line 2: column "id" is empty`},
		{withID, head + "a,b,1\na,c,2\n", `line 3: image "a" has another id here ("2")`},
	} {
		if _, err := loadCSV(t, "", c.cfg, c.text); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), ".csv") {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
	if table, err := loadCSV(t, "", lazy, head+"a,5\" wide,1\n"); err != nil || table.Captions(0)[0] != `5" wide` {
		t.Errorf("lazy quotes: %v", err)
	}
	for _, end := range []string{"", "\n", "\r\n", "\n\n", "\n\n\n"} {
		for _, last := range []string{`"b"`, `"b ""c"""`, `b"c"`, `"b" c"`, "\"b\n\n\"", `""`, ""} {
			if _, err := loadCSV(t, "", lazy, "filepath,title\na,"+last+end); err != nil {
				t.Errorf("lazy quotes, a last cell %q before %q: %v", last, end, err)
			}
		}
	}
	if _, err := LoadCSV("", nil, plainCSV, Options{}); err == nil {
		t.Error("no table and no error")
	}
	table, err := loadCSV(t, "", plainCSV, head+"a,b,1\n")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(table.files[0].Path(), 20); err != nil {
		t.Fatal(err)
	}
	if table.Captions(0) != nil || table.Fault(0) == nil || !strings.Contains(table.Fault(0).Error(), "row 1") {
		t.Errorf("a table that was cut under a run: %q, %v", table.Captions(0), table.Fault(0))
	}
}

// endless is a table that begins with head and goes on with one letter, of which it counts what is read.
type endless struct {
	head string
	read int64
}

func (e *endless) ReadAt(p []byte, off int64) (int, error) {
	n := copy(p, e.head[min(off, int64(len(e.head))):])
	for i := range p[n:] {
		p[n+i] = 'x'
	}
	e.read = max(e.read, off+int64(len(p)))
	return len(p), nil
}

// A line or a cell without an end is not read into memory.
func TestCSVLongRow(t *testing.T) {
	for _, begin := range []string{"a,", "\"a"} {
		b := tableBuilder{t: &Table{cfg: plainCSV}, images: map[[16]byte]uint32{}}
		e := &endless{head: "filepath,title\na,b\n" + begin}
		err := b.read("f.csv", e, 1<<40)
		if err == nil || !strings.Contains(err.Error(), "f.csv: line 2: a row behind the one that begins here has more than 16 MiB: close the quotation mark") || e.read > 32<<20 {
			t.Errorf("%v, after %d bytes", err, e.read)
		}
	}
}

// A table takes memory for the places of its rows, not for what they say.
func TestCSVMemory(t *testing.T) {
	const rows = 20000
	var b bytes.Buffer
	b.WriteString("filepath,title\n")
	for i := range rows {
		fmt.Fprintf(&b, "images/%d.jpg,%s\n", i/2, strings.Repeat("long ", 100))
	}
	table, err := loadCSV(t, "", plainCSV, b.String())
	if err != nil {
		t.Fatal(err)
	}
	took := 8*table.files[0].Rows() + 4*(cap(table.images)+cap(table.ends)+cap(table.rows))
	if took > 30*rows || table.Len() != rows/2 || table.NumCaptions(7) != 2 {
		t.Errorf("%d bytes for %d rows of %d images", took, rows, table.Len())
	}
}

// emojiFolder holds a real table beside the repository.
const emojiFolder = "../../shared/data/emoji"

func TestRealCSV(t *testing.T) {
	if _, err := os.Stat(emojiFolder); err != nil {
		t.Skip("no table at " + emojiFolder)
	}
	table, err := LoadCSV(emojiFolder, []string{emojiFolder + "/pairs.tsv"}, plainCSV, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	if table.Len() != 1650 {
		t.Errorf("%d images", table.Len())
	}
	for i := 0; i < table.Len(); i += 53 {
		if m, err := table.Image(i); err != nil || m.W != 72 || len(table.Captions(i)) != 1 {
			t.Errorf("%s: %q, %v", table.Name(i), table.Captions(i), err)
		}
	}
}

// FuzzCSV holds the rows of a table, read again one by one, against all of them read at once.
func FuzzCSV(f *testing.F) {
	f.Add("filepath,title\na,b\n", false)
	f.Add("\ufefffilepath,title\n\"a\",\"b\nc\"\n\r\n\na,\"\"\"d\"\r\n", false)
	f.Add("title,filepath\na\"b,c", true)
	f.Add("\ufeff\"filepath\",\"title\"\na,b\n", false)
	f.Fuzz(func(t *testing.T, text string, lazy bool) {
		defer budgettest.Within(t, len(text))()
		cfg := plainCSV
		cfg.LazyQuotes, cfg.Comma = lazy, ','
		table := &Table{cfg: cfg}
		b := tableBuilder{t: table, images: map[[16]byte]uint32{}, numbers: true}
		if b.read("f.csv", strings.NewReader(text), int64(len(text))) != nil {
			return
		}
		if err := b.finish(); err != nil {
			t.Fatal(err)
		}
		r := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, files.ByteOrderMark)))
		r.LazyQuotes = lazy
		all, err := r.ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		want := map[string][]string{}
		at := table.files[0].at
		for _, row := range all[1:] {
			path := strings.TrimSpace(row[at.image])
			if want[path] = want[path][:len(want[path]):len(want[path])]; CleanCaption(row[at.caption], 0) != "" {
				want[path] = append(want[path], row[at.caption])
			}
		}
		if table.Len() != len(want) {
			t.Fatalf("%d images, want %d", table.Len(), len(want))
		}
		for i := range table.Len() {
			row, _, err := table.row(table.images[i])
			if err != nil {
				t.Fatal(err)
			}
			if path := strings.TrimSpace(row[at.image]); !slices.Equal(table.Captions(i), want[path]) {
				t.Errorf("image %q: %q, want %q", path, table.Captions(i), want[path])
			}
		}
	})
}

// TestCSVSeen: cameras and roles by their columns, an id instead of a caption, and rows that do not agree.
func TestCSVSeen(t *testing.T) {
	cfg := CSVConfig{Image: "image", ID: "person", Camera: "camera", Role: "role"}
	table, err := loadCSV(t, "root", cfg, "image,person,camera,role\na.jpg,0002,c1,query\nb.jpg,0002, c2 ,gallery\nc.jpg,-1,c1,\nd.jpg,7,,gallery\nb.jpg,0002,c2,gallery\n")
	if err != nil {
		t.Fatal(err)
	}
	var cameras []int32
	var roles []Role
	var ids []int64
	for i := range table.Len() {
		cameras, roles, ids = append(cameras, table.Camera(i)), append(roles, table.Role(i)), append(ids, table.ImageID(i))
	}
	if !slices.Equal(cameras, []int32{0, 1, 0, -1}) || !slices.Equal(roles, []Role{Query, Searched, Either, Searched}) || !slices.Equal(ids, []int64{2, 2, -1, 7}) {
		t.Errorf("cameras %v, roles %v, ids %v", cameras, roles, ids)
	}
	if got := table.Captions(0); !slices.Equal(got, []string{"0002"}) {
		t.Errorf("captions %q, want the id", got)
	}
	e := evalOf(t, table, EvalConfig{ImageSize: 4})
	if e.Identity(1) != 2 || e.Camera(1) != 1 || e.Role(1) != Searched {
		t.Errorf("image 1 has identity %d, camera %d and role %d", e.Identity(1), e.Camera(1), e.Role(1))
	}
	for text, want := range map[string]string{
		"image,person,camera,role\na.jpg,2,c1,probe\n":              `line 2: column "role": there is no role "probe": write query, gallery, or nothing`,
		"image,person,camera,role\na.jpg,2,c1,\na.jpg,2,c2,\n":      `line 3: image "a.jpg" has another camera here ("c2")`,
		"image,person,camera,role\na.jpg,2,c1,query\na.jpg,2,c1,\n": `line 3: image "a.jpg" has another role here ("")`,
		"image,person,role\na.jpg,2,query\n":                        `data.csv.camera: there is no column "camera"`,
		"image,person,camera\na.jpg,2,c1\n":                         `data.csv.role: there is no column "role"`,
		"image,person,camera,role,role\na.jpg,2,c1,query,gallery\n": `data.csv.role: there are two columns "role"`,
	} {
		if _, err := loadCSV(t, "root", cfg, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
	plain, err := loadCSV(t, "root", CSVConfig{Image: "image", ID: "person"}, "image,person\na.jpg,1\n")
	if err != nil || plain.Camera(0) != -1 || plain.Role(0) != Either {
		t.Errorf("without columns: %v", err)
	}
	if _, err := loadCSV(t, "root", CSVConfig{Image: "image"}, "image\na.jpg\n"); err == nil || !strings.Contains(err.Error(), "neither a caption nor an id") {
		t.Errorf("got %v", err)
	}
}

// FuzzCSVSeen: rows are refused or each image has a camera and a role.
func FuzzCSVSeen(f *testing.F) {
	f.Add("a.jpg", "2", "c1", "query")
	f.Add("a.jpg", "x\"", "", "gallery")
	f.Fuzz(func(t *testing.T, image, id, camera, role string) {
		defer budgettest.Within(t, len(image)+len(id)+len(camera)+len(role))()
		var b bytes.Buffer
		w := csv.NewWriter(&b)
		_ = w.WriteAll([][]string{{"image", "person", "camera", "role"}, {image, id, camera, role}, {image, id, camera, role}})
		table, err := loadCSV(t, "root", CSVConfig{Image: "image", ID: "person", Camera: "camera", Role: "role"}, b.String())
		if err != nil {
			return
		}
		for i := range table.Len() {
			if c, r := table.Camera(i), table.Role(i); int(c) >= table.Len() || r > Searched {
				t.Errorf("image %d has camera %d and role %d", i, c, r)
			}
		}
	})
}
