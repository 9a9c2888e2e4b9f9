package config

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"sort"
	"strings"
	"testing"
)

func TestCollect(t *testing.T) {
	files, _ := filepath.Glob("../configs/*.toml")
	files = append(files, "")
	r := rand.New(rand.NewPCG(1, 1))
	paths := Paths()
	oneOf := map[string][]string{}
	words := []string{"albef", "clip", "heads", "align", "matching", "identities", "moco", "swav", "simcse", "captions", "pairs", "scenes", "x", "", "none", "rank"}
	seen := map[string]int{}
	ex := map[string]string{}
	num := regexp.MustCompile(`-?\d+(\.\d+)?(e[+-]?\d+)?`)
	for range 60000 {
		f := files[r.IntN(len(files))]
		var sets []string
		for n := 1 + r.IntN(3); n > 0; n-- {
			p := paths[r.IntN(len(paths))]
			v, _ := Default().Get(p)
			var s string
			switch reflect.TypeOf(v).Kind() {
			case reflect.Int, reflect.Uint64:
				s = fmt.Sprint([]int{-1, 0, 1, 2, 3, 5, 7, 16, 100, 1000, 100000, 1 << 40}[r.IntN(12)])
			case reflect.Float64:
				s = []string{"-1", "0", "0.1", "0.5", "1", "2", "100", "1e9", "nan", "1e-9"}[r.IntN(10)]
			case reflect.Bool:
				s = fmt.Sprint(r.IntN(2) == 0)
			case reflect.String:
				w := append(append([]string{}, words...), oneOf[p]...)
				w = append(w, oneOf[p]...)
				w = append(w, oneOf[p]...)
				s = fmt.Sprintf("%q", w[r.IntN(len(w))])
			default:
				s = []string{"[]", "[1]", "[1, 2]", `["a"]`, `[{kind = "gssf", weight = 1.0}]`, `[{kind="cosine", weight = 0}]`, "[0.5]", `["x", "x"]`}[r.IntN(8)]
			}
			sets = append(sets, p+"="+s)
		}
		_, err := Load(f, sets)
		es, _ := err.(Errors)
		for _, e := range es {
			if i := strings.Index(e.Msg, "one of "); i >= 0 {
				oneOf[e.Path] = strings.Split(e.Msg[i+7:], ", ")
			}
			k := e.Path + " | " + num.ReplaceAllString(e.Msg, "N") + " | " + num.ReplaceAllString(e.Hint, "N")
			seen[k]++
			ex[k] = f + " " + strings.Join(sets, " ")
		}
	}
	var keys []string
	for k := range seen {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	out, _ := os.Create("/tmp/advice/collect.txt")
	for _, k := range keys {
		fmt.Fprintf(out, "%d %s\n", seen[k], k)
	}
	out.Close()
	forms := map[string]int{}
	for _, k := range keys {
		forms[strings.SplitN(k, " | ", 2)[1]]++
	}
	out, _ = os.Create("/tmp/advice/forms.txt")
	keys = nil
	for k := range forms {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		fmt.Fprintf(out, "%d %s\n", forms[k], k)
	}
	out.Close()
}
