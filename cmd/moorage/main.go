// Command moorage runs an Apache Iceberg REST catalog, and manages its store.
//
// Only this package wires the parts together, reads the environment, and chooses the clock and the
// source of randomness. Package internal/cli defines the commands and their settings. Their actions
// are functions of this package.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"moorage/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	ctx, hangups := handleHangups(ctx)
	os.Exit(run(ctx, os.Args[1:], cli.Environment{
		Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, OnHangup: hangups.react,
		Now: time.Now, Complete: completeOperand,
	}))
}

// run executes one command line and returns the exit code of the process.
func run(ctx context.Context, args []string, env cli.Environment) int {
	if env.Now == nil {
		env.Now = time.Now
	}
	return cli.Run(ctx, args, env, commands())
}

func printVersion(_ context.Context, _ cli.Config, env cli.Environment) error {
	_, err := fmt.Fprintln(env.Stdout, "moorage "+version())
	return err
}

// hangups handles SIGHUP. A closing terminal sends it, and so does a program that rotated a log
// file. It is safe for concurrent use.
type hangups struct {
	signals chan os.Signal

	mu     sync.Mutex // guards action; no other lock is taken under it
	action func()     // called for each signal
}

// handleHangups returns a context that ends at the first SIGHUP. It does not end if the process was
// started with nohup, to outlive its terminal, or if react has set another reaction.
func handleHangups(ctx context.Context) (context.Context, *hangups) {
	ctx, end := context.WithCancel(ctx)
	h := &hangups{signals: make(chan os.Signal, 1), action: end}
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(h.signals, syscall.SIGHUP)
	}
	go func() {
		for range h.signals {
			h.mu.Lock()
			then := h.action
			h.mu.Unlock()
			then()
			if ctx.Err() != nil {
				signal.Stop(h.signals) // a second signal ends the process at once
			}
		}
	}()
	return ctx, h
}

// react makes action the reaction to later SIGHUPs, which then no longer end the context.
func (h *hangups) react(action func()) {
	h.mu.Lock()
	h.action = action
	h.mu.Unlock()
	signal.Notify(h.signals, syscall.SIGHUP)
}

// release is the version described in the topmost section of CHANGELOG.md.
const release = "0.2.0-dev"

// version describes the build in one line: the release, the version of the module in parentheses,
// and the version of Go. The module's version contains the commit, and a mark if files had changed
// since then.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return release
	}
	commit := cmp.Or(strings.Trim(info.Main.Version, "()"), "devel")
	return fmt.Sprintf("%s (%s, %s)", release, commit, info.GoVersion)
}
