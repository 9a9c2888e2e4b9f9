package setup

import (
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// TestOtherDataOnARank: lists of another length and in another order are found, and so are files of another size.
func TestOtherDataOnARank(t *testing.T) {
	own := func(value string) []byte {
		return []byte(`[{"What":"order of training samples","Value":"` + value + `","Shown":"checksum ` + value + `","Hint":"give all machines the same data"}]`)
	}
	if err := differs([][]byte{own("a"), own("a"), own("a")}); err != nil {
		t.Error(err)
	}
	err := differs([][]byte{own("a"), own("a"), own("b")})
	if want := "rank 2 has another order of training samples than rank 0 (checksum a there, checksum b here): give all machines the same data"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	check.Error(t, differs([][]byte{own("a"), []byte("[]")}), "rank 1 is another program")
	check.Error(t, differs([][]byte{own("a"), []byte("{")}), "rank 1: ")
}

// TestKernelNotes: rank 0 tells the kernels of others where they are not its own, and warnings that it lacks.
func TestKernelNotes(t *testing.T) {
	lines := kernelNotes([][]byte{[]byte(`{"Engine":"a","Warnings":["old"]}`), []byte(`{"Engine":"a","Warnings":["old"]}`), []byte(`{"Engine":"b","Warnings":["old","new"]}`)})
	if len(lines) != 2 || lines[0] != "warning: rank 2: new" || !strings.HasPrefix(lines[1], "warning: rank 2 computes with b and rank 0 with a: ") {
		t.Errorf("%q", lines)
	}
}
