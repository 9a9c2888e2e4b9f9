// Package checkpoint saves and loads the state of a run.
//
// A checkpoint is a folder:
//
//	checkpoints/latest                        name of the newest checkpoint's folder
//	checkpoints/step-00000100/state.json      version, step, metric, sizes and checksums of the files, counters of the parts
//	checkpoints/step-00000100/model.safetensors, optimizer.safetensors, ...
//
// Invariants: a folder named step-* is complete, since it is written under
// another name, synced and renamed; a failed save leaves the earlier checkpoints
// and latest as they were; numbers are stored as raw float32 and integers, so a
// resumed run continues with the same bits; a file that was changed after it was saved is
// not read.
//
//	store, err := checkpoint.NewStore("runs/a/checkpoints", checkpoint.Retention{Last: 2})
//	snap, err := checkpoint.Take(parts) // []state.Part
//	err = store.Save(100, snap)
//	ckpt, err := checkpoint.Load("runs/a")
//	unread, err := ckpt.Restore(parts)
//	err = ckpt.ReadFloat32("model", "image/cls", shape, dst)
//
// One process at a time may save into a folder; others may load from it meanwhile.
package checkpoint
