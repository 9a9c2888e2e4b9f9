// Package interop compares this module with programs of others. It has tests alone, which read
// small files that Python scripts beside them wrote: Python makes new ones and is never needed
// to build, run or test. Tests that run programs of others ask GEOALIGN_PYTHON for an interpreter and are skipped
// without it: make interop sets it.
package interop
