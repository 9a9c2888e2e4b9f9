package train

import "testing"

// TestSparseMetric: the optimiser of a session draws weights of a sparse metric off the diagonal to 0, and none of a dense one.
func TestSparseMetric(t *testing.T) {
	zeros := func(sets ...string) (n int) {
		s := small(t, 0, 0, append([]string{"objective.itc.scores=[]", "objective.itc.score=gssf"}, sets...)...)
		for i := range 3 {
			s.must(t, i)
		}
		q, ok := s.model.Params().Get("gssf/weight")
		if !ok {
			t.Fatal("no metric")
		}
		for i, v := range s.model.Params().Value(q) {
			if d := q.Shape[1]; v == 0 && i/d != i%d {
				n++
			}
		}
		return n
	}
	if n := zeros("objective.gssf.form=dense"); n != 0 {
		t.Errorf("%d weights of a dense metric are 0", n)
	}
	if n := zeros("objective.gssf.form=sparse", "objective.gssf.l1=1000"); n == 0 {
		t.Error("no weight of a sparse metric is 0")
	}
}
