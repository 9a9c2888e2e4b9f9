// Package runlog writes what a run says about itself into its folder:
// metrics.jsonl, TensorBoard event files, config.toml and environment.json.
//
// A Logger takes the numbers of one step by name. Names are those of
// metrics.jsonl: step, epoch, time (Unix seconds), loss, loss/<part>, lr,
// temperature, grad_norm, samples_per_second, eval/<task>/<metric>.
package runlog
