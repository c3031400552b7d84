package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"moorage"
)

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), stopSignals()...)
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], environment{
		environ: os.Environ(), stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
	}))
}

// stopSignals returns the signals that end a command in good order. A terminal that is closed does so too, unless the process was
// started to outlive it (nohup).
func stopSignals() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

// environment is what a command sees of the process that runs it.
type environment struct {
	environ        []string // KEY=value
	stdin          io.Reader
	stdout, stderr io.Writer
}

// command is a sub-command of moorage.
type command struct {
	name    string // as typed, "warehouse create"
	operand string // what follows the flags, "NAME"; empty: nothing may
	summary string // one line
	text    string // what --help says before the flags
	// settings are the flags that it takes.
	settings []setting
	// validate adds what is wrong with settings, or an operand, on a command line that was understood; may be nil.
	validate func(config config, faults *usageError)
	run      func(ctx context.Context, config config, env environment) error
}

// commands returns every sub-command, in the order of the help text.
func commands() []command {
	return []command{
		serveCommand(), migrateCommand(), checkCommand(), backupCommand(),
		recoverListCommand(), recoverRetryCommand(), recoverAbortCommand(), recoverForgetCommand(),
		warehouseCreateCommand(), warehouseListCommand(), warehouseDropCommand(),
		versionCommand(),
	}
}

// run executes one command line and returns the exit code of the process. It returns when
// the command is done, or after ctx ended and what it had begun was finished.
func run(ctx context.Context, args []string, env environment) int {
	if len(args) > 0 && args[0] == "--version" {
		args = append([]string{"version"}, args[1:]...)
	}
	if len(args) > 1 && isHelp(args[0]) {
		args = append(slices.Clone(args[1:]), "--help")
	}
	cmd, rest, ok := findCommand(commands(), args)
	if !ok {
		return explain(args, env)
	}
	config, err := loadConfig(cmd, rest, env.environ)
	if err == nil {
		err = cmd.run(ctx, config, env)
	}
	return report(cmd, err, env)
}

// explain answers a command line that names no command: with the commands that there are, or that
// begin with the word given, and exitDone if that was asked for.
func explain(args []string, env environment) int {
	listed := commands()
	if len(args) > 0 && !isHelp(args[0]) {
		listed = slices.DeleteFunc(listed, func(cmd command) bool { return !strings.HasPrefix(cmd.name, args[0]+" ") })
		switch {
		case strings.HasPrefix(args[0], "-"):
			fmt.Fprintf(env.stderr, "moorage: a command must stand before %s; see moorage help\n", args[0])
			return exitUsage
		case len(listed) == 0:
			fmt.Fprintf(env.stderr, "moorage: there is no command %q; see moorage help\n", args[0])
			return exitUsage
		}
		if len(args) > 1 && !isHelp(args[1]) {
			fmt.Fprintf(env.stderr, "moorage: there is no command %q\n", args[0]+" "+args[1])
		}
		args = args[1:]
	}
	if len(args) == 0 || !isHelp(args[0]) {
		writeOverview(env.stderr, listed)
		return exitUsage
	}
	writeOverview(env.stdout, listed)
	return exitDone
}

// report tells the user how a command ended.
func report(cmd command, err error, env environment) int {
	var usage *usageError
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errHelp):
		writeHelp(env.stdout, cmd)
		return exitDone
	case errors.As(err, &usage):
		for _, fault := range usage.faults {
			fmt.Fprintln(env.stderr, "moorage: "+fault)
		}
		fmt.Fprintf(env.stderr, "See moorage %s --help.\n", cmd.name)
		return exitUsage
	}
	text := moorage.MessageOf(err)
	if text == "" {
		text = err.Error()
	}
	fmt.Fprintln(env.stderr, "moorage: "+text)
	return exitFailed
}

// findCommand returns the command that args begin with, and the arguments behind it.
func findCommand(all []command, args []string) (command, []string, bool) {
	for _, words := range []int{2, 1} {
		if len(args) < words {
			continue
		}
		name := args[0]
		if words == 2 {
			name += " " + args[1]
		}
		for _, cmd := range all {
			if cmd.name == name {
				return cmd, args[words:], true
			}
		}
	}
	return command{}, nil, false
}

func isHelp(arg string) bool {
	return arg == "help" || arg == "-h" || arg == "-help" || arg == "--help"
}
