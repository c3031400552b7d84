package main

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
)

func versionCommand() command {
	return command{
		name:    "version",
		summary: "say which build this is",
		text:    "Prints the version of this build, in which the commit stands that it was made from, and that of Go.\n",
		run: func(_ context.Context, _ config, env environment) error {
			fmt.Fprintln(env.stdout, "moorage "+version())
			return nil
		},
	}
}

// version describes the build in one line: the version of the module, which names the commit it was made
// from and whether files had changed since, and that of Go.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return cmp.Or(info.Main.Version, "(devel)") + " " + info.GoVersion
}
