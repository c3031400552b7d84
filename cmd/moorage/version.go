package main

import (
	"context"
	"fmt"
	"runtime/debug"
)

func versionCommand() command {
	return command{
		name:    "version",
		summary: "say which build this is",
		text:    "Prints the version of this build, the commit it was made from, and the Go version.\n",
		run: func(_ context.Context, _ config, env environment) error {
			fmt.Fprintln(env.stdout, "moorage "+version())
			return nil
		},
	}
}

// version describes the build in one line: module version, commit, whether the tree had
// changes, Go version.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	text := info.Main.Version
	if text == "" {
		text = "(devel)"
	}
	settings := make(map[string]string, len(info.Settings))
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if revision := settings["vcs.revision"]; revision != "" {
		text += " commit " + revision[:min(12, len(revision))]
	}
	if settings["vcs.modified"] == "true" {
		text += " with changes"
	}
	return text + " " + info.GoVersion
}
