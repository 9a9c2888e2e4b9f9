// Package oncuda makes the kernel of an expression and its step for the CUDA device.
package oncuda

import (
	"crypto/sha256"
	_ "embed"
	"fmt"
	"strings"

	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

//go:embed expr.cu
var elements string

// Kernel is the kernel of an expression.
type Kernel struct {
	// Body computes and returns an element of the operands x0, x1, .., of the numbers c0, c1, .. and of diagonal.
	Body     string
	Views    []View // of the operands
	Numbers  []float32
	Diagonal bool   // Body reads diagonal, which is 1 where the last two axes have one index and else 0
	Axes     [3]int // of the result
}

// View is where the elements of the result have theirs in an operand: the first, and the distances along the axes.
type View struct {
	From    int
	Strides [3]int
}

// plain says whether an operand has its elements in the order of the result.
func (k Kernel) plain(v View) bool {
	return v == View{Strides: [3]int{k.Axes[1] * k.Axes[2], k.Axes[2], 1}}
}

// source returns the text of the kernel, whose name is a sum of it.
func (k Kernel) source() *cuda.Source {
	var parameters, views, loads, arguments, numbers []string
	for i, v := range k.Views {
		x := fmt.Sprint("x", i)
		parameters, arguments = append(parameters, "float "+x), append(arguments, "u"+x+"[k]")
		if k.plain(v) {
			views = append(views, ", const float *"+x)
			loads = append(loads, fmt.Sprintf("float u%s[WIDE]; load(u%s, %s + i, 1);", x, x, x))
			continue
		}
		views = append(views, fmt.Sprintf(", const float *%s, int64 %s_a, int64 %s_b, int %s_j", x, x, x, x))
		loads = append(loads, fmt.Sprintf("float u%s[WIDE]; load(u%s, %s + a * %s_a + b * %s_b + j * %s_j, %s_j);",
			x, x, x, x, x, x, x))
	}
	for i := range k.Numbers {
		c := fmt.Sprint("c", i)
		parameters, arguments = append(parameters, "float "+c), append(arguments, c)
		numbers = append(numbers, ", float "+c)
	}
	if k.Diagonal {
		parameters, arguments = append(parameters, "float diagonal"), append(arguments, "float(b == j + k)")
	}
	text := fmt.Sprintf("__device__ __forceinline__ float element(%s) {\n%s}\n", strings.Join(parameters, ", "), k.Body) +
		"#define VIEWS " + strings.Join(views, "") + "\n#define NUMBERS " + strings.Join(numbers, "") +
		"\n#define LOADS " + strings.Join(loads, " ") +
		"\n#define ELEMENT(k) element(" + strings.Join(arguments, ", ") + ")\n" + elements
	return &cuda.Source{Name: fmt.Sprintf("expression %x", sha256.Sum256([]byte(text)))[:27], Text: text}
}

// Step is the step of the op.
func (k Kernel) Step() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		n, wide := c.Out.Shape.TotalSize(), 4
		if k.Axes[2]%4 != 0 {
			wide = 1
		}
		for _, v := range k.Views {
			if s := v.Strides; s[2] > 0 && (v.From%4 != 0 || s[0]%4 != 0 || s[1]%4 != 0) {
				wide = 1
			}
		}
		large := n >= 1<<31
		run := cuda.Load(c, k.source(), "elements", cuda.Value("WIDE", wide), cuda.Is("LARGE", large),
			cuda.Is("ROWS", k.Axes[0]*k.Axes[1] > 1))
		var count any = uint32(n)
		if large {
			count = uint64(n)
		}
		return func() {
			args := []any{c.Out, count, k.Axes[1], k.Axes[2]}
			for i, v := range k.Views {
				if k.plain(v) {
					args = append(args, c.In[i])
				} else {
					args = append(args, cuda.At(c.In[i])+cuda.Pointer(4*v.From), int64(v.Strides[0]),
						int64(v.Strides[1]), v.Strides[2])
				}
			}
			for _, f := range k.Numbers {
				args = append(args, f)
			}
			run.Enqueue(cuda.Grid{X: cuda.Blocks(n, 256*wide), Threads: 256}, args...)
		}
	})
}
