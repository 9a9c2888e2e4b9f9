// Package sanity says beside a number that it is not a result: a loss that diverged, a run that learned nothing, an
// evaluation at chance, one on so few samples that its last digits mean nothing, features that are all one point,
// scores that tie, a column of features that alone decides.
//
// Each function returns a sentence, empty where there is nothing to say. The limits are chosen so that what a working
// run gives is never told; each is explained where it is defined. docs/report.md lists the sentences for users.
package sanity
