// Package advicetest reads what a message tells its reader to do, so that tests can do it and see that it helps.
//
// A problem of a configuration (path, message, hint) says so in few forms: a value or a range that the key must have,
// "set KEY = VALUE", "set KEY", "raise KEY", "use "clip"", "leave KEY out". Each is an Advice: a list of Ways, each
// some overrides of --set, of which one must make the problem go. What has no such form, such as a reason, is in no
// Advice.
package advicetest
