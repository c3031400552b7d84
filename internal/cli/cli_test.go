package cli

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"moorage"
	"moorage/management/client"
)

// result is the outcome of a command.
type result struct {
	code           int
	stdout, stderr string
}

// runToEnd runs a command line without actions.
func runToEnd(t *testing.T, args ...string) result {
	t.Helper()
	var stdout, stderr strings.Builder
	code := Run(t.Context(), args, Environment{Stdout: &stdout, Stderr: &stderr}, nil)
	return result{code: code, stdout: stdout.String(), stderr: stderr.String()}
}

// named returns the command of that name.
func named(name string) command {
	all := commands()
	return all[slices.IndexFunc(all, func(c command) bool { return c.name == name })]
}

func TestCommandLineFaults(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{}, {"frobnicate"}, {"warehouse"}, {"warehouse", "mend"}, {"serve", "--nonsense"}, {"version", "extra"},
		{"doctor", "--uri", "no-address"}, {"doctor", "--store", "memory"}, {"warehouse", "create", "w"},
		{"warehouse", "create", "w", "--location", "relative/folder"}, {"warehouse", "create", "w", "--location", "abc://bucket/x"},
		{"warehouse", "drop"},
	} {
		got := runToEnd(t, args...)
		if got.code != ExitUsage || got.stderr == "" || got.stdout != "" {
			t.Errorf("%q: exit %d, stdout %q, stderr %q; want 2 and a word on stderr", args, got.code, got.stdout, got.stderr)
		}
	}
}

// If the second word is not a command, the message names it before it lists the commands.
func TestUnknownSecondWord(t *testing.T) {
	t.Parallel()
	got := runToEnd(t, "warehouse", "frobnicate", "--uri", "http://127.0.0.1:8181")
	if want := "moorage: there is no command \"warehouse frobnicate\"\n"; got.code != ExitUsage || !strings.HasPrefix(got.stderr, want) {
		t.Errorf("exit %d, stderr %q, want %q first", got.code, got.stderr, want)
	}
}

// A flag before the command is not reported as an unknown command.
func TestFlagBeforeTheCommand(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--data", "d", "serve"}, {"-v"}} {
		got := runToEnd(t, args...)
		if want := "moorage: a command must stand before " + args[0] + "; see moorage help\n"; got.code != ExitUsage || got.stderr != want {
			t.Errorf("%q: %+v, want %q", args, got, want)
		}
	}
}

// The word help before a command prints the help of that command.
func TestHelpOfACommand(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"serve", "doctor retry", "doctor", "warehouse", "help"} {
		words := strings.Fields(command)
		want := runToEnd(t, append(words, "--help")...)
		for _, help := range []string{"help", "-h", "--help"} {
			if got := runToEnd(t, append([]string{help}, words...)...); got != want || got.code != ExitDone {
				t.Errorf("%s %s: %+v, want %+v", help, command, got, want)
			}
		}
	}
	for command, want := range map[string]string{
		"frobnicate": "moorage: there is no command \"frobnicate\"; see moorage help\n", "warehouse frobnicate": "moorage: there is no command \"warehouse frobnicate\"\n",
	} {
		if got := runToEnd(t, append([]string{"help"}, strings.Fields(command)...)...); got.code != ExitUsage || !strings.HasPrefix(got.stderr, want) {
			t.Errorf("help %s: %+v, want %q", command, got, want)
		}
	}
}

// The environment reaches the action. The error that the action returns becomes the exit code and
// one line.
func TestActions(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err  error
		want result
	}{
		{nil, result{ExitDone, "d\n", ""}},
		{errors.New("no room"), result{ExitFailed, "d\n", "moorage: no room\n"}},
		{moorage.E("op", "x", moorage.KindNotFound, moorage.Errorf(moorage.KindNotFound, "Not there: x")),
			result{ExitFailed, "d\n", "moorage: Not there: x\n"}},
		{No("%d bad findings", 2), result{ExitNo, "d\n", "moorage: 2 bad findings\n"}},
		{&client.Error{Code: 404, Message: "404 page not found"}, result{ExitFailed, "d\n", "moorage: 404 page not found\n"}}, // not from Moorage
		{&client.Error{Code: 404, Type: "T", Message: "Not there"}, result{ExitNo, "d\n", "moorage: Not there\n"}},
		{fmt.Errorf("a: %w", &client.Error{Code: 409, Type: "T", Message: "There already"}), result{ExitConflict, "d\n", "moorage: a: There already\n"}},
		{&client.Error{Code: 412, Type: "T", Message: "Changed"}, result{ExitConflict, "d\n", "moorage: Changed\n"}},
		{&client.Error{Code: 403, Message: "Not allowed"}, result{ExitFailed, "d\n", "moorage: Not allowed\n"}},
		{&client.Error{Code: 500, Message: "Perhaps", Type: client.TypeUnknownOutcome}, result{ExitUnknown, "d\n", "moorage: Perhaps\n"}},
		{fmt.Errorf("lost: %w", client.ErrOutcomeUnknown), result{ExitUnknown, "d\n", "moorage: lost: " + client.ErrOutcomeUnknown.Error() + "\n"}},
	} {
		var stdout, stderr strings.Builder
		env := Environment{Environ: []string{"MOORAGE_DATA=d"}, Stdout: &stdout, Stderr: &stderr}
		code := Run(t.Context(), []string{"warehouse", "list"}, env, map[string]Action{
			"warehouse list": func(_ context.Context, c Config, env Environment) error {
				fmt.Fprintln(env.Stdout, c.Data)
				return test.err
			},
		})
		if got := (result{code, stdout.String(), stderr.String()}); got != test.want {
			t.Errorf("got %+v, want %+v", got, test.want)
		}
	}
}

// Completion offers commands, flags and the values of flags.
func TestCompletion(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ line, want string }{
		{"war", "warehouse"}, {"doctor ", "retry"}, {"doctor --de", "--deep"}, {"serve --idem", "--idempotency-lifetime"},
		{"serve --log-level ", "debug"}, {"serve --log-format=js", "json"}, {"serve --insecure ", "plain-http"},
		{"doctor retry ", "all"}, {"completion ", "fish"}, {"warehouse create --loc", "--location"},
	} {
		got := runToEnd(t, append([]string{cobra.ShellCompRequestCmd}, strings.Split(test.line, " ")...)...)
		if got.code != ExitDone || !slices.ContainsFunc(strings.Split(got.stdout, "\n"), func(line string) bool {
			word, _, _ := strings.Cut(line, "\t")
			return strings.TrimPrefix(word, "--log-format=") == test.want
		}) {
			t.Errorf("%q: %+v, want %s", test.line, got, test.want)
		}
	}
	for _, shell := range choices(named("completion").operand) {
		if got := runToEnd(t, "completion", shell); got.code != ExitDone || !strings.Contains(got.stdout, cobra.ShellCompRequestCmd) {
			t.Errorf("completion %s: %+v", shell, got)
		}
	}
	if got := runToEnd(t, "completion", "cmd"); got.code != ExitUsage || !strings.Contains(got.stderr, `"cmd" is not one of bash|zsh|fish|powershell`) {
		t.Errorf("completion cmd: %+v", got)
	}
}

// The completion script for bash completes a line in bash.
func TestCompletionInBash(t *testing.T) {
	t.Parallel()
	script := runToEnd(t, "completion", "bash").stdout
	check := exec.CommandContext(t.Context(), "bash", "--norc", "-c", `source /dev/stdin && complete -p moorage`)
	check.Stdin = strings.NewReader(script)
	if out, err := check.CombinedOutput(); err != nil || !strings.Contains(string(out), "moorage") {
		t.Errorf("%v: %s", err, out)
	}
}

// The script also works if the package bash-completion is not installed.
func TestCompletionInBashAlone(t *testing.T) {
	t.Parallel()
	script := runToEnd(t, "completion", "bash").stdout
	const line = `COMP_LINE="moorage doctor re"; COMP_POINT=17; COMP_WORDS=(moorage doctor re); COMP_CWORD=2; COMP_TYPE=9; COMP_KEY=9
compopt() { :; }
moorage() { [[ "$*" == "__complete doctor re" ]] && printf 'retry\n:4\n'; }
__start_moorage; echo "${COMPREPLY[@]}"`
	check := exec.CommandContext(t.Context(), "bash", "--norc", "--noprofile", "-c", "source /dev/stdin\n"+line)
	check.Stdin = strings.NewReader(script)
	out, err := check.CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "retry" {
		t.Errorf("%v: %s", err, out)
	}
}

// For a word that is similar to a known one, the message asks whether that was meant. For other
// words it does not.
func TestDidYouMean(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"serv":                            "moorage: there is no command \"serv\"; did you mean serve?\n",
		"waerhouse list":                  "moorage: there is no command \"waerhouse\"; did you mean warehouse?\n",
		"warehouse lst":                   "moorage: there is no command \"warehouse lst\"; did you mean warehouse list?\n",
		"warehouse list --uir http://x":   "moorage: there is no flag --uir; did you mean --uri?\n",
		"serve --log-format jsno":         "did you mean json?\n",
		"completion bsh":                  "; did you mean bash?\n",
		"frobnicate":                      "moorage: there is no command \"frobnicate\"; see moorage help\n",
		"warehouse list --frobnicate 1":   "moorage: there is no flag --frobnicate\n",
		"serve --log-format frobnication": "is not text or json\n",
	} {
		if got := runToEnd(t, strings.Fields(line)...); got.code != ExitUsage || !strings.Contains(got.stderr, want) {
			t.Errorf("%s: %+v, want %q", line, got, want)
		}
	}
}

// The overview fits a terminal of 80 columns and 24 lines, and has the first word of every command
// once.
func TestOverview(t *testing.T) {
	t.Parallel()
	lines := strings.Split(strings.TrimSuffix(runToEnd(t, "help").stdout, "\n"), "\n")
	if len(lines) > 24 || slices.ContainsFunc(lines, func(line string) bool { return len(line) > 80 }) {
		t.Errorf("it does not fit a screen:\n%s", strings.Join(lines, "\n"))
	}
	listed := make(map[string]int)
	for _, group := range overview() {
		for _, row := range group.rows {
			for _, entry := range row {
				for word := range strings.SplitSeq(entry.words, ", ") {
					listed[word]++
				}
			}
		}
	}
	for _, c := range commands() {
		word, _, _ := strings.Cut(c.name, " ")
		if listed[word] != 1 {
			t.Errorf("%s is there %d times", word, listed[word])
		}
	}
	for word := range listed {
		if !slices.ContainsFunc(commands(), func(c command) bool { return strings.HasPrefix(c.name+" ", word+" ") }) {
			t.Errorf("there is no command %s", word)
		}
	}
}

// If a command is also the first word of other commands, its help lists them.
func TestHelpOfDoctor(t *testing.T) {
	t.Parallel()
	got := runToEnd(t, "doctor", "--help").stdout
	for _, want := range []string{"Usage: moorage doctor [flags]\n", "--deep", "\nMore commands:\n", "  doctor retry ", "  doctor forget "} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}
