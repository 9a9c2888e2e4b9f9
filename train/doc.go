// Package train runs an optimisation: a loop that makes one step after the other
// and calls named hooks in a fixed order.
//
// What a step is, the caller says by a Stepper; the parts a Stepper needs are in
// the sub-packages: schedule (rates as functions of the step), optim (AdamW),
// checkpoint (atomic saves), runlog (metrics and run folder).
//
//	out, err := train.Run(ctx, train.Config{Start: start, Total: total}, stepper,
//		train.Metrics(perEpoch),
//		train.Checkpoints(train.SaveConfig{EverySteps: 500, Save: save}),
//		train.Evaluations(1000, evaluate),
//		train.Logs(10, logger))
//	if errors.Is(err, train.ErrInterrupted) { os.Exit(130) }
//
// Order within a step: finite check, update (both inside Stepper.Step), metrics,
// checkpoint, evaluation, log. So a state that is not finite is never saved.
//
// Processes that train one model together (parallel.Group) each run the loop, with a Session of the same
// configuration over the same stream: train.batch_size is the batch of all, of which each reads its rows. All
// make a step or none, report the same numbers, and end before the same step, whichever of them was asked to. State is
// the same on all, so that of one is the checkpoint of the run, for any number of processes.
//
// Only limits and saves by the minute and what is shown (time, samples per
// second) read the clock; nothing that is computed depends on it.
package train
