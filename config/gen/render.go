package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"github.com/geoalign/geoalign/config"
)

const header = `# Configuration reference

One TOML file describes a run. A key that is left out has the default below; an unknown key is an error.
Any key can be overridden on the command line, as in ` + "`--set train.batch_size=64`" + `, and
` + "`trainer validate --config FILE --print`" + ` shows the result. A length that can be given in several units
(the ` + "`max_*`" + ` keys, the ` + "`warmup_*`" + ` keys, the two ramps of distillation) is given in one of them: a file that sets
one replaces the default, an override replaces both.

Two keys stand before all sections:

| key | meaning |
|---|---|
| ` + "`base`" + ` | a TOML file, from the folder of this one, that this one changes; it may have a base too. Tables merge, values and lists replace, and a length replaces the one of the base in any unit |
| ` + "`version`" + ` | version of the configuration, VERSION today, which run folders hold. Keys of earlier versions are translated with a note; a later version is refused |

- Keys marked *architecture* cannot change when the model of a checkpoint is used, as by eval, embed and a resumed run.
  Those marked *fixed in a run* cannot change when a run is resumed. All others can.
- The type says the largest value that is accepted. Beyond it a number is a mistake; within it, the memory that all keys
  need together is still checked before any of it is taken.
- *Read with* says when anything reads the key, or the whole section. Otherwise the key has no effect, and validate and
  train note it if it differs from its default.

Written by ` + "`go generate ./config`" + ` from the comments of the sections.
`

// render returns the reference as Markdown: a table per section. root is the folder of the module.
func render(root string) ([]byte, error) {
	r := renderer{root: root, packages: map[string]map[string]typeDoc{}, defaults: config.Default()}
	r.WriteString(strings.ReplaceAll(header, "VERSION", strconv.Itoa(config.Version)))
	if err := r.common(); err != nil {
		return nil, err
	}
	if err := r.section(reflect.TypeFor[config.Config](), ""); err != nil {
		return nil, err
	}
	return r.Bytes(), nil
}

const module = "github.com/geoalign/geoalign/"

// typeDoc is the comment of a struct, and those of its fields by their names.
type typeDoc struct {
	doc    string
	fields map[string]string
}

// doc returns the comments of a struct, from the source of its package.
func (r *renderer) doc(t reflect.Type) (typeDoc, error) {
	if r.packages[t.PkgPath()] == nil {
		structs := map[string]typeDoc{}
		r.packages[t.PkgPath()] = structs
		names, err := filepath.Glob(filepath.Join(r.root, strings.TrimPrefix(t.PkgPath(), module), "*.go"))
		if err != nil {
			return typeDoc{}, err
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
			if err != nil {
				return typeDoc{}, err
			}
			collect(file, structs)
		}
	}
	d, ok := r.packages[t.PkgPath()][t.Name()]
	if !ok {
		return d, fmt.Errorf("no struct %s in the source", t)
	}
	return d, nil
}

// comment returns that of a field of a struct: of one of an embedded struct that above the latter, or else its own.
func (r *renderer) comment(t reflect.Type, f reflect.StructField) (string, error) {
	about, err := r.doc(t)
	if err != nil || len(f.Index) == 1 {
		return about.fields[f.Name], err
	}
	in := t.Field(f.Index[0])
	if text := about.fields[in.Name]; text != "" {
		return text, nil
	}
	f.Index = f.Index[1:]
	return r.comment(in.Type, f)
}

// collect adds the structs of a file and their comments.
func collect(file *ast.File, structs map[string]typeDoc) {
	line := func(g *ast.CommentGroup) string { // its first paragraph, which is for users
		text, _, _ := strings.Cut(g.Text(), "\n\n")
		return strings.Join(strings.Fields(text), " ")
	}
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, s := range g.Specs {
			t, ok := s.(*ast.TypeSpec)
			if !ok {
				continue
			}
			st, ok := t.Type.(*ast.StructType)
			if !ok {
				continue
			}
			about := typeDoc{cmp.Or(line(t.Doc), line(g.Doc)), map[string]string{}}
			for _, f := range st.Fields.List {
				for _, name := range f.Names {
					about.fields[name.Name] = cmp.Or(line(f.Doc), line(f.Comment))
				}
				if len(f.Names) == 0 {
					name := types.ExprString(f.Type)
					about.fields[name[strings.LastIndexByte(name, '.')+1:]] = line(f.Doc)
				}
			}
			structs[t.Name.Name] = about
		}
	}
}

// fixedBy says what the tag fixed stands for.
var fixedBy = map[string]string{"meaning": "architecture", "model": "architecture", "run": "fixed in a run"}

// escape keeps a comment one cell of a table and free of tags.
var escape = strings.NewReplacer("|", `\|`, "<", "&lt;")

type renderer struct {
	bytes.Buffer
	root     string
	packages map[string]map[string]typeDoc // by path and name
	defaults config.Config
}

// section writes the table of a struct's own keys, then the sections in it.
func (r *renderer) section(t reflect.Type, path string) error {
	about, err := r.doc(t)
	if err != nil {
		return err
	}
	type sub struct {
		t    reflect.Type
		path string
	}
	var subs []sub
	var rows []row
	conditions := false
	for _, f := range reflect.VisibleFields(t) {
		key := f.Tag.Get("toml")
		if key == "" || key == "-" {
			continue
		}
		full := strings.TrimPrefix(path+"."+key, ".")
		if f.Type.Kind() == reflect.Struct {
			subs = append(subs, sub{f.Type, full})
			continue
		}
		x, err := r.row(t, f, full)
		if err != nil {
			return err
		}
		rows, conditions = append(rows, x), conditions || x.with != ""
	}
	if path != "" {
		_, doc, _ := strings.Cut(about.doc, " ")
		doc = strings.TrimPrefix(doc, "is ")
		doc = strings.ToUpper(doc[:1]) + doc[1:]
		if with := config.ReadWith(path); with != "" && !strings.Contains(doc, with) {
			doc += " Read with " + with + "."
		}
		fmt.Fprintf(r, "\n## [%s]\n\n%s\n", path, doc)
	}
	switch {
	case len(rows) > 0 && conditions:
		r.WriteString("\n| key | type | default | meaning | read with |\n|---|---|---|---|---|\n")
	case len(rows) > 0:
		r.WriteString("\n| key | type | default | meaning |\n|---|---|---|---|\n")
	}
	for _, x := range rows {
		fmt.Fprintf(r, "| `%s` | %s | `%s` | %s |", x.key, x.kind, x.standard, escape.Replace(x.meaning))
		if conditions {
			fmt.Fprintf(r, " %s |", escape.Replace(x.with))
		}
		r.WriteByte('\n')
	}
	for _, s := range subs {
		if err := r.section(s.t, s.path); err != nil {
			return err
		}
	}
	return nil
}

// row is a key of a section.
type row struct{ key, kind, standard, meaning, with string }

// row returns the key full, a field of t.
func (r *renderer) row(t reflect.Type, f reflect.StructField, full string) (x row, err error) {
	value, ok := r.defaults.Get(full)
	if !ok {
		return x, fmt.Errorf("%s.%s has no key %s", t, f.Name, full)
	}
	text, err := r.comment(t, f)
	if err != nil || text == "" {
		return x, cmp.Or(err, fmt.Errorf("%s has no comment", full))
	}
	x = row{f.Tag.Get("toml"), typeName(value), literal(value), text, config.ReadWith(full)}
	if fixed := f.Tag.Get("fixed"); fixed != "" {
		x.meaning += " (*" + fixedBy[fixed] + "*)"
	}
	if most := f.Tag.Get("max"); most != "" {
		x.kind += " up to " + most
	}
	return x, nil
}

// typeName names a Go value's type in the words of TOML.
func typeName(v any) string {
	switch v.(type) {
	case int, uint64:
		return "integer"
	case float64:
		return "number"
	case []string:
		return "strings"
	case []int:
		return "integers"
	case []float64:
		return "numbers"
	}
	if t := reflect.TypeOf(v); t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct {
		return "tables"
	}
	return fmt.Sprintf("%T", v)
}

// literal writes a value as TOML.
func literal(v any) string {
	switch v := v.(type) {
	case string:
		return strconv.Quote(v)
	case []int:
		return strings.Join(strings.Fields(fmt.Sprint(v)), ", ")
	case []string:
		quoted := make([]string, len(v))
		for i, s := range v {
			quoted[i] = strconv.Quote(s)
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	default:
		return fmt.Sprint(v)
	}
}
