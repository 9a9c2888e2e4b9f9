package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/kernel/cpu"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/run/console"
	"github.com/geoalign/geoalign/train"
)

// Exit codes of the program.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2   // bad usage or configuration
	exitInterrupted = 130 // by a signal; what was made is saved
	exitSignal      = 128 // and the number of a signal that ended it; SIGABRT of a fault of Go is 6
)

// longestMessage is how many bytes of a line of messages are shown.
const longestMessage = 8192

// execute runs one command line and returns its exit code. Results go to stdout,
// messages and progress to stderr. A result that cannot be written is a failure, messages
// that cannot are none. A cancelled ctx asks the command to save what it has and to stop;
// with the cause errUnread that is a failure of which nothing is said.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	started := false
	own := companyOf(ctx)
	if own.group.Rank() > 0 {
		stdout, stderr = io.Discard, io.Discard
	}
	result, messages := &output{file: stdout}, &output{file: stderr, most: longestMessage}
	root := newRoot(&started)
	root.SetArgs(args)
	root.SetOut(result)
	root.SetErr(messages)
	command, err := root.ExecuteContextC(context.WithValue(ctx, argsKey{}, args))
	if err != nil && !started {
		err = usageError{err} // cobra refused the flags, the arguments or the command
	}
	err = parallel.Agree(own.group, result.finish(err))
	return own.agreed(err, report(ctx, command.CommandPath(), err, messages))
}

// newRoot builds the command tree. started is set when a command line was
// understood and its command begins.
func newRoot(started *bool) *cobra.Command {
	root := &cobra.Command{
		Use:   "trainer",
		Short: "Train and evaluate models that align images and text",
		Long: `trainer trains, evaluates and searches with models that align images and text. A TOML file
describes a run; --set overrides any of its keys.

Exit codes:
  0    done
  1    failed
  2    wrong usage or configuration
  130  interrupted by Ctrl-C, SIGTERM or a closed terminal, after saving
  134  a fault of the program, or no memory (SIGABRT), with a trace on standard error

Under mpirun or another launcher, train, finetune, eval, embed and bench run as one command on
all processes: rank 0 prints and writes, and all exit with the same code. If the program that
reads the output stops first, as head does, a command saves and exits with 1 without a message.`,
		Example: `  trainer train --config quickstart        a small model on drawn scenes, in minutes
  trainer init photos.csv                  a configuration for your images and captions
  trainer doctor                           what this machine computes with, and how fast`,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			if err := checkRanks(c); err != nil {
				return err
			}
			if err := cpu.CheckEnvironment(); err != nil {
				return usageError{err} // of any command, as pixels are computed without an engine too
			}
			*started = true
			return nil
		},
	}
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(
		newAblateCommand(),
		newAlignForecastCommand(),
		newAverageCommand(),
		newBenchCommand(),
		newConfigsCommand(),
		newDataCommand(),
		newDoctorCommand(),
		newEmbedCommand(),
		newEvalCommand(),
		newExportCommand(),
		newExplainCommand(),
		newFinetuneCommand(),
		newGalleryCommand(),
		newImportCommand(),
		newInitCommand(),
		newInspectCommand(),
		newLicensesCommand(),
		newMergeCommand(),
		newModelsCommand(),
		newPhotosCommand(),
		newReferenceCommand(),
		newRegionsCommand(),
		newReportCommand(),
		newSearchCommand(),
		newServeCommand(),
		newTrainCommand(),
		newValidateCommand(),
		newVersionCommand(),
	)
	root.InitDefaultHelpCmd()
	arrange(root)
	if help, _, err := root.Find([]string{"help"}); err == nil {
		help.Args = func(_ *cobra.Command, args []string) error { // cobra's own explains the program instead
			_, _, err := root.Find(args)
			return err
		}
	}
	return root
}

// usageError marks an error of the command line, as opposed to one of the work.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// report prints the error of a command, such as "trainer eval", and returns its exit code.
func report(ctx context.Context, command string, err error, stderr io.Writer) int {
	var problems config.Errors
	var usage usageError
	var argument *console.ArgumentError
	var several *parallel.Failure
	var child launched
	switch {
	case errors.Is(context.Cause(ctx), errUnread) && stopped(err):
		return exitFailed // quietly, like any program before head
	case errors.As(err, &child):
		return child.code
	case errors.As(err, &several) && !several.Common():
		fmt.Fprintf(stderr, "trainer: %v\n", err)
		return report(ctx, command, several.Unwrap(), io.Discard)
	case err == nil:
		return exitDone
	case errors.Is(err, train.ErrNotBegun):
		fmt.Fprintln(stderr, "trainer: interrupted before the end of the first step: the same command begins anew")
		return exitInterrupted
	case errors.Is(err, train.ErrInterrupted):
		fmt.Fprintln(stderr, "trainer: interrupted and saved: the same command goes on from here")
		return exitInterrupted
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		fmt.Fprintln(stderr, "trainer: interrupted")
		return exitInterrupted
	case errors.As(err, &problems):
		fmt.Fprintln(stderr, problems.Error())
		fmt.Fprintf(stderr, "trainer: the configuration has %s\n", words.Count(len(problems), "problem"))
		return exitUsage
	case errors.As(err, &usage), errors.As(err, &argument):
		fmt.Fprintf(stderr, "trainer: %v\nTry: %s --help\n", err, command)
		return exitUsage
	default:
		fmt.Fprintf(stderr, "trainer: %v\n", err)
		return exitFailed
	}
}

// stopped says that err is no more than the end of a command that was asked to stop, or of what reads its result. A run
// is then saved.
func stopped(err error) bool {
	return err == nil || errors.Is(err, context.Canceled) || errors.Is(err, train.ErrInterrupted) ||
		errors.Is(err, train.ErrNotBegun) || errors.Is(err, syscall.EPIPE)
}

// groupCommand is a command that only holds others. Unlike cobra's own, it
// refuses a subcommand that it does not know.
func groupCommand(use, short, example string, subs ...*cobra.Command) *cobra.Command {
	var names []string
	for _, s := range subs {
		names = append(names, s.Name())
	}
	c := &cobra.Command{
		Use:     use,
		Short:   short,
		Example: example,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("%s needs one of %s", c.CommandPath(), strings.Join(names, ", "))
			}
			return fmt.Errorf("%s has no command %q: it has %s", c.CommandPath(), args[0], strings.Join(names, ", "))
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	c.AddCommand(subs...)
	return c
}

// noArgs refuses arguments of a command that takes flags only.
func noArgs(c *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case strings.HasSuffix(args[0], ".toml") && c.Flags().Lookup("config") != nil:
		return fmt.Errorf("%s takes flags only (got %q): did you mean --config %s?", c.CommandPath(), args[0], args[0])
	case strings.Contains(args[0], "="):
		return fmt.Errorf("%s takes flags only (got %q): did you mean --set %s?", c.CommandPath(), args[0], args[0])
	}
	return fmt.Errorf("%s takes flags only (got %q)", c.CommandPath(), args[0])
}
