// Package cli is the command line of moorage: its commands and settings, their help and completion.
// One table of settings is the source of flags, environment variables, keys of the YAML file, and
// the pages in docs/reference.
//
// It decides what a user may write on the command line. The Action of a command decides what the
// command does.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"moorage"
	"moorage/internal/term"
	"moorage/management/client"
)

// Exit codes.
const (
	ExitDone     = 0
	ExitFailed   = 1 // the command failed: one sentence on stderr
	ExitUsage    = 2 // the command line, the environment or the file has faults: one line on stderr for each
	ExitNo       = 3 // the command worked, and its answer is negative: nothing found, or problems found
	ExitConflict = 4 // the request conflicts with the present state: 409 or 412
	ExitUnknown  = 5 // the change may have happened or not
)

// errNo ends a command with ExitNo.
type errNo struct{ error }

// No returns an error that ends a command with ExitNo.
func No(format string, args ...any) error { return errNo{fmt.Errorf(format, args...)} }

// errConflict ends a command with ExitConflict.
type errConflict struct{ error }

// Conflict returns an error that ends a command with ExitConflict.
func Conflict(format string, args ...any) error { return errConflict{fmt.Errorf(format, args...)} }

// Usage returns an error that ends a command with ExitUsage, because the operands do not fit the
// objects that they name. The command has changed nothing.
func Usage(fault string) error { return &usageError{faults: []string{fault}} }

// exitOf returns the exit code for the error of an action.
func exitOf(err error) int {
	if _, isNo := errors.AsType[errNo](err); isNo {
		return ExitNo
	}
	if _, isConflict := errors.AsType[errConflict](err); isConflict {
		return ExitConflict
	}
	if answered, ok := errors.AsType[*client.Error](err); ok {
		switch {
		case answered.Type == client.TypeUnknownOutcome:
			return ExitUnknown
		case answered.IsMissing():
			return ExitNo
		case answered.IsConflict():
			return ExitConflict
		}
	}
	if errors.Is(err, client.ErrOutcomeUnknown) {
		return ExitUnknown
	}
	return ExitFailed
}

// Environment is the part of the process that a command uses.
type Environment struct {
	Environ        []string // KEY=value
	Stdout, Stderr io.Writer
	// Stdin answers questions. Nil means that nothing can be asked.
	Stdin io.Reader
	// Columns is the width of the terminal if Stdout is a terminal. If Columns is 0, the command
	// checks whether Stdout is a terminal.
	Columns int
	// Complete returns possible completions of typed, the last operand of a command for people. The
	// earlier operands are in before. Complete must be fast, and returns nothing if it fails. If it
	// is nil, nothing is completed.
	Complete func(ctx context.Context, c Config, kind Operand, before []string, typed string) []string
	// Now returns the current time, to which relative times refer.
	Now func() time.Time
	// OnHangup installs do as the handler of SIGHUP, which then no longer ends the process. If
	// OnHangup is nil, SIGHUP does not reach the command.
	OnHangup func(do func())
}

// Action carries out a command. Its error becomes one line on stderr.
type Action func(ctx context.Context, c Config, env Environment) error

// Run executes one command line and returns the exit code of the process. actions maps the name of
// every command except completion to its action. Run returns when the command is done. When ctx
// ends, the command first finishes the work that it has begun.
func Run(ctx context.Context, args []string, env Environment, actions map[string]Action) int {
	if len(args) > 0 && strings.HasPrefix(args[0], "-") && !isHelp(args[0]) && args[0] != "--version" {
		fmt.Fprintf(env.Stderr, "moorage: a command must stand before %s; see moorage help\n", args[0])
		return ExitUsage
	}
	root := newRoot(env, actions, len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd))
	root.SetArgs(commandFirst(args))
	cmd, err := root.ExecuteContextC(ctx)
	return report(cmd, err, env)
}

// commandFirst turns "help serve" into "serve --help", and --version into "version".
func commandFirst(args []string) []string {
	command := slices.Clone(args)
	for len(command) > 0 && isHelp(command[0]) {
		command = command[1:]
	}
	switch {
	case len(command) < len(args):
		return append(command, "--help")
	case len(args) > 0 && args[0] == "--version":
		command[0] = "version"
	}
	return append([]string{}, command...) // not nil, because cobra would then use os.Args
}

func isHelp(arg string) bool {
	return arg == "help" || arg == "-h" || arg == "-help" || arg == "--help"
}

// errUnnamed means that the command line names no command. The user has already been told.
var errUnnamed = errors.New("no command")

// report prints the error of a command, if any, and returns the exit code.
func report(cmd *cobra.Command, err error, env Environment) int {
	if err == nil {
		return ExitDone
	}
	if errors.Is(err, errUnnamed) {
		return ExitUsage
	}
	if usage, ok := errors.AsType[*usageError](err); ok {
		for _, fault := range usage.faults {
			fmt.Fprintln(env.Stderr, "moorage: "+term.Clean(fault))
		}
		fmt.Fprintf(env.Stderr, "See %s --help.\n", cmd.CommandPath())
		return ExitUsage
	}
	text := moorage.MessageOf(err)
	if text == "" {
		text = err.Error()
	}
	fmt.Fprintln(env.Stderr, "moorage: "+term.Clean(text))
	return exitOf(err)
}

// newRoot returns the tree of commands. A command parses its flags with parseLine, because pflag
// stops at the first fault. Only completion uses pflag.
func newRoot(env Environment, actions map[string]Action, completing bool) *cobra.Command {
	root := &cobra.Command{Use: "moorage"}
	for _, c := range commands() {
		if c.run == nil {
			c.run = actions[c.name]
		}
		parent, name := root, c.name
		if group, word, ok := strings.Cut(c.name, " "); ok {
			if parent, _, _ = root.Find([]string{group}); parent == root {
				parent = &cobra.Command{Use: group, Short: "commands for " + group}
				root.AddCommand(parent)
			}
			name = word
		}
		parent.AddCommand(c.cobra(name, env, completing))
	}
	for _, group := range append(root.Commands(), root) {
		group.Args = cobra.ArbitraryArgs
		group.DisableFlagParsing = !completing
		if group.RunE == nil {
			group.RunE = func(cmd *cobra.Command, args []string) error { return runGroup(cmd, args, env) }
		}
	}
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { writeHelp(cmd.OutOrStdout(), cmd) })
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	return root
}

// cobra returns c as a *cobra.Command.
func (c command) cobra(name string, env Environment, completing bool) *cobra.Command {
	made := &cobra.Command{
		Use:                   strings.TrimRight(name+" "+c.operand, " "),
		Short:                 c.summary,
		Long:                  c.text,
		ValidArgs:             choices(c.operand),
		Args:                  cobra.ArbitraryArgs,
		DisableFlagParsing:    !completing,
		DisableFlagsInUseLine: len(c.settings) == 0,
		RunE: func(cmd *cobra.Command, args []string) error {
			config, err := load(c, args, env.Environ)
			if errors.Is(err, errHelp) {
				return cmd.Help()
			}
			if err != nil {
				return err
			}
			return c.run(cmd.Context(), config, env)
		},
	}
	if completing && c.connects {
		made.ValidArgsFunction = c.completer(env)
	}
	made.Flags().SortFlags = false
	made.Flags().BoolP("help", "h", false, "")
	made.Flags().Lookup("help").Hidden = true // the overview already mentions it
	for _, s := range c.settings {
		s.addTo(made, completing)
	}
	return made
}

// runGroup answers a command line that has no command, or only the first word of a command.
func runGroup(cmd *cobra.Command, args []string, env Environment) error {
	switch {
	case len(args) > 0 && isHelp(args[0]):
		return cmd.Help()
	case len(args) > 0 && cmd.HasParent():
		fmt.Fprintf(env.Stderr, "moorage: there is no command %q%s\n", cmd.Name()+" "+args[0],
			didYouMean(cmd.Name()+" ", args[0], wordsOf(cmd)))
	case len(args) > 0:
		hint := didYouMean("", args[0], wordsOf(cmd))
		if hint == "" {
			hint = "; see moorage help"
		}
		fmt.Fprintf(env.Stderr, "moorage: there is no command %q%s\n", args[0], hint)
		return errUnnamed
	}
	writeHelp(env.Stderr, cmd)
	return errUnnamed
}

// wordsOf returns the words that may follow cmd.
func wordsOf(cmd *cobra.Command) (words []string) {
	for _, each := range cmd.Commands() {
		words = append(words, each.Name())
	}
	return words
}
