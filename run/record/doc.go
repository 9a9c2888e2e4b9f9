// Package record identifies the data of a run, so that a resumed run, another rank or a person can be told where
// they are not what they were: data.json and data.sums of a run folder.
package record
