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

// TestSettingsReference compares the page of settings with the settings in the code.
func TestSettingsReference(t *testing.T) {
	t.Parallel()
	wantPage(t, "../../docs/reference/settings.md", settingsReference())
}

// TestCommandsReference compares the page of commands with the help of each command.
func TestCommandsReference(t *testing.T) {
	t.Parallel()
	wantPage(t, "../../docs/reference/commands.md", commandsReference(t))
}

// wantPage fails unless the file called name contains page. With -update, it rewrites the file.
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

// sharedPart is the fraction of all commands that must share a setting, with the same description,
// to make it a connection setting. The reference prints connection settings once.
const sharedPart = 1.0 / 3

// repeatedMin is the number of commands that must share a paragraph before the reference prints it
// only once.
const repeatedMin = 3

// connectionSettings returns the settings that most commands share: where the server or the store
// is, and how it is reached. Their order is that of the commands' help.
func connectionSettings() (shared []setting) {
	count := make(map[string]int)
	all := commands()
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
		"The output of `moorage help` and `moorage COMMAND --help`. Flags that most commands share are [connection\n" +
		"settings](settings.md#connection-settings); the flags of `moorage serve` are also [settings](settings.md).\n\n" +
		"Exit codes: 0: done. 1: the command failed, with the reason on stderr. 2: the command line, the environment or the\n" +
		"configuration file is wrong, with a line for each fault on stderr. 3: the command worked, and its answer is\n" +
		"negative: nothing found, or problems found. 4: a conflict with the present state (409 or 412). 5: the change may\n" +
		"have happened or not.\n")
	help := func(words ...string) string {
		got := runToEnd(t, append(words, "--help")...)
		if got.code != ExitDone || got.stderr != "" {
			t.Errorf("%q --help: exit %d, stderr %q", words, got.code, got.stderr)
		}
		return got.stdout
	}
	fmt.Fprintf(&page, "\n## moorage help\n\n```\n%s```\n", help())
	page.WriteString("\n## Notes\n\nParagraphs that apply to several commands. Each command refers to its notes.\n")
	notes := repeatedParagraphs()
	for i, note := range notes {
		fmt.Fprintf(&page, "\n%d. %s", i+1, note)
	}
	shared, described := connectionSettings(), make(map[string]string)
	for _, cmd := range commands() {
		text, _, _ := strings.Cut(help(strings.Fields(cmd.name)...), "\nFlags:\n")
		var also []string
		for i, note := range notes {
			if shorter := strings.Replace(text, "\n"+note, "", 1); shorter != text {
				text = shorter
				also = append(also, fmt.Sprintf("[note %d](#notes)", i+1))
			}
		}
		text = strings.TrimPrefix(text, "Usage: moorage "+cmd.name+" [flags]\n\n") // the heading already names it
		fmt.Fprintf(&page, "\n## moorage %s\n\n```\n%s", cmd.name, text)
		also = append(also, writeFlags(&page, cmd, shared, described)...)
		page.WriteString("```\n")
		if len(also) > 0 {
			page.WriteString("\n")
			wrapDocument(&page, "Also: "+strings.Join(also, "; ")+".")
		}
	}
	return page.String()
}

// repeatedParagraphs returns the paragraphs that occur in the help of at least repeatedMin
// commands. Each paragraph ends in a newline.
func repeatedParagraphs() (repeated []string) {
	count := make(map[string]int)
	for _, cmd := range commands() {
		for i, paragraph := range strings.Split(strings.TrimSuffix(cmd.text, "\n"), "\n\n") {
			if paragraph += "\n"; i > 0 {
				if count[paragraph]++; count[paragraph] == repeatedMin {
					repeated = append(repeated, paragraph)
				}
			}
		}
	}
	return repeated
}

// writeFlags writes the flags of cmd that are not on the page yet, and returns where to find the
// other flags. described maps the name and description of a flag to the command that described it
// first.
func writeFlags(page *strings.Builder, cmd command, shared []setting, described map[string]string) []string {
	if cmd.name == "serve" {
		return []string{"the [settings](settings.md)"}
	}
	own := &cobra.Command{}
	own.Flags().SortFlags = false
	others := make(map[string][]string) // flags by the command that describes them
	var order []string
	for _, s := range cmd.settings {
		key, at := s.name+s.describe(), "[connection settings](settings.md#connection-settings)"
		if !isShared(shared, s) {
			first, ok := described[key]
			if !ok {
				described[key] = cmd.name
				s.addTo(own, false)
				continue
			}
			at = "flags of `moorage " + first + "`"
		}
		if others[at] == nil {
			order = append(order, at)
		}
		others[at] = append(others[at], "`--"+s.name+"`")
	}
	if own.Flags().HasFlags() {
		fmt.Fprintf(page, "\nFlags:\n%s", own.Flags().FlagUsagesWrapped(helpColumns))
	}
	var notes []string
	for _, at := range order {
		if len(others[at]) == len(shared) {
			notes = append(notes, "the "+at)
		} else {
			where, isCommand := strings.CutPrefix(at, "flags of ")
			if !isCommand {
				where = "the " + at
			}
			notes = append(notes, strings.Join(others[at], ", ")+" of "+where)
		}
	}
	return notes
}

// settingsReference returns the page: the connection settings, then the other settings of serve.
// The flags of other commands are on the page of commands.
func settingsReference() string {
	var page strings.Builder
	page.WriteString("# Settings\n\n<!-- Generated: go test ./internal/cli -run Reference -update -->\n\n" +
		"Each setting is a flag and an environment variable. The settings of `moorage serve` are also keys of the YAML file\n" +
		"given by `--config`, without the leading dashes. [Configure](../guide/configure.md) says which value wins.\n" +
		"[Commands](commands.md) has the flags of the other commands.\n\n" +
		"## Connection settings\n\nMost commands take these settings, which say where the store or the server is, and how to reach it.\n" +
		"`moorage serve` takes all of them except those about a server to call.\n")
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
		notes = append(notes, "In the environment, separate several values by spaces.")
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
