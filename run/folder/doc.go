// Package folder is the folder of a run: who may write to it, what it holds, and how a new one is filled.
package folder
