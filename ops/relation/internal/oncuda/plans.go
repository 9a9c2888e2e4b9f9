package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/transport"
)

var plansSource = cuda.NewSource(files, "plans", "plans.cu")

// SmallPlan is the number of pairs of a plan up to which a block of threads makes all rounds: exponentials of a block
// then take about as long as the two launches of a round, and rounds that are not needed cost nothing. A variable for
// tests.
var SmallPlan = 1 << 14

// LaunchedRounds is how many rounds of a larger plan have launches of their own at most. A recording holds each launch,
// and a replay starts each, whether its round is needed or not. A variable for tests.
var LaunchedRounds = 2000

// Plans is the step of the divergence of two plans, target of the fixed one. Both plans are made side by side. A round
// needs all rows before its columns and all columns before the next rows, and so two launches. The host does not know
// how many rounds there will be: it launches all that there may be, and those behind the last one that is needed look
// on the device and return. Rounds from LaunchedRounds on, which few plans need, and all of a small plan are one
// launch, in which a block makes them one after another.
func Plans(own, target transport.Options) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		n, m, rounds := c.In[0].Shape[0], c.In[0].Shape[1], own.Iterations
		tolerance := own.Tolerance
		if tolerance == 0 {
			tolerance = transport.Tolerance
		}
		plan := int64(n + m + rounds + 1) // values of a plan in work
		work := cuda.Scratch(c, 8*(2*plan+int64(n)))
		sums := work + cuda.Pointer(16*plan)
		kernel := func(name string) *cuda.Kernel { return cuda.Load(c, plansSource, name) }
		begin, rows, columns, others, compare, loss := kernel("plan_begin"), kernel("plan_rows"),
			kernel("plan_columns"), kernel("plan_rounds"),
			kernel("plan_compare"), kernel("plan_loss")
		arguments := func() []any {
			return []any{c.In[0], c.In[1], work, n, m, rounds, cuda.Double(1 / own.Epsilon),
				cuda.Double(1 / target.Epsilon), cuda.Double(tolerance)}
		}
		launched := min(rounds, LaunchedRounds)
		if n*m <= SmallPlan {
			launched = 0
		}
		solve := func() {
			if launched > 0 {
				begin.Enqueue(cuda.Grid{X: cuda.Blocks(rounds, 256), Y: 2, Threads: 256}, arguments()...)
			}
			for k := range launched {
				rows.Enqueue(cuda.Grid{X: cuda.Blocks(n, 4), Y: 2, Threads: 128}, append(arguments(), k)...)
				columns.Enqueue(cuda.Grid{X: cuda.Blocks(m, 32), Y: 2, Threads: 512}, append(arguments(), k)...)
			}
			if launched == rounds {
				return
			}
			others.Enqueue(cuda.Grid{Y: 2, Threads: 1024}, append(arguments(), launched)...)
		}
		return func() {
			solve()
			compare.Enqueue(cuda.Grid{X: n, Threads: 256}, append([]any{sums, c.Aux[0]}, arguments()...)...)
			loss.Enqueue(cuda.Grid{Threads: 256}, append([]any{c.Out, c.Aux[1], sums}, arguments()...)...)
		}
	})
}
