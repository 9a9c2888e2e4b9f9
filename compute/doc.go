// Package compute is what graphs and models run on: the matrix products and threads
// of this machine, and the planned executor for Gorgonia graphs. Programs that use
// geoalign as a library open an Engine here and pass it to model, train and eval,
// or compile graphs of their own with it.
//
// # A second device
//
// A machine keeps its results where Config.Device says, in the host's memory without one.
// What another device has to bring:
//
//  1. A Device with a name, which allocates Memory in words of four bytes. One piece holds
//     all results of a machine: the plan of the executor lays them out, whatever the device.
//  2. Buffers that lie in a Memory. What is behind one is the device's own affair. To
//     everybody else it is its view on the host: Fetch copies the value there, Store back.
//
// That is enough to run every graph: an op of package ops fills in op.Op.Host, its step in
// the host's memory, and on a device the executor gives that step the views, fetches what it
// reads before and stores what it wrote after it. It is slow and right, and a test for what
// follows:
//
//  3. Steps of the device's own for the ops that matter, one at a time, beside the host's in
//     op.Op.On under the device's name. They get a Call with the buffers, and nothing is
//     copied between two of them. What follows them on the host has its copies as before.
//  4. Inputs that stay: Machine.SetInput takes a Buffer of the device in place of a slice. An
//     input in the host's memory is stored anew in every run if a step of the device reads it.
//
// Values of outputs are fetched when they are asked for, and outputs bound to memory of the
// caller's at the end of a run. Steps on the host use an Engine's threads and products on
// either kind of machine; the executor knows it as an interface.
//
// That is what a device of another module can do. One of this module may bring more, each an
// interface of package internal/exec that the executor looks for: steps that are recorded and
// replayed (Recorder), steps that return before they are done (Waiter), memory that stands for
// slices of the host's, so that parameters, gradients and moments stay (Mirrorer), inputs that
// are read where they lie (Borrower), Gorgonia's own additions (Adder), times of ops (Timeline).
// Package internal/cuda has all of them: it is compute.device = "cuda" of the configuration.
// Packages model and train keep parameters and updates on it, and the host's memory is what
// checkpoints read and write.
package compute
