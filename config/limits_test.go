package config

import (
	"math"
	"reflect"
	"strings"
	"testing"
)

// setNumber sets a key, or a list to one item, and reports whether the key is a number.
func setNumber(v reflect.Value, whole int64, real float64) bool {
	switch {
	case v.Type() == reflect.TypeFor[[]int]():
		v.Set(reflect.ValueOf([]int{int(whole)}))
	case v.CanInt():
		v.SetInt(whole)
	case v.CanUint():
		v.SetUint(uint64(whole))
	case v.CanFloat():
		v.SetFloat(real)
	default:
		return false
	}
	return true
}

// Every integer has the tag max, and every number but those of the optimiser, which count
// nothing, an upper limit: a key without one is a mistake.
func TestEveryNumberHasALimit(t *testing.T) {
	var none Config
	for i, f := range none.leaves() {
		c := Default()
		key := c.leaves()[i]
		whole := f.value.CanInt() || f.value.CanUint() || f.value.Kind() == reflect.Slice && f.value.Type().Elem().Kind() == reflect.Int
		if whole && f.most == 0 {
			t.Errorf("%s is an integer without the tag max", f.path)
		}
		if strings.HasPrefix(f.path, "optimizer.") {
			continue
		}
		for _, v := range []int64{math.MaxInt64, int64(f.most) + 1, math.MinInt64} {
			if !setNumber(key.value, v, 1e300) {
				break
			}
			if v == math.MinInt64 && f.value.CanFloat() || f.value.CanUint() && v == math.MaxInt64 { // the largest seed
				continue
			}
			if err := c.Validate(); err == nil || !strings.Contains(err.Error(), f.path+": ") {
				t.Errorf("%s = %v was accepted: %v", f.path, key.value, err)
			}
		}
	}
}

func TestLimitMessages(t *testing.T) {
	rows := []struct {
		change func(c *Config)
		want   string
	}{
		{func(c *Config) { c.Queue.Size = math.MaxInt }, "queue.size: must be at most 16777216 (got 9223372036854775807); " + limitHint},
		{func(c *Config) { c.Model.Image.Depth = 1e9 }, "model.image.depth: must be at most 128 (got 1000000000); " + limitHint},
		{func(c *Config) { c.Objective.Geodesic.Layers = []int{1, 65537} }, "objective.geodesic.layers: must be at most 65536 (got [1 65537]); " + limitHint},
		{func(c *Config) { c.Objective.Geodesic.Layers = make([]int, 17) }, "objective.geodesic.layers: must name at most 16 layers (got [0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0]); such as [16, 256]"},
		{func(c *Config) { c.Train.MaxEpochs = 2e9 }, "train.max_epochs: must be at most 1000000000 (got 2e+09); " + limitHint},
		{func(c *Config) { c.Model.Image.Size, c.Model.Image.Patch = 8192, 16 },
			"model.image.size: makes 262144 patches of an image, (model.image.size / model.image.patch)^2, of which there must be at most 65536 (got 8192); lower it or raise model.image.patch"},
		{func(c *Config) { c.Queue.Size, c.Model.Head.Dim = 1<<24, 1<<16 },
			"queue.size: makes 1099511627776 values of a queue, queue.size x model.head.dim, of which there must be at most 17179869184 (got 16777216); lower one of these"},
		{func(c *Config) { c.Train.BatchSize, c.Data.Prefetch = 4096, 32 },
			"data.prefetch: makes 28185722880 pixel values that are prepared ahead, of data.prefetch batches and data.workers samples, of which"},
		{func(c *Config) {
			*c = headsConfig()
			c.Train.BatchSize, c.Objective.Geometric.Weight, c.Objective.Geometric.Neighbours = 40000, 1, 1<<16
		}, "objective.geometric.neighbours: makes 2621440000 points of a batch, train.batch_size x objective.geometric.neighbours, of which there must be at most 2147483647"},
		{func(c *Config) { *c = headsConfig(); c.Train.BatchSize, c.Objective.Hinge.Weight = 1<<20, 1 },
			"train.batch_size: makes 1099511627776 scores of a batch"},
		{func(c *Config) { c.Run.Name = "\xe9" }, "run.name: must be UTF-8 text (got \"\\xe9\")"},
		{func(c *Config) { c.Optimizer.NoDecay = []string{"1d", "\xff*"} }, "optimizer.no_decay: must be UTF-8 text (got"},
	}
	for _, r := range rows {
		c := Default()
		r.change(&c)
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), r.want) {
			t.Errorf("got  %v\nwant %s", err, r.want)
		}
	}
	for i, p := range products {
		if ofConfig().at[p.path] == nil {
			t.Errorf("product %d is told of the key %s, which is none", i, p.path)
		}
	}
}

// FuzzValidate gives keys what they never expect: nothing may panic, and what is accepted
// has an advice and a text that reads back to the same configuration.
func FuzzValidate(f *testing.F) {
	for i := range Paths() {
		for _, v := range []int64{0, -1, 1, 1e9, math.MaxInt64, math.MinInt64} {
			f.Add(uint8(0), uint16(i), v, math.Float64frombits(uint64(v)), "")
		}
	}
	f.Add(uint8(3), uint16(9), int64(5), math.Inf(1), "Multi(9223372036854775807,2)")
	f.Add(uint8(1), uint16(60), int64(1<<62), 1e308, "Ob(4,4)")
	starts := []Config{Default(), clip(), headsConfig(), pairsConfig()}
	n := len(Paths())
	f.Fuzz(func(t *testing.T, start uint8, key uint16, whole int64, real float64, text string) {
		c := starts[int(start)%len(starts)]
		keys := c.leaves()
		for _, i := range []int{int(key) % n, int(key) / n % n} {
			if v := keys[i].value; !setNumber(v, whole, real) && v.Kind() == reflect.String {
				v.SetString(text)
			}
		}
		if c.Validate() != nil {
			return
		}
		c.Advice()
		written, err := c.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := Parse("fuzz.toml", written, nil)
		if err != nil {
			t.Fatalf("what was accepted is refused when it is read back: %v", err)
		}
		if list := differences(&c, &back); len(list) > 0 {
			t.Errorf("read back with %+v", list)
		}
	})
}
