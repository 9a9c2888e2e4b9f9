package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is one change of a file: the bytes from:to become with.
type mutant struct {
	file     string
	line     int
	from, to int
	was      string
	with     string
}

// String is the place of the change and the change.
func (m mutant) String() string {
	return fmt.Sprintf("%s:%d: %s -> %s", m.file, m.line, short(m.was), short(m.with))
}

// short is text on one line, cut to a readable length.
func short(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > 60 {
		text = string(r[:60]) + "..."
	}
	return cmp.Or(text, "nothing")
}

// apply returns the text of the file with the change.
func (m mutant) apply(text []byte) []byte {
	return slices.Concat(text[:m.from], []byte(m.with), text[m.to:])
}

// find lists the mutants of the packages in folders: tests, generated files and those of other systems apart.
func find(folders []string) (list []mutant, err error) {
	for _, folder := range folders {
		names, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			if built, err := build.Default.MatchFile(folder, filepath.Base(name)); err != nil || !built {
				if err != nil {
					return nil, err
				}
				continue // no test could see a change
			}
			text, err := os.ReadFile(name)
			if err != nil {
				return nil, err
			}
			of, err := mutate(name, text)
			if err != nil {
				return nil, err
			}
			list = append(list, of...)
		}
	}
	return list, nil
}

// swaps are the operators that take the place of others.
var swaps = map[token.Token]token.Token{
	token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL, token.REM: token.MUL,
	token.EQL: token.NEQ, token.NEQ: token.EQL, token.LAND: token.LOR, token.LOR: token.LAND,
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.ADD_ASSIGN: token.SUB_ASSIGN, token.SUB_ASSIGN: token.ADD_ASSIGN, token.MUL_ASSIGN: token.QUO_ASSIGN,
	token.QUO_ASSIGN: token.MUL_ASSIGN, token.INC: token.DEC, token.DEC: token.INC,
}

// mutate lists the mutants of a file: operators swapped, conditions and signs turned,
// integers one larger, statements dropped, functions left at once.
func mutate(name string, text []byte) (list []mutant, err error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.ParseComments)
	if err != nil || ast.IsGenerated(file) {
		return nil, err
	}
	at := func(p token.Pos) int { return set.Position(p).Offset }
	add := func(from, to token.Pos, with string) {
		was := text[at(from):at(to)]
		if !bytes.Equal(was, []byte(with)) {
			list = append(list, mutant{name, set.Position(from).Line, at(from), at(to), string(was), with})
		}
	}
	swap := func(p token.Pos, t token.Token) {
		if other, ok := swaps[t]; ok {
			add(p, p+token.Pos(len(t.String())), other.String())
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			return n.Tok != token.IMPORT
		case *ast.Field: // types and tags
			return false
		case *ast.BinaryExpr:
			swap(n.OpPos, n.Op)
		case *ast.UnaryExpr:
			if n.Op == token.SUB || n.Op == token.NOT {
				add(n.OpPos, n.OpPos+1, "")
			}
		case *ast.Ident:
			if other, ok := map[string]string{"true": "false", "false": "true"}[n.Name]; ok {
				add(n.Pos(), n.End(), other)
			}
		case *ast.BasicLit:
			if n.Kind == token.INT {
				add(n.Pos(), n.End(), "("+n.Value+"+1)")
			}
		case *ast.IfStmt:
			add(n.Cond.Pos(), n.Cond.End(), "!("+string(text[at(n.Cond.Pos()):at(n.Cond.End())])+")")
		case *ast.IncDecStmt:
			swap(n.TokPos, n.Tok)
		case *ast.AssignStmt:
			swap(n.TokPos, n.Tok)
			if n.Tok != token.DEFINE {
				add(n.Pos(), n.End(), "")
			}
		case *ast.ExprStmt, *ast.SendStmt, *ast.DeferStmt, *ast.GoStmt, *ast.BranchStmt:
			add(n.Pos(), n.End(), "")
		case *ast.FuncDecl:
			if n.Body != nil && len(n.Body.List) > 0 && leaves(n.Type.Results) {
				add(n.Body.Lbrace+1, n.Body.Lbrace+1, " return;")
			}
		}
		return true
	})
	return list, nil
}

// leaves says whether a bare return leaves a function with these results.
func leaves(results *ast.FieldList) bool {
	return results == nil || len(results.List) == 0 || len(results.List[0].Names) > 0
}
