package main

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/term"

	"moorage/internal/cli"
)

// openBrowser opens a page in a browser for the person at this machine. It does nothing if there is
// no such person: if standard output is not a terminal, over SSH, and in CI. It is not an error if
// the browser does not start, because the address is also printed.
func openBrowser(ctx context.Context, env cli.Environment, page string) {
	file, ok := env.Stdout.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return
	}
	if words := browserCommand(runtime.GOOS, env.Environ); words != nil {
		_ = exec.CommandContext(ctx, words[0], append(words[1:], page)...).Start()
	}
}

// browserCommand returns the command with which an operating system opens an address. It returns
// nil if no person would see the page. environ is the environment of the process.
func browserCommand(system string, environ []string) []string {
	isSet := func(names ...string) bool {
		return slices.ContainsFunc(environ, func(variable string) bool {
			name, value, _ := strings.Cut(variable, "=")
			return value != "" && slices.Contains(names, name)
		})
	}
	switch {
	case isSet("SSH_CONNECTION", "CI"):
		return nil
	case system == "darwin":
		return []string{"open"}
	case system == "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler"}
	case isSet("DISPLAY", "WAYLAND_DISPLAY"):
		return []string{"xdg-open"}
	}
	return nil
}
