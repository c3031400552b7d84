package cli

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var update = flag.Bool("update", false, "rewrite the pages in docs/reference")

// TestSettingsReference holds the page of settings against the settings.
func TestSettingsReference(t *testing.T) {
	t.Parallel()
	wantPage(t, "../../docs/reference/settings.md", settingsReference())
}

// TestCommandsReference holds the page of commands against what each command says about itself.
func TestCommandsReference(t *testing.T) {
	t.Parallel()
	wantPage(t, "../../docs/reference/commands.md", commandsReference(t))
}

// wantPage compares a page with what it should be. -update rewrites the page.
func wantPage(t *testing.T, name, page string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != page {
		t.Errorf("%s is stale (rewrite it with -update); want\n%s", name, page)
	}
}

// sharedPart is the part of all commands that must describe a setting in the same words before it
// counts as a connection setting. The reference prints connection settings once.
const sharedPart = 1.0 / 3

// connectionSettings returns the settings that most commands share: where the server or the store
// is, and how it is reached. They are in the order in which commands list them.
func connectionSettings() (shared []setting) {
	count := make(map[string]int)
	all := commands(Actions{})
	for _, cmd := range all {
		for _, s := range cmd.settings {
			if key := s.name + s.describe(); cmd.name != "serve" {
				if count[key]++; count[key] == int(sharedPart*float64(len(all))) {
					shared = append(shared, s)
				}
			}
		}
	}
	return shared
}

// isShared reports whether s is one of the connection settings.
func isShared(shared []setting, s setting) bool {
	return slices.ContainsFunc(shared, func(c setting) bool { return c.name == s.name && c.describe() == s.describe() })
}

// commandsReference returns the page: the overview, then each command with its own flags.
func commandsReference(t *testing.T) string {
	t.Helper()
	var page strings.Builder
	page.WriteString("# Commands\n\n<!-- Generated: go test ./internal/cli -run Reference -update -->\n\n" +
		"This is what `moorage help` and `moorage COMMAND --help` print, without the flags that most commands share. Those\n" +
		"are the [connection settings](settings.md#connection-settings). The flags of `moorage serve` are [settings](settings.md)\n" +
		"too.\n\n" +
		"Exit codes: 0 done; 1 the command failed, and stderr has the reason in one sentence; 2 the command line, the\n" +
		"environment or the configuration file is wrong, and stderr has a line for each fault.\n")
	help := func(words ...string) string {
		got := runToEnd(t, append(words, "--help")...)
		if got.code != ExitDone || got.stderr != "" {
			t.Errorf("%q --help: exit %d, stderr %q", words, got.code, got.stderr)
		}
		return got.stdout
	}
	fmt.Fprintf(&page, "\n## moorage help\n\n```\n%s```\n", help())
	shared := connectionSettings()
	for _, cmd := range commands(Actions{}) {
		text, _, _ := strings.Cut(help(strings.Fields(cmd.name)...), "\nFlags:\n")
		fmt.Fprintf(&page, "\n## moorage %s\n\n```\n%s", cmd.name, text)
		own := &cobra.Command{}
		own.Flags().SortFlags = false
		var connection []string
		for _, s := range cmd.settings {
			switch {
			case isShared(shared, s):
				connection = append(connection, "`--"+s.name+"`")
			case cmd.name != "serve":
				s.addTo(own, false)
			}
		}
		if own.Flags().HasFlags() {
			fmt.Fprintf(&page, "\nFlags:\n%s", own.Flags().FlagUsagesWrapped(helpColumns))
		}
		page.WriteString("```\n")
		switch {
		case cmd.name == "serve":
			page.WriteString("\nIts flags are the [settings](settings.md).\n")
		case len(connection) == len(shared):
			page.WriteString("\nIt also takes the [connection settings](settings.md#connection-settings).\n")
		case len(connection) > 0:
			page.WriteString("\n")
			wrapDocument(&page, "It also takes these [connection settings](settings.md#connection-settings): "+
				strings.Join(connection, ", ")+".")
		}
	}
	return page.String()
}

// settingsReference returns the page: the connection settings, then the other settings of serve.
// The flags of one other command are on the page of commands.
func settingsReference() string {
	var page strings.Builder
	page.WriteString("# Settings\n\n<!-- Generated: go test ./internal/cli -run Reference -update -->\n\n" +
		"Each setting is a flag and an environment variable. The settings of `moorage serve` are also keys of the YAML file\n" +
		"that `--config` names, without the dashes. [Configure](../guide/configure.md) says which one wins.\n" +
		"[Commands](commands.md) has the flags of the other commands.\n\n" +
		"## Connection settings\n\nMost commands take these: where the store or the server is, and how it is reached. `moorage serve` takes\n" +
		"those that are not about a server to ask.\n")
	shared := connectionSettings()
	for _, s := range shared {
		writeSetting(&page, s)
	}
	page.WriteString("\n## Settings of moorage serve\n")
	for _, s := range serverSettings() {
		if !isShared(shared, s) {
			writeSetting(&page, s)
		}
	}
	return page.String()
}

func writeSetting(page *strings.Builder, s setting) {
	fmt.Fprintf(page, "\n### `%s`\n\n", strings.TrimRight("--"+s.name+" "+s.value, " "))
	wrapDocument(page, s.usage)
	var notes []string
	if s.required {
		notes = append(notes, "Required.")
	}
	if s.preset != "" {
		notes = append(notes, "Default: `"+s.preset+"`.")
	}
	if !s.flagOnly {
		notes = append(notes, "Environment: `"+s.variable()+"`.")
	}
	if s.list && !s.flagOnly {
		notes = append(notes, "In the environment, spaces separate several.")
	}
	if len(notes) > 0 {
		page.WriteString("\n")
		wrapDocument(page, strings.Join(notes, " "))
	}
}

// wrapDocument writes text as one paragraph of lines of at most 120 columns.
func wrapDocument(page *strings.Builder, text string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > 120 {
			fmt.Fprintln(page, line)
			line = ""
		}
		line = strings.TrimLeft(line+" "+word, " ")
	}
	fmt.Fprintln(page, line)
}
